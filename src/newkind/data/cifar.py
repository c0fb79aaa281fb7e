"""CIFAR's Python files. They are pickles, hence untrusted: a pickle can call any function that it may import."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np

from newkind.data.items import ArrayImages
from newkind.data.layouts import Listing, check_class_count
from newkind.data.names import Names
from newkind.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["read_cifar10", "read_cifar100"]

DOWNLOAD = "Download the 'python version' from https://www.cs.toronto.edu/~kriz/cifar.html again."
PIXELS = 3 * 32 * 32


def read_cifar10(folder: Path) -> Listing:
    """Read the five training batches, in their order."""
    batches = [folder / f"data_batch_{number}" for number in range(1, 6)]
    return _read(batches, labels="labels", meta=folder / "batches.meta", names="label_names", n_classes=10)


def read_cifar100(folder: Path) -> Listing:
    """Read the training file with its 100 fine labels."""
    return _read(
        [folder / "train"], labels="fine_labels", meta=folder / "meta", names="fine_label_names", n_classes=100
    )


def _read(batches: Sequence[Path], *, labels: str, meta: Path, names: str, n_classes: int) -> Listing:
    """Read batches and the class names; `labels` and `names` are the keys in the files."""
    class_names = _load(meta).get(names)
    if not (isinstance(class_names, list) and all(isinstance(name, str) for name in class_names)):
        raise _damaged(meta, f"expected a list of names under '{names}'")
    check_class_count(meta, len(class_names), n_classes)
    pixels, class_ids = [], []
    for path in batches:
        batch = _load(path)
        pixels.append(_batch_pixels(path, batch))
        class_ids.append(_batch_labels(path, batch, labels=labels, n_images=len(pixels[-1]), n_classes=n_classes))
    stacked = np.concatenate(pixels)  # (N, 32, 32, 3)
    images = ArrayImages(stacked, Names(f"train/{i:05d}" for i in range(len(stacked))))
    return Listing(images=images, class_ids=np.concatenate(class_ids), class_names=tuple(class_names))


def _batch_pixels(path: Path, batch: dict[Any, Any]) -> NDArray[np.uint8]:
    """Pixels (n, 32, 32, 3) from rows (n, 3072), each an image: all red values, then green, then blue."""
    stored = batch.get("data")
    values = stored.values if isinstance(stored, _StoredArray) else None
    if values is None or values.ndim != 2 or values.shape[1] != PIXELS:
        found = "none" if values is None else values.shape
        raise _damaged(path, f"expected an array of shape (n, {PIXELS}) under 'data', got {found}")
    return np.ascontiguousarray(values.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))


def _batch_labels(
    path: Path, batch: dict[Any, Any], *, labels: str, n_images: int, n_classes: int
) -> NDArray[np.int64]:
    """Class ids (n_images,) of a batch."""
    values = batch.get(labels)
    if not isinstance(values, list) or len(values) != n_images:
        raise _damaged(path, f"expected a list of {n_images:,} labels under '{labels}'")
    for position, value in enumerate(values):
        if not (isinstance(value, int) and 0 <= value < n_classes):
            raise _damaged(path, f"label {position} must lie between 0 and {n_classes - 1}, got {value!r}")
    return np.array(values, dtype=np.int64)


class _StoredType:
    """Replacement of numpy.dtype while a file is read: bytes are the only type that CIFAR stores."""

    __slots__ = ()

    def __init__(self, code: object, *_: object) -> None:
        if code != "u1":
            raise ValueError(f"array of type {code!r}, expected 'u1'")

    def __setstate__(self, state: object) -> None:
        """Ignore byte order and the like, which have no meaning for single bytes."""


class _StoredArray:
    """Replacement of NumPy's array reconstruction, so that no NumPy code runs on the contents of the file."""

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
    ("numpy", "ndarray"): "numpy.ndarray",  # only passed to _reconstruct; a string cannot be called
    ("_codecs", "encode"): str.encode,  # how Python 3 writes bytes in the old protocols
}


class _CifarUnpickler(pickle.Unpickler):
    """Unpickler of containers, numbers, text and byte arrays that refuses every other name before it is imported."""

    def find_class(self, module: str, name: str, /) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it needs {module}.{name}, which no CIFAR file needs; no code was run")
        return _ALLOWED[module, name]


def _damaged(path: Path, problem: str) -> DataError:
    """Error for a file that is not an official CIFAR file."""
    return DataError(f"{path}: {problem}.", fix=DOWNLOAD, code="damaged-dataset", path=str(path))


def _load(path: Path) -> dict[Any, Any]:
    """Contents of a CIFAR file."""
    try:
        with path.open("rb") as file:
            content = _CifarUnpickler(file, encoding="latin-1").load()
    except FileNotFoundError:
        raise _damaged(path, "the file is missing") from None
    except OSError as error:
        raise _damaged(path, f"cannot be read ({error.strerror})") from None
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
        raise _damaged(path, f"not a CIFAR file ({error or type(error).__name__})") from None
    if not isinstance(content, dict):
        raise _damaged(path, f"not a CIFAR file (expected a dict, got {type(content).__name__})")
    return content
