"""Boxes that a .json file lists: the images, their boxes, and what else is said about them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from newkind.data.names import printable
from newkind.data.table_rows import plain_name
from newkind.errors import DataError
from newkind.schema import InvalidJson, json_text, read_json_file

__all__ = ["Box", "BoxedImage", "bad_file", "corners_of", "file_of", "load_json", "probability_of"]


@dataclass(frozen=True)
class Box:
    """One box of an image.

    Parameters
    ----------
    number : int
        Number of the box in its image, counted from 1 in the order of the file.
    corners : tuple of 4 float
        Left, top, right and bottom.
    is_relative : bool
        Whether the corners are fractions of width and height; otherwise they are pixels.
    confidence : float, optional
        Confidence of the detector; None for a box that a person has drawn.
    category : str, default=""
        Category of the detector, or class of the box.
    metadata : mapping of str to str, default={}
        What else the file says about the box.
    """

    number: int
    corners: tuple[float, float, float, float]
    is_relative: bool
    confidence: float | None = None
    category: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether the box has no area inside of the image, as far as that is known without the image."""
        left, top, right, bottom = self.corners
        most = 1.0 if self.is_relative else math.inf
        return min(right, most) <= max(left, 0.0) or min(bottom, most) <= max(top, 0.0)


@dataclass(frozen=True)
class BoxedImage:
    """An image that a file lists.

    Parameters
    ----------
    file : str
        Normalised name of the image file.
    boxes : list of Box
        Its boxes.
    classes : tuple of str, default=()
        Classes of the whole image (COCO Camera Traps).
    problem : str, default=""
        Why the detector could not read the image.
    metadata : mapping of str to str, default={}
        What else the file says about the image.
    """

    file: str
    boxes: list[Box]
    classes: tuple[str, ...] = ()
    problem: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


def load_json(path: Path) -> Any:
    """Content of a .json file; DataError if it cannot be read."""
    try:
        return read_json_file(path, object, any_number=True)
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}).", code="unreadable", path=str(path)) from None
    except InvalidJson as error:
        what = f"{path} is not readable JSON ({printable(str(error)[:200])})."
        raise DataError(what, code="unreadable", path=str(path)) from None


def bad_file(path: Path, where: str, expected: str, *, code: str = "bad-boxes") -> DataError:
    """Error for a file whose content is not as it should be."""
    place = f"{path}, {where}" if where else str(path)
    return DataError(f"{place}: expected {expected}.", code=code, path=str(path), where=where)


def file_of(path: Path, where: str, value: Any) -> str:
    """Normalised file name of a JSON value."""
    if not isinstance(value, str) or not value.strip():
        raise bad_file(path, where, "the name of an image file")
    return plain_name(value)


def corners_of(path: Path, where: str, value: Any, *, with_size: bool) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of a JSON value; `with_size` if it has width and height instead of the last two."""
    is_box = isinstance(value, list) and len(value) == 4 and all(map(_is_number, value))
    if not is_box:
        raise bad_file(path, where, f"a box of four numbers, got {printable(json_text(value)[:80])}", code="bad-box")
    left, top, third, fourth = map(float, value)
    return (left, top, left + third, top + fourth) if with_size else (left, top, third, fourth)


def probability_of(path: Path, where: str, value: Any) -> float:
    """Confidence of a JSON value, between 0 and 1."""
    if not _is_number(value) or not 0 <= value <= 1.000001:  # rounded by the detector
        raise bad_file(
            path, where, f"a confidence between 0 and 1, got {printable(json_text(value)[:80])}", code="bad-box"
        )
    return float(value)


def _is_number(value: Any) -> bool:
    # The bound comes first: Python cannot convert a whole number of 400 digits to a float.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12
