"""CIFAR's Python files. They are pickles, hence untrusted: a pickle can call anything that it is allowed to name."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np

from newkind.data.catalog import ArrayImages
from newkind.data.layouts import Listing, expect_classes
from newkind.data.names import Names
from newkind.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["read_cifar10", "read_cifar100"]

AGAIN = "Take the 'python version' from https://www.cs.toronto.edu/~kriz/cifar.html again."
PIXELS = 3 * 32 * 32


def read_cifar10(folder: Path) -> Listing:
    """The five training batches, in their order."""
    batches = [folder / f"data_batch_{number}" for number in range(1, 6)]
    return _read(batches, labels="labels", meta=folder / "batches.meta", names="label_names", n_classes=10)


def read_cifar100(folder: Path) -> Listing:
    """The training file with its 100 fine labels."""
    return _read(
        [folder / "train"], labels="fine_labels", meta=folder / "meta", names="fine_label_names", n_classes=100
    )


def _read(batches: Sequence[Path], *, labels: str, meta: Path, names: str, n_classes: int) -> Listing:
    class_names = _load(meta).get(names)
    if not (isinstance(class_names, list) and all(isinstance(name, str) for name in class_names)):
        raise DataError(f"{meta}: expected a list of names under '{names}'.", fix=AGAIN)
    expect_classes(meta, len(class_names), n_classes)
    pixels, class_ids = [], []
    for path in batches:
        batch = _load(path)
        pixels.append(_batch_pixels(path, batch))
        class_ids.append(_batch_labels(path, batch, labels=labels, n_images=len(pixels[-1]), n_classes=n_classes))
    stacked = np.concatenate(pixels)  # (N, 32, 32, 3)
    images = ArrayImages(stacked, Names(f"train/{i:05d}" for i in range(len(stacked))))
    return Listing(images=images, class_ids=np.concatenate(class_ids), class_names=tuple(class_names))


def _batch_pixels(path: Path, batch: dict[Any, Any]) -> NDArray[np.uint8]:
    """(n, 32, 32, 3), from rows (n, 3072) of an image each: all of its red, then green, then blue."""
    stored = batch.get("data")
    values = stored.values if isinstance(stored, _StoredArray) else None
    if values is None or values.ndim != 2 or values.shape[1] != PIXELS:
        found = "none" if values is None else values.shape
        raise DataError(f"{path}: expected an array of shape (n, {PIXELS}) under 'data', got {found}.", fix=AGAIN)
    return np.ascontiguousarray(values.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _batch_labels(
    path: Path, batch: dict[Any, Any], *, labels: str, n_images: int, n_classes: int
) -> NDArray[np.int64]:
    values = batch.get(labels)
    if not isinstance(values, list) or len(values) != n_images:
        raise DataError(f"{path}: expected a list of {n_images:,} labels under '{labels}'.", fix=AGAIN)
    for position, value in enumerate(values):
        if not (isinstance(value, int) and 0 <= value < n_classes):
            raise DataError(
                f"{path}: label {position} must lie between 0 and {n_classes - 1}; got {value!r}.", fix=AGAIN
            )
    return np.array(values, dtype=np.int64)


class _StoredType:
    """Stands in for numpy.dtype while a file is read: bytes are the only type that CIFAR stores."""

    __slots__ = ()

    def __init__(self, code: object, *_: object) -> None:
        if code != "u1":
            raise ValueError(f"array of type {code!r}, expected 'u1'")

    def __setstate__(self, state: object) -> None:
        """Byte order and the like: of no meaning for single bytes."""


class _StoredArray:
    """Stands in for numpy's array reconstruction, so that no NumPy code runs on what the file says."""

    __slots__ = ("values",)

    def __init__(self, *_: object) -> None:
        self.values: NDArray[np.uint8] | None = None

    def __setstate__(self, state: tuple[int, tuple[int, ...], _StoredType, bool, str | bytes]) -> None:
        _, shape, kind, column_major, content = state
        if not isinstance(kind, _StoredType):
            raise TypeError("array without a type")
        # Python 2 wrote its bytes as text; read as Latin-1, each character is a byte again.
        raw = content.encode("latin-1") if isinstance(content, str) else content
        self.values = np.frombuffer(raw, dtype=np.uint8).reshape(shape, order="F" if column_major else "C")


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _StoredArray,
    ("numpy._core.multiarray", "_reconstruct"): _StoredArray,
    ("numpy", "dtype"): _StoredType,
    ("numpy", "ndarray"): "numpy.ndarray",  # handed to _reconstruct only; a string cannot be called
    ("_codecs", "encode"): str.encode,  # how Python 3 writes bytes in the old protocols
}


class _CifarUnpickler(pickle.Unpickler):
    """Knows containers, numbers, text and byte arrays, and refuses every other name before it is imported."""

    def find_class(self, module: str, name: str, /) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no CIFAR file needs; nothing was run")
        return _ALLOWED[module, name]


def _load(path: Path) -> dict[Any, Any]:
    try:
        with path.open("rb") as file:
            content = _CifarUnpickler(file, encoding="latin-1").load()
    except FileNotFoundError:
        raise DataError(f"{path} is missing.", fix=AGAIN) from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}).", fix=AGAIN) from None
    except (
        pickle.UnpicklingError,
        ArithmeticError,
        AttributeError,
        EOFError,
        ImportError,
        LookupError,
        MemoryError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise DataError(f"{path} is not a CIFAR file: {error or type(error).__name__}.", fix=AGAIN) from None
    if not isinstance(content, dict):
        raise DataError(f"{path} is not a CIFAR file: expected a dict, got {type(content).__name__}.", fix=AGAIN)
    return content
