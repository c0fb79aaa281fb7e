"""Collections from .npz files with images or features."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind.data.arrays import from_arrays, from_features
from newkind.data.catalog import Collection
from newkind.data.names import printable
from newkind.data.npy import NUMPY_ERRORS
from newkind.data.zip_errors import ZIP_ERRORS
from newkind.errors import DataError

__all__ = ["read_npz"]

LISTS = ("labels", "truth", "names", "class_names")
USED = (*LISTS, "images", "features")
MANY_NAMES = 20


def read_npz(path: str | os.PathLike[str]) -> Collection:
    """Read an .npz file written with `numpy.savez`.

    Parameters
    ----------
    path : path-like
        File with the array `labels`, one of `images` and `features`, and optionally `truth`, `class_names` and `names`;
        see `from_arrays` and `from_features`. Pickled objects are refused, and other arrays are not read.

    Returns
    -------
    Collection
        Items are `ArrayImages` or `Features`.

    Raises
    ------
    DataError
        If the file cannot be read or the arrays do not fit.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "features.npz"
    >>> np.savez(path, features=np.eye(3), labels=["bee", "wasp", ""])
    >>> read_npz(path).catalog.class_names
    ('bee', 'wasp')
    """
    path = Path(path)
    held = _arrays_in(path)
    kinds = [key for key in ("images", "features") if key in held]
    for key, array in held.items():
        if (key in LISTS and array.ndim != 1) or (key in kinds and array.ndim == 0):
            expected = "one dimension" if key in LISTS else "one row per item"
            raise DataError(
                f"{path}: `{key}` has shape {array.shape}; expected {expected}.",
                code="array-shape",
                array=key,
                shape=array.shape,
            )
    collection = (from_arrays if kinds == ["images"] else from_features)(
        held[kinds[0]],
        held["labels"].tolist(),
        truth=held["truth"].tolist() if "truth" in held else None,
        class_names=[str(name) for name in held.get("class_names", ())],
        names=[str(name) for name in held["names"]] if "names" in held else None,
        origin=str(path),
    )
    return replace(collection, location=os.path.abspath(path))


def _arrays_in(path: Path) -> dict[str, NDArray[Any]]:
    """Arrays of an .npz file by name: only those that are used; the others may be anything."""
    try:
        with open(path, "rb") as file:  # NumPy would leave a damaged file open
            archive = np.load(file, allow_pickle=False)
            if not isinstance(archive, np.lib.npyio.NpzFile):
                raise ValueError("it contains one array without a name; save it with np.savez")
            with archive:
                _check_names(path, archive.files)
                held = {key: archive[key] for key in archive.files if key in USED}
    except DataError:
        raise
    except (*NUMPY_ERRORS, *ZIP_ERRORS) as error:
        raise DataError(
            f"{path} cannot be read as an .npz file without pickled objects ({error}).",
            code="unreadable",
            path=str(path),
        ) from None
    for key, array in held.items():
        if not isinstance(array, np.ndarray):
            raise DataError(
                f"{path}: '{printable(key)}' is not an array.",
                fix="Save it with np.savez.",
                code="not-an-array",
                array=key,
            )
    return held


def _check_names(path: Path, names: Sequence[str]) -> None:
    """Raise DataError unless a file with arrays of these names has labels and either images or features."""
    if "labels" in names and ("images" in names) != ("features" in names):
        return
    shown = sorted(names)[:MANY_NAMES]
    more = f" and {len(names) - len(shown):,} more" if len(names) > len(shown) else ""
    raise DataError(
        f"{path} contains {', '.join(map(printable, shown)) or 'nothing'}{more}; expected the arrays labels, and images or "
        "features.",
        code="missing-array",
        path=str(path),
        arrays=sorted(names),
    )
