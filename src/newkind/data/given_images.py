"""Images that a user hands over in Python: paths, bytes of image files, PIL images and arrays, also mixed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from newkind.data.decoding import MIN_SIDE, PILLOW_ERRORS, broken_image, decode
from newkind.data.items import FileImages, Images
from newkind.data.names import Names
from newkind.data.rgb import to_rgb

__all__ = ["GivenImages", "flat_inputs"]

BYTES = (bytes, bytearray, memoryview)


@dataclass(frozen=True)
class GivenImages(Images):
    """Images of any of these kinds. What is none of them cannot be read, as a broken file.

    Parameters
    ----------
    sources : sequence of str, path, bytes, PIL.Image.Image or ndarray of uint8
        Image files, their contents, opened images, or pixels (H, W), (H, W, 1), (H, W, 3) or (H, W, 4).
    names : Names of length n_images
        Names in results.

    Examples
    --------
    >>> images = GivenImages.named([Image.new("L", (8, 6)), None])
    >>> list(images.names), images.open(0).size
    (['image-0', 'image-1'], (8, 6))
    """

    sources: Sequence[Any]
    names: Names

    @classmethod
    def named(cls, sources: Sequence[Any]) -> GivenImages:
        """Name files by their paths, and everything else by its position."""
        names = (os.fspath(x) if isinstance(x, str | os.PathLike) else f"image-{i}" for i, x in enumerate(sources))
        return cls(sources, Names(names))

    def __len__(self) -> int:
        return len(self.sources)

    def content(self, index: int) -> bytes:
        encoded = self._encoded(index)
        if encoded is not None:
            return encoded
        image = self.open(index)
        return str(image.size).encode() + image.tobytes()

    def open(self, index: int) -> Image.Image:
        encoded = self._encoded(index)
        return self._opened(index) if encoded is None else decode(encoded, name=self.names[index])

    def open_reduced(self, index: int, *, shorter_side: int) -> Image.Image:
        encoded = self._encoded(index)
        if encoded is None:
            return self._opened(index)
        return decode(encoded, name=self.names[index], shorter_side=shorter_side)

    def _encoded(self, index: int) -> bytes | None:
        """Content of an image file; None for pixels."""
        source = self.sources[index]
        if isinstance(source, str | os.PathLike):
            return FileImages(Path(), Names([os.fspath(source)])).content(0)
        return bytes(source) if isinstance(source, BYTES) else None

    def _opened(self, index: int) -> Image.Image:
        """Upright RGB image of what is in memory."""
        source, name = self.sources[index], self.names[index]
        try:
            image = Image.fromarray(_pixels(source)) if isinstance(source, np.ndarray) else source
            if not isinstance(image, Image.Image):
                raise TypeError(f"{type(source).__name__} is not an image")
            rgb = to_rgb(ImageOps.exif_transpose(image))
        except PILLOW_ERRORS as error:
            raise broken_image(name, f"cannot be used ({error})", code="not-an-image") from None
        if min(rgb.size) < MIN_SIDE:
            reason = f"too small ({rgb.width} x {rgb.height} pixels, at least {MIN_SIDE} x {MIN_SIDE} are needed)"
            raise broken_image(name, reason, code="image-too-small")
        return rgb


def _pixels(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Pixels of one image as Pillow wants them; a ValueError names another dtype or shape."""
    if array.dtype != np.uint8 or not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (1, 3, 4))):
        raise ValueError(f"{array.dtype} of shape {array.shape} instead of uint8 of shape (H, W) or (H, W, C)")
    return array[..., 0] if array.ndim == 3 and array.shape[2] == 1 else array


def flat_inputs(inputs: Sequence[Any]) -> list[Any]:
    """Inputs one by one: those that are lists, columns or arrays of several are replaced by their elements.

    Examples
    --------
    >>> len(flat_inputs(["a.jpg", ["b.jpg", "c.jpg"], np.array(["d.jpg"])]))
    4
    """
    found: list[Any] = []
    for given in inputs:
        found += list(given) if _is_several(given) else [given]
    return found


def _is_several(given: Any) -> bool:
    """Whether an input is a collection of images, not one image."""
    if isinstance(given, (str, os.PathLike, Image.Image, *BYTES)) or not isinstance(given, Iterable):
        return False
    if isinstance(given, np.ndarray) and given.dtype == np.uint8:
        return given.ndim == 4
    return True
