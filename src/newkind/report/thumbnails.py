"""Thumbnails for the page: pixels without metadata, within a budget of bytes."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from PIL import Image, ImageOps
from PIL import features as pillow

from newkind.data import ArrayImages, EncodedImages, Images
from newkind.data.decoding import decode
from newkind.errors import BrokenImage
from newkind.progress import quiet

__all__ = ["Budget", "Fit", "Sheets", "data_uri", "fit_budget", "make_sheets", "make_thumbnails", "small_image"]

KIND = "webp" if pillow.check("webp") else "jpeg"
N_SAMPLES = 32
LONGEST = 2.0  # Longer images are cropped to this ratio of sides: their thumbnails would be thin lines.
SHEET_COLUMNS = 16
SLICE = 512
T = TypeVar("T")
Place = Callable[[int], int]
Advance = Callable[[int], None]


@dataclass(frozen=True)
class Budget:
    """Limit on the size of a number of images.

    Parameters
    ----------
    n_bytes : int
        Most bytes that all images together may take, as text in the page.
    sides : tuple of int
        Lengths of the longer side to choose from, in pixels, in decreasing order.
    quality : int
        Quality of the encoded images, from 0 to 100.
    """

    n_bytes: int
    sides: tuple[int, ...]
    quality: int


def small_image(images: Images, index: int, side: int) -> Image.Image:
    """Make a small copy of an image, without metadata.

    Parameters
    ----------
    images : Images
        Images.
    index : int
        Index of the image.
    side : int
        Most pixels of the longer side.

    Returns
    -------
    PIL.Image.Image
        Upright RGB image.

    Raises
    ------
    BrokenImage
        If the image cannot be decoded.
    """
    image = _decoded(images, index, 2 * side)
    width, height = image.size
    short = min(width, height)
    if max(width, height) > LONGEST * short:
        size = (min(width, int(LONGEST * short)), min(height, int(LONGEST * short)))
        image = ImageOps.fit(image, size, method=Image.Resampling.BOX)
    image.thumbnail((side, side), Image.Resampling.LANCZOS, reducing_gap=2.0)
    clean = Image.new("RGB", image.size)  # without EXIF data, profile and comments of the original
    clean.paste(image)
    return clean


def _decoded(images: Images, index: int, side: int) -> Image.Image:
    """Decode an image, upright RGB; a JPEG at a fraction of its size, but with a side of at least `side` pixels."""
    if not isinstance(images, EncodedImages):
        return images.open(index)
    return decode(images.content(index), name=images.names[index], shorter_side=side)


def data_uri(image: Image.Image, *, quality: int) -> str:
    """Encode an image as the `src` of an <img> element."""
    content = io.BytesIO()
    image.save(content, KIND, quality=quality, method=2)  # half the time of method 4, for 4 % more bytes
    return f"data:image/{KIND};base64,{base64.b64encode(content.getvalue()).decode()}"


@dataclass(frozen=True)
class Fit:
    """Side in pixels, and number of images of this size that fit a budget."""

    side: int
    n_images: int


def fit_budget(images: Images, indices: Sequence[int], n: int, budget: Budget) -> Fit:
    """Find the largest side at which images fit a budget.

    Parameters
    ----------
    images : Images
        Images.
    indices : sequence of int
        Images to embed; a sample of them is encoded to estimate the size.
    n : int
        Number of images to embed.
    budget : Budget
        Limit on their size.

    Returns
    -------
    Fit
        If n images do not fit at the smallest side, `n_images` says how many do.
    """
    chosen = np.linspace(0, len(indices) - 1, min(N_SAMPLES, len(indices))).astype(int).tolist()
    samples = list(_in_parallel(images, lambda i: _try_small(images, indices[i], budget.sides[0]), chosen))
    readable = [sample for sample in samples if sample is not None]
    if not readable:
        return Fit(budget.sides[0], n)
    mean = 0.0
    for side in budget.sides:
        mean = 1.1 * float(np.mean([_encoded_length(sample, side, budget.quality) for sample in readable]))
        if n * mean <= budget.n_bytes:
            return Fit(side, n)
    return Fit(budget.sides[-1], int(budget.n_bytes / mean))


def _encoded_length(image: Image.Image, side: int, quality: int) -> int:
    smaller = image.copy()
    smaller.thumbnail((side, side))
    return len(data_uri(smaller, quality=quality))


def make_thumbnails(
    images: Images, lines: Sequence[int], place: Place, budget: Budget, *, advance: Advance = quiet
) -> dict[int, str]:
    """Make thumbnails within a budget.

    Parameters
    ----------
    images : Images
        Images.
    lines : sequence of int
        Rows, the most important first: the last ones get no thumbnail if the budget is spent.
    place : callable
        Returns the index in `images` of a row.
    budget : Budget
        Limit on their size.
    advance : callable, optional
        Called with the number of finished images.

    Returns
    -------
    dict of int to str
        Data URIs by row.
    """
    side = fit_budget(images, [place(line) for line in lines], len(lines), budget).side

    def make(line: int) -> str | None:
        image = _try_small(images, place(line), side)
        return None if image is None else data_uri(image, quality=budget.quality)

    made: dict[int, str] = {}
    spent = 0
    for line, uri in zip(lines, _in_parallel(images, make, lines), strict=True):
        advance(1)
        if uri is not None and spent + len(uri) <= budget.n_bytes:
            made[line] = uri
            spent += len(uri)
    return made


@dataclass
class Sheets:
    """Many small square images ("tiles") in a few large images, each of `columns` rows and columns.

    Parameters
    ----------
    side : int
        Side of a tile in pixels.
    columns : int
        Tiles per row of a sheet.
    uris : list of str
        Data URIs of the sheets.
    slots : dict of int to int
        Position of each row's tile, counted through all sheets, row by row.
    """

    side: int = 0
    columns: int = SHEET_COLUMNS
    uris: list[str] = field(default_factory=list)
    slots: dict[int, int] = field(default_factory=dict)

    @property
    def per_sheet(self) -> int:
        """Tiles per sheet."""
        return self.columns**2


def make_sheets(
    images: Images, lines: Sequence[int], place: Place, side: int, budget: Budget, *, advance: Advance = quiet
) -> Sheets:
    """Make tiles of rows until the budget is spent.

    Parameters
    ----------
    images : Images
        Images.
    lines : sequence of int
        Rows, in the order in which tiles are made.
    place : callable
        Returns the index in `images` of a row.
    side : int
        Side of a tile in pixels.
    budget : Budget
        Limit on their size.
    advance : callable, optional
        Called with the number of finished images.

    Returns
    -------
    Sheets
    """
    sheets = Sheets(side)
    spent = 0
    for start in range(0, len(lines), sheets.per_sheet):
        part = lines[start : start + sheets.per_sheet]
        tiles = dict(zip(part, _in_parallel(images, lambda line: _tile(images, place(line), side), part), strict=True))
        advance(len(part))
        uri = data_uri(_sheet(list(tiles.values()), side), quality=budget.quality)
        if spent + len(uri) > budget.n_bytes:
            advance(len(lines) - start - len(part))
            break
        first = len(sheets.uris) * sheets.per_sheet
        sheets.slots |= {line: first + i for i, (line, tile) in enumerate(tiles.items()) if tile is not None}
        sheets.uris.append(uri)
        spent += len(uri)
    return sheets


def _sheet(tiles: list[Image.Image | None], side: int) -> Image.Image:
    n_rows = -(-len(tiles) // SHEET_COLUMNS)
    sheet = Image.new("RGB", (SHEET_COLUMNS * side, n_rows * side), "white")
    for position, tile in enumerate(tiles):
        if tile is not None:
            sheet.paste(tile, (position % SHEET_COLUMNS * side, position // SHEET_COLUMNS * side))
    return sheet


def _tile(images: Images, index: int, side: int) -> Image.Image | None:
    try:
        return ImageOps.fit(_decoded(images, index, side), (side, side), method=Image.Resampling.BICUBIC)
    except BrokenImage:
        return None


def _try_small(images: Images, index: int, side: int) -> Image.Image | None:
    """Return None for an image that was removed or damaged since the run."""
    try:
        return small_image(images, index, side)
    except BrokenImage:
        return None


def _in_parallel(images: Images, make: Callable[[int], T], lines: Sequence[int]) -> Iterator[T]:
    """Yield results in order. Pillow decodes without the interpreter's lock.

    Works in slices, so that few results wait at a time. A user's dataset may not be thread-safe: it gets one thread.
    """
    with ThreadPoolExecutor(os.cpu_count() if isinstance(images, EncodedImages | ArrayImages) else 1) as pool:
        for start in range(0, len(lines), SLICE):
            yield from pool.map(make, lines[start : start + SLICE])
