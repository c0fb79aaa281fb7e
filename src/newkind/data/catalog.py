"""What a method may see (Catalog), and what only the scores may see (Truth)."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from newkind.data.decoding import MIN_SIDE, decode, to_rgb
from newkind.data.names import Names
from newkind.errors import BrokenImage, DataError

__all__ = [
    "ArrayImages",
    "Catalog",
    "Collection",
    "DatasetImages",
    "Features",
    "FileImages",
    "Images",
    "Skipped",
    "Truth",
    "find_obstacles",
]

UNLABELLED = -1


class Images(Protocol):
    """Where the pictures are. `names` are unique and are what results speak of."""

    @property
    def names(self) -> Sequence[str]: ...
    def __len__(self) -> int: ...
    def content(self, index: int) -> bytes:
        """The bytes that make this image what it is: two images with the same content are the same image."""
        ...

    def open(self, index: int) -> Image.Image:
        """The picture, upright RGB. Raises BrokenImage."""
        ...


@dataclass(frozen=True)
class FileImages:
    """Image files; names are paths relative to `root` (absolute ones stand for themselves)."""

    root: Path
    names: Names

    def __len__(self) -> int:
        return len(self.names)

    def path(self, index: int) -> Path:
        return self.root / self.names[index]

    def content(self, index: int) -> bytes:
        try:
            with open(self.path(index), "rb", opener=_open_without_waiting) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise BrokenImage(f"{self.names[index]}: not a regular file.")
                return file.read()
        except OSError as error:
            raise BrokenImage(f"{self.names[index]}: cannot be read ({error.strerror}).") from None

    def open(self, index: int) -> Image.Image:
        return decode(self.content(index), name=self.names[index])


def _open_without_waiting(path: str, flags: int) -> int:
    """A pipe is opened at once, even if nobody ever writes to it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # Windows has neither


@dataclass(frozen=True)
class ArrayImages:
    """Images in memory: uint8, (N, H, W) grey or (N, H, W, 3) RGB or (N, H, W, 4) RGBA."""

    pixels: NDArray[np.uint8]
    names: Sequence[str]

    def __post_init__(self) -> None:
        shape, dtype = self.pixels.shape, self.pixels.dtype
        if dtype != np.uint8 or not (len(shape) == 3 or (len(shape) == 4 and shape[3] in (1, 3, 4))):
            raise DataError(
                f"Image arrays are uint8 of shape (N, H, W), (N, H, W, 3) or (N, H, W, 4); got {dtype} {shape}.",
                fix="For (N, 3, H, W) use images.transpose(0, 2, 3, 1); for values in 0-1 use (images * 255).astype('uint8').",
            )
        if min(shape[1:3]) < MIN_SIDE:
            raise DataError(
                f"Images of at least {MIN_SIDE} x {MIN_SIDE} pixels are needed; got an array of shape {shape}."
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
class DatasetImages:
    """Images that a torchvision-style dataset yields as the first element of each item."""

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
                f"The dataset yields {type(image).__name__}, not PIL images.",
                fix="Build it with transform=None: Newkind makes its own views.",
            )
        return to_rgb(image)


@dataclass(frozen=True)
class Features:
    """Ready features (N, d) of any modality; no backbone is run on them."""

    values: NDArray[np.floating[Any]]
    names: Sequence[str]

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or self.values.shape[1] == 0 or not np.issubdtype(self.values.dtype, np.floating):
            raise DataError(
                f"Features are a floating-point array of shape (N, d), d at least 1; got {self.values.dtype} {self.values.shape}."
            )
        for start in range(0, len(self.values), 65536):
            bad = np.flatnonzero(~np.isfinite(self.values[start : start + 65536]).all(axis=1))
            if bad.size:
                raise DataError(
                    f"Feature row {start + bad[0]} has NaN or infinite values.", fix="Drop or repair that row."
                )

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """Everything that a method is allowed to know: the items, the given labels, the known classes' names."""

    items: Images | Features
    labels: NDArray[np.int32]
    """(N,), an index into `class_names`, or -1 for an unlabelled item."""
    class_names: tuple[str, ...]
    """The known classes."""

    def __post_init__(self) -> None:
        if self.labels.shape != (len(self.items),):
            raise DataError(
                f"{len(self.items)} items but labels of shape {self.labels.shape}; expected one label an item."
            )
        if self.labels.size and not (self.labels.min() >= -1 and self.labels.max() < len(self.class_names)):
            raise DataError(
                f"Labels must lie between -1 and {len(self.class_names) - 1} for {len(self.class_names)} classes; "
                f"got {self.labels.min()} to {self.labels.max()}."
            )

    def __len__(self) -> int:
        return len(self.items)

    @property
    def is_labelled(self) -> NDArray[np.bool_]:
        return np.not_equal(self.labels, UNLABELLED)

    @property
    def n_known_classes(self) -> int:
        return len(self.class_names)

    def counts(self) -> NDArray[np.int64]:
        """Labelled items of each known class, (n_known_classes,)."""
        return np.bincount(self.labels[self.is_labelled], minlength=self.n_known_classes)


@dataclass(frozen=True, kw_only=True)
class Truth:
    """The right answers. Methods are never handed this; only the evaluation is."""

    labels: NDArray[np.int32]
    """(N,), an index into `class_names`, or -1 where the truth is not known."""
    class_names: tuple[str, ...]
    """The known (Old) classes in the catalog's order, then the New ones."""
    n_old: int
    """How many of `class_names` are Old."""

    @property
    def is_old(self) -> NDArray[np.bool_]:
        """(N,): the sample's true class is an Old one."""
        return (self.labels >= 0) & (self.labels < self.n_old)


@dataclass(frozen=True)
class Skipped:
    """A file that was left out, and why."""

    name: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Collection:
    """What a source gives: the catalog, the truth if it carries one, and what was left out."""

    catalog: Catalog
    truth: Truth | None = None
    skipped: tuple[Skipped, ...] = ()
    origin: str = ""
    """Where it came from, as the user would name it."""
    benchmark: str = ""
    """Name of the published benchmark; empty for a user's own data, whatever its folder is called."""
    location: str = ""
    """Value of `data` with which `open_data` opens the same data from any folder; empty for data in memory."""
    notes: tuple[str, ...] = ()
    """What the user should know about this data, in sentences."""


def find_obstacles(labels: NDArray[np.int32], class_names: Sequence[str]) -> list[DataError]:
    """Why nothing can be discovered from these labels (N,); empty if everything is in place."""
    n_labelled = int((labels != UNLABELLED).sum())
    found = []
    if n_labelled == 0:
        found.append(
            DataError(
                "No image is labelled.", fix="Put some images of each known class into a subfolder with its name."
            )
        )
    elif n_labelled == len(labels):
        found.append(
            DataError(
                "Every image is labelled: nothing is left to sort.",
                fix="Put the images to be sorted into a subfolder called 'unlabelled', or leave their label empty.",
            )
        )
    if n_labelled and len(class_names) == 1:
        found.append(
            DataError(
                f"There is only one known class ('{class_names[0]}').",
                fix="At least two are needed to learn what tells classes apart: label some images of another one.",
            )
        )
    return found
