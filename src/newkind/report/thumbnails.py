"""Small pictures for the page: light, stripped of everything but pixels, within a budget of bytes."""

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

from newkind.data import ArrayImages, FileImages, Images
from newkind.data.decoding import PILLOW_ERRORS, open_checked, to_rgb
from newkind.errors import BrokenImage

__all__ = ["Sheets", "data_uri", "fit_side", "make_sheets", "make_thumbnails", "small_picture"]

KIND = "webp" if pillow.check("webp") else "jpeg"
SIDES = (192, 160, 128, 112, 96, 80, 64)
SHEET_SIDES = (96, 72, 56, 48, 40, 32)
QUALITY, SHEET_QUALITY = 62, 55
N_SAMPLES = 32
LONGEST = 2.0
"""A picture more than twice as long as it is wide is cut in the middle: its thumbnail would be a thread."""
COLUMNS = 16
T = TypeVar("T")
Place = Callable[[int], int]


def small_picture(images: Images, index: int, side: int) -> Image.Image:
    """The picture, at most `side` pixels long; pixels only, no metadata. Raises BrokenImage."""
    picture = _decoded(images, index, 2 * side)
    width, height = picture.size
    short = min(width, height)
    if max(width, height) > LONGEST * short:
        size = (min(width, int(LONGEST * short)), min(height, int(LONGEST * short)))
        picture = ImageOps.fit(picture, size, method=Image.Resampling.BOX)
    picture.thumbnail((side, side), Image.Resampling.LANCZOS, reducing_gap=2.0)
    clean = Image.new("RGB", picture.size)  # without the EXIF data, profile and comments of the original
    clean.paste(picture)
    return clean


def _decoded(images: Images, index: int, side: int) -> Image.Image:
    """The whole picture, upright RGB; a JPEG is decoded at a fraction of its size, but not below `side`."""
    if not isinstance(images, FileImages):
        return images.open(index)
    name = images.names[index]
    with open_checked(images.content(index), name=name) as image:
        try:
            image.draft("RGB", (side, side))
            image.load()
            return to_rgb(ImageOps.exif_transpose(image))
        except PILLOW_ERRORS as error:
            raise BrokenImage(f"{name}: broken ({error}).") from None


def data_uri(picture: Image.Image, *, quality: int = QUALITY) -> str:
    """As the `src` of an image."""
    content = io.BytesIO()
    picture.save(content, KIND, quality=quality, method=2)  # half the time of 4, for 4 % more bytes
    return f"data:image/{KIND};base64,{base64.b64encode(content.getvalue()).decode()}"


def fit_side(images: Images, indices: Sequence[int], n: int, *, budget: int, sides: Sequence[int], quality: int) -> int:
    """The largest side for which `n` thumbnails, judged by a sample of `indices`, take no more than `budget` bytes."""
    chosen = np.linspace(0, len(indices) - 1, min(N_SAMPLES, len(indices))).astype(int)
    samples = [
        p for p in _in_parallel(images, lambda i: _try(images, indices[i], sides[0]), chosen.tolist()) if p is not None
    ]
    if not samples:
        return sides[0]
    for side in sides[:-1]:
        lengths = []
        for sample in samples:
            smaller = sample.copy()
            smaller.thumbnail((side, side))
            lengths.append(len(data_uri(smaller, quality=quality)))
        if 1.1 * n * sum(lengths) / len(lengths) <= budget:
            return side
    return sides[-1]


def make_thumbnails(
    images: Images, wanted: Sequence[int], place: Place, *, budget: int, advance: Callable[[int], None]
) -> dict[int, str]:
    """Data URIs by line. The lines come in order of importance: when the budget is spent, the rest goes without."""
    side = fit_side(images, [place(i) for i in wanted], len(wanted), budget=budget, sides=SIDES, quality=QUALITY)

    def make(line: int) -> str | None:
        picture = _try(images, place(line), side)
        return None if picture is None else data_uri(picture)

    made: dict[int, str] = {}
    spent = 0
    for line, uri in zip(wanted, _in_parallel(images, make, wanted), strict=True):
        advance(1)
        if uri is not None and spent + len(uri) <= budget:
            made[line] = uri
            spent += len(uri)
    return made


@dataclass
class Sheets:
    """Many tiny square pictures on a few large ones."""

    side: int
    columns: int = COLUMNS
    uris: list[str] = field(default_factory=list)
    slots: dict[int, int] = field(default_factory=dict)
    """Line -> its place, counted through all sheets, row by row."""

    @property
    def per_sheet(self) -> int:
        return self.columns**2


def make_sheets(
    images: Images, wanted: Sequence[int], place: Place, *, budget: int, advance: Callable[[int], None]
) -> Sheets:
    """Tiny pictures for the map, as many as the budget allows."""
    indices = [place(i) for i in wanted]
    # On a sheet, pictures share one header: a little less than each by itself.
    side = fit_side(images, indices, len(wanted), budget=budget, sides=SHEET_SIDES, quality=SHEET_QUALITY)
    sheets = Sheets(side)
    spent = 0
    for start in range(0, len(wanted), sheets.per_sheet):
        lines = wanted[start : start + sheets.per_sheet]
        rows = -(-len(lines) // sheets.columns)
        sheet = Image.new("RGB", (sheets.columns * side, rows * side), "white")
        slots = {}
        tiles = _in_parallel(images, lambda line: _tile(images, place(line), side), lines)
        for position, (line, tile) in enumerate(zip(lines, tiles, strict=True)):
            advance(1)
            if tile is not None:
                sheet.paste(tile, (position % sheets.columns * side, position // sheets.columns * side))
                slots[line] = len(sheets.uris) * sheets.per_sheet + position
        uri = data_uri(sheet, quality=SHEET_QUALITY)
        if spent + len(uri) > budget:
            advance(len(wanted) - start - len(lines))
            break
        spent += len(uri)
        sheets.uris.append(uri)
        sheets.slots |= slots
    return sheets


def _tile(images: Images, index: int, side: int) -> Image.Image | None:
    try:
        return ImageOps.fit(_decoded(images, index, side), (side, side), method=Image.Resampling.BICUBIC)
    except BrokenImage:
        return None


def _try(images: Images, index: int, side: int) -> Image.Image | None:
    """None for a picture that is gone or broken by now."""
    try:
        return small_picture(images, index, side)
    except BrokenImage:
        return None


def _in_parallel(images: Images, make: Callable[[int], T], lines: Sequence[int]) -> Iterator[T]:
    """In order, in slices, so that what is done ahead stays small. Pillow decodes without the interpreter's lock.

    A dataset of somebody else's may not bear several threads.
    """
    with ThreadPoolExecutor(os.cpu_count() if isinstance(images, FileImages | ArrayImages) else 1) as pool:
        for start in range(0, len(lines), 512):
            yield from pool.map(make, lines[start : start + 512])
