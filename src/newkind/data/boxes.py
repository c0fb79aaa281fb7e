"""Boxes in images as items: each box is cropped with a margin and is an image of its own, named `image#box`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from newkind.data.decoding import MIN_SIDE, broken_image
from newkind.data.items import EncodedImages, FileImages, Images
from newkind.data.names import Names

__all__ = ["BoxImages", "crop_corners"]


@dataclass(frozen=True)
class BoxImages(Images):
    """Boxes in image files.

    Parameters
    ----------
    source : EncodedImages
        The images.
    names : sequence of str, length n_boxes
        Unique names, `image#box`.
    image : ndarray of int64, shape (n_boxes,)
        Index of each box's image in `source`.
    corners : ndarray of float64, shape (n_boxes, 4)
        Left, top, right and bottom of each box in the upright image.
    is_relative : ndarray of bool, shape (n_boxes,)
        Whether the corners are fractions of width and height; otherwise they are pixels.
    margin : float, default=0.1
        Margin on each side, as a fraction of the longer side of the box.
    """

    source: EncodedImages
    names: Sequence[str]
    image: NDArray[np.int64]
    corners: NDArray[np.float64]
    is_relative: NDArray[np.bool_]
    margin: float = 0.1
    kind: ClassVar[str] = "box"

    def __len__(self) -> int:
        return len(self.names)

    def content(self, index: int) -> bytes:
        place = repr((self.corners[index].tolist(), bool(self.is_relative[index]), self.margin))
        return self.source.content(int(self.image[index])) + place.encode()

    def identity(self) -> Iterator[bytes]:
        yield self.corners.astype("<f8").tobytes() + self.is_relative.tobytes() + repr(float(self.margin)).encode()
        source = self.source
        if isinstance(source, FileImages):  # images without a box do not matter
            source = FileImages(source.root, Names(source.names[i] for i in np.unique(self.image).tolist()))
        yield from source.identity()

    def open(self, index: int) -> Image.Image:
        return self._crop(index, self.source.open(int(self.image[index])))

    def _crop(self, index: int, image: Image.Image) -> Image.Image:
        """Part of a decoded image that a box shows."""
        width, height = image.size
        scale = (width, height, width, height) if self.is_relative[index] else (1, 1, 1, 1)
        box = [float(value * factor) for value, factor in zip(self.corners[index], scale, strict=True)]
        place = crop_corners(box, (width, height), self.margin)
        name = self.names[index]
        if place is None:
            raise broken_image(name, f"the box is outside of the image ({width} x {height} pixels)", code="box-outside")
        if min(place[2] - place[0], place[3] - place[1]) < MIN_SIDE:
            raise broken_image(name, f"the box is smaller than {MIN_SIDE} x {MIN_SIDE} pixels", code="image-too-small")
        return image.crop(place)


def crop_corners(box: Sequence[float], size: tuple[int, int], margin: float) -> tuple[int, int, int, int] | None:
    """Part of an image to crop for a box: a square around it with a margin, moved into the image where it fits.

    Views are square, so that a crop in the shape of a long box would lose its ends.

    Parameters
    ----------
    box : sequence of 4 float
        Left, top, right and bottom in pixels. Parts outside of the image are cut off first.
    size : tuple of (int, int)
        Width and height of the image.
    margin : float
        Margin on each side, as a fraction of the longer side of the box.

    Returns
    -------
    tuple of 4 int, or None
        Left, top, right and bottom in whole pixels; None if the box is outside of the image.

    Examples
    --------
    >>> crop_corners((40, 40, 60, 50), (100, 100), 0.5)
    (30, 25, 70, 65)
    >>> crop_corners((0, 40, 20, 50), (100, 100), 0.5)
    (0, 25, 40, 65)
    """
    low = [min(max(box[i], 0.0), size[i]) for i in (0, 1)]
    high = [min(max(box[i + 2], 0.0), size[i]) for i in (0, 1)]
    if high[0] <= low[0] or high[1] <= low[1]:
        return None
    side = max(high[0] - low[0], high[1] - low[1]) * (1 + 2 * margin)
    corners = []
    for start, end, length in zip(low, high, size, strict=True):
        first = min(max((start + end - side) / 2, 0.0), max(length - side, 0.0))
        corners.append((min(floor(first), floor(start)), min(max(ceil(first + side), ceil(end)), length)))
    (left, right), (top, bottom) = corners
    return left, top, right, bottom
