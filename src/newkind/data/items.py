"""Items of a catalog: image files, image arrays, images of a dataset object, or precomputed features."""

from __future__ import annotations

import hashlib
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from newkind.data.decoding import MIN_SIDE, broken_image, decode
from newkind.data.feature_scale import check_scale
from newkind.data.names import Names
from newkind.data.rgb import to_rgb
from newkind.errors import BrokenImage, DataError
from newkind.mapped import drop_pages

__all__ = ["ArrayImages", "DatasetImages", "EncodedImages", "Features", "FileImages", "Images", "file_size"]

MAX_FILE_BYTES = 2**29
"""Largest image file; it is read as a whole."""
ROWS_PER_CHECK = 65536
"""Rows checked for NaN at a time, so that a memory-mapped array does not have to fit in memory."""


class Images(ABC):
    """Base class of image sources.

    Attributes
    ----------
    names : sequence of str
        Unique names, which identify the images in results.

    Examples
    --------
    >>> images = ArrayImages(np.zeros((2, 8, 12, 3), dtype=np.uint8), ["a", "b"])
    >>> len(images), images.open(0).size, images.content(0) == images.content(1)
    (2, (12, 8), True)
    """

    names: Sequence[str]
    kind: ClassVar[str] = "array"
    """What is written for the format of images that are not files."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def content(self, index: int) -> bytes:
        """Return the bytes that identify an image: images with equal content are duplicates.

        Parameters
        ----------
        index : int
            Position of the image.

        Returns
        -------
        bytes
            The file, or the size and the pixels of an image in memory.

        Raises
        ------
        BrokenImage
            If the image cannot be read.
        """

    @abstractmethod
    def open(self, index: int) -> Image.Image:
        """Decode an image.

        Parameters
        ----------
        index : int
            Index into `names`.

        Returns
        -------
        PIL.Image.Image
            Upright RGB image.

        Raises
        ------
        BrokenImage
            If the image cannot be decoded.
        """

    def open_reduced(self, index: int, *, shorter_side: int) -> Image.Image:  # noqa: ARG002 - for subclasses
        """Decode an image, not necessarily with all of its pixels.

        Parameters
        ----------
        index : int
            Index into `names`.
        shorter_side : int
            Shorter side in pixels that is enough. Large JPEG files are decoded faster at a half, a quarter or an eighth of
            their size.

        Returns
        -------
        PIL.Image.Image
            Upright RGB image.

        Raises
        ------
        BrokenImage
            If the image cannot be decoded.
        """
        return self.open(index)

    def open_content(self, index: int, content: bytes, *, shorter_side: int | None = None) -> Image.Image:  # noqa: ARG002
        """Decode an image whose content was just read.

        Parameters
        ----------
        index : int
            Index into `names`.
        content : bytes
            What `content(index)` returned.
        shorter_side : int, optional
            As in `open_reduced`. Default: all pixels.

        Returns
        -------
        PIL.Image.Image
            Upright RGB image.
        """
        return self.open(index) if shorter_side is None else self.open_reduced(index, shorter_side=shorter_side)

    def identity(self) -> Iterator[bytes]:
        """Tell these images from others with the same names; of image files and archives, without reading all of them.

        Yields
        ------
        bytes
            The same for the same images: a digest of the content of each image, or what a subclass has instead.
        """
        for index in range(len(self)):
            try:
                yield hashlib.sha256(self.content(index)).digest()
            except BrokenImage:
                yield b""


class EncodedImages(Images):
    """Images whose content is that of an image file, in a file of their own or in an archive."""

    def open(self, index: int) -> Image.Image:
        return self.open_content(index, self.content(index))

    def open_reduced(self, index: int, *, shorter_side: int) -> Image.Image:
        return self.open_content(index, self.content(index), shorter_side=shorter_side)

    def open_content(self, index: int, content: bytes, *, shorter_side: int | None = None) -> Image.Image:
        return decode(content, name=self.names[index], shorter_side=shorter_side)


@dataclass(frozen=True)
class FileImages(EncodedImages):
    """Image files.

    Parameters
    ----------
    root : Path
        Folder that relative names start from.
    names : Names of length n_images
        Paths of the files, relative to `root` or absolute.
    """

    root: Path
    names: Names

    def __len__(self) -> int:
        return len(self.names)

    def path(self, index: int) -> Path:
        """Return the path of an image file.

        Parameters
        ----------
        index : int
            Index into `names`.

        Returns
        -------
        Path
        """
        return self.root / self.names[index]

    def n_bytes(self, index: int) -> int:
        """Return the size of an image file.

        Parameters
        ----------
        index : int
            Index into `names`.

        Returns
        -------
        int
            Size in bytes; -1 if there is no such file.
        """
        return file_size(os.path.join(self.root, self.names[index]))

    def identity(self) -> Iterator[bytes]:
        for index in range(len(self)):
            yield str(self.n_bytes(index)).encode()

    def content(self, index: int) -> bytes:
        try:
            with open(self.path(index), "rb", opener=_open_without_waiting) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise broken_image(self.names[index], "not a regular file", code="not-a-file")
                if (n_bytes := os.fstat(file.fileno()).st_size) > MAX_FILE_BYTES:
                    reason = f"too large ({n_bytes / 1e6:,.0f} MB, the limit is {MAX_FILE_BYTES / 1e6:,.0f} MB)"
                    raise broken_image(self.names[index], reason, code="image-too-large")
                return file.read()
        except OSError as error:
            reason = f"cannot be read ({error.strerror})"
            raise broken_image(self.names[index], reason, code="unreadable") from None
        except BrokenImage:  # which is a ValueError
            raise
        except ValueError:
            raise broken_image(self.names[index], "a name that no file can have", code="unreadable") from None


def file_size(path: str | bytes) -> int:
    """Size of a file in bytes; -1 if there is none."""
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):  # a name that no file can have
        return -1


def _open_without_waiting(path: str, flags: int) -> int:
    """Open a file such that opening a named pipe returns at once, even if nothing ever writes to it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # Windows has neither


@dataclass(frozen=True)
class ArrayImages(Images):
    """Images in memory, or memory-mapped.

    Parameters
    ----------
    pixels : ndarray of uint8, shape (n_images, H, W) or (n_images, H, W, C)
        Grey values, or C = 1 (grey), 3 (RGB) or 4 (RGBA) channels.
    names : sequence of str, length n_images
        Unique names.

    Raises
    ------
    DataError
        If the dtype or the shape is another one, or the images are smaller than 4 x 4 pixels.
    """

    pixels: NDArray[np.uint8]
    names: Sequence[str]

    def __post_init__(self) -> None:
        shape, dtype = self.pixels.shape, self.pixels.dtype
        if dtype != np.uint8 or not (len(shape) == 3 or (len(shape) == 4 and shape[3] in (1, 3, 4))):
            raise DataError(
                "Image arrays must be uint8 of shape (N, H, W), (N, H, W, 1), (N, H, W, 3) or (N, H, W, 4), "
                f"got {dtype} of shape {shape}.",
                fix="For (N, 3, H, W) use images.transpose(0, 2, 3, 1); for values in 0-1 use (images * 255).astype('uint8').",
                code="image-array",
                dtype=str(dtype),
                shape=shape,
            )
        if min(shape[1:3]) < MIN_SIDE:
            raise DataError(
                f"Images must have at least {MIN_SIDE} x {MIN_SIDE} pixels, got an array of shape {shape}.",
                code="image-too-small",
                shape=shape,
            )

    def __len__(self) -> int:
        return len(self.pixels)

    def content(self, index: int) -> bytes:
        pixels = np.ascontiguousarray(self.pixels[index])
        return str(pixels.shape).encode() + pixels.tobytes()

    def open(self, index: int) -> Image.Image:
        pixels = self.pixels[index]
        return to_rgb(Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 and pixels.ndim == 3 else pixels))


@dataclass(frozen=True)
class DatasetImages(Images):
    """Images that a torchvision-style dataset returns as the first element of each item.

    Parameters
    ----------
    dataset : object
        Object whose `dataset[index]` returns a tuple that starts with a PIL image. If it is another object, `open` raises
        DataError (`not-pil-images`).
    names : sequence of str, length n_images
        Unique names.
    """

    dataset: Any
    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.names)

    def content(self, index: int) -> bytes:
        image = self.open(index)
        return str(image.size).encode() + image.tobytes()

    def open(self, index: int) -> Image.Image:
        image = self.dataset[index][0]
        if not isinstance(image, Image.Image):
            raise DataError(
                f"The dataset returns {type(image).__name__}, expected PIL images.",
                fix="Create it with transform=None; Newkind makes its own views.",
                code="not-pil-images",
                found=type(image).__name__,
            )
        return to_rgb(image)


@dataclass(frozen=True)
class Features:
    """Precomputed features of any kind of data; no backbone is used on them.

    Parameters
    ----------
    values : ndarray of float, shape (n_items, n_features)
        Finite values.
    names : sequence of str, length n_items
        Unique names.

    Raises
    ------
    DataError
        If the dtype or the shape is another one, or a value is NaN, infinite, or too large or too small for float32.

    Examples
    --------
    >>> len(Features(np.eye(3), ["a", "b", "c"]))
    3
    """

    values: NDArray[np.floating[Any]]
    names: Sequence[str]

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] == 0 or not np.issubdtype(self.values.dtype, np.floating):
            raise DataError(
                "Features must be a floating-point array of shape (N, d) with d at least 1, "
                f"got {self.values.dtype} of shape {self.values.shape}.",
                code="feature-array",
                dtype=str(self.values.dtype),
                shape=self.values.shape,
            )
        for start in range(0, len(self.values), ROWS_PER_CHECK):
            check_scale(self.values[start : start + ROWS_PER_CHECK], start)
            drop_pages(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def identity(self) -> Iterator[bytes]:
        """Tell these features from others with the same names.

        Yields
        ------
        bytes
            Type and number of the columns, and digests of the values.
        """
        yield f"{self.values.dtype.str} {self.values.shape[1]}".encode()
        for start in range(0, len(self.values), ROWS_PER_CHECK):
            yield hashlib.sha256(np.ascontiguousarray(self.values[start : start + ROWS_PER_CHECK]).data).digest()
            drop_pages(self.values)
