"""Images of the items of an export: where they are, how large they are, and where a box is in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from PIL import Image

from newkind.data import BoxImages, FileImages, Images
from newkind.data.boxes import crop_corners
from newkind.data.decoding import PILLOW_ERRORS, open_checked
from newkind.data.items import EncodedImages
from newkind.data.names import printable
from newkind.errors import BrokenImage, RunError
from newkind.report.images import find_run_images
from newkind.runs.run import Run

__all__ = ["ImageFacts", "ItemImages", "open_images"]

ORIENTATION, EXIF, TAKEN, CHANGED = 0x0112, 0x8769, 0x9003, 0x0132
SIDEWAYS = (5, 6, 7, 8)
"""Values of the orientation for which width and height are exchanged when the image is shown."""


@dataclass(frozen=True)
class _Names:
    """Names of the items of a run and its config, as `find_run_images` takes them."""

    files: Sequence[str]
    config: dict[str, Any]

    def __len__(self) -> int:
        return len(self.files)


@dataclass(frozen=True)
class ImageFacts:
    """What the header of an image file says.

    Parameters
    ----------
    width, height : int
        Size of the upright image in pixels.
    media_type : str
        Such as image/jpeg.
    taken : datetime, optional
        Time when the photograph was taken, without a time zone.
    """

    width: int
    height: int
    media_type: str
    taken: datetime | None = None


class ItemImages:
    """Images of the items of a run, by row.

    Parameters
    ----------
    source : Images
        All images.
    place : sequence of int
        Index of each row's image in `source`.
    """

    def __init__(self, source: Images, place: Sequence[int]) -> None:
        self.source, self.place = source, list(place)
        self.boxes = source if isinstance(source, BoxImages) else None
        self.whole: Images = source.source if isinstance(source, BoxImages) else source
        self._facts = cache(self._read_facts)

    @property
    def are_files(self) -> bool:
        """Whether each item is an image file of its own."""
        return isinstance(self.source, FileImages)

    def image_row(self, row: int) -> int:
        """Index in `whole` of the image that an item is, or is in."""
        place = self.place[row]
        return place if self.boxes is None else int(self.boxes.image[place])

    def image_name(self, row: int) -> str:
        """Name of the image that an item is, or is in."""
        return self.whole.names[self.image_row(row)]

    def facts(self, row: int) -> ImageFacts:
        """What the header of the item's image says; RunError (`missing-file`) if it cannot be read."""
        return self._facts(self.image_row(row))

    def box(self, row: int) -> tuple[float, float, float, float] | None:
        """Left, top, width and height of a box as fractions of the image, inside of it; None for a whole image."""
        if self.boxes is None:
            return None
        place, facts = self.place[row], self.facts(row)
        size = (facts.width, facts.height)
        unit = (1.0, 1.0) if self.boxes.is_relative[place] else size
        left, top, right, bottom = (
            min(max(float(value) / unit[k % 2], 0.0), 1.0) for k, value in enumerate(self.boxes.corners[place])
        )
        return left, top, right - left, bottom - top

    def crop(self, row: int) -> tuple[int, int, int, int] | None:
        """Left, top, right and bottom in pixels of the part of the image that the model saw; None for a whole image."""
        found, facts = self.box(row), self.facts(row)
        if found is None or self.boxes is None:
            return None
        left, top, width, height = found
        w, h = facts.width, facts.height
        corners = (left * w, top * h, (left + width) * w, (top + height) * h)
        return crop_corners(corners, (w, h), self.boxes.margin)

    def _read_facts(self, index: int) -> ImageFacts:
        name = self.whole.names[index]
        try:
            if not isinstance(self.whole, EncodedImages):
                width, height = self.whole.open(index).size
                return ImageFacts(width, height, "image/png")
            with open_checked(self.whole.content(index), name=name) as image:
                exif = _exif(image)
                width, height = image.size
                if exif.get(ORIENTATION) in SIDEWAYS:
                    width, height = height, width
                return ImageFacts(width, height, Image.MIME.get(image.format or "", ""), _time(exif))
        except BrokenImage as problem:
            raise _missing(name, str(problem.facts.get("reason", ""))) from None


def open_images(run: Run, files: Sequence[str], data: Path | None = None) -> ItemImages:
    """Find the images of items.

    Parameters
    ----------
    run : Run
        The run.
    files : sequence of str
        Names of the items.
    data : Path, optional
        Folder that contains the images now.

    Returns
    -------
    ItemImages

    Raises
    ------
    RunError
        With the code `no-files` for a run from features, `missing-file` if an image is not there.
    """
    found = find_run_images(_Names(files, run.config()), data=data)
    if found.images is None:
        if found.note.startswith("This run used"):
            raise RunError(f"{run.folder} was made from features, so it has no images.", code="no-files")
        raise _missing(files[0] if files else "", f"searched in {found.searched or 'the data of the run'}")
    for name, place in zip(files, found.place.tolist(), strict=True):
        if place < 0:
            raise _missing(name, "not in the data any more")
    return ItemImages(found.images, found.place.tolist())


def _missing(name: str, reason: str) -> RunError:
    return RunError(
        f"The image {printable(name)} cannot be read ({reason}). Nothing was exported.",
        fix="Name the folder that the images are in now with `data`, or use a format that needs no images, such as csv.",
        code="missing-file",
        file=name,
    )


def _exif(image: Any) -> dict[int, Any]:
    """EXIF values of an image; empty if they are damaged."""
    try:
        exif = image.getexif()
        return dict(exif) | dict(exif.get_ifd(EXIF))
    except PILLOW_ERRORS:
        return {}


def _time(exif: dict[int, Any]) -> datetime | None:
    """Time in EXIF values."""
    for tag in (TAKEN, CHANGED):
        try:
            return datetime.strptime(str(exif.get(tag, "")).strip(" \0"), "%Y:%m:%d %H:%M:%S")
        except ValueError:
            continue
    return None
