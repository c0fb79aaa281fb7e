"""Collections from .npy files with features or images, and their labels in another file."""

from __future__ import annotations

import os
import tokenize
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind.data.arrays import from_arrays, from_features
from newkind.data.catalog import Collection
from newkind.data.groups import encode_groups
from newkind.data.labels import Labels
from newkind.data.records import TABLE_SUFFIXES
from newkind.data.table_rows import Row, open_table
from newkind.data.tables import metadata_of
from newkind.errors import DataError
from newkind.reading import COLUMNS, ReadingConfig, check_used

__all__ = ["NUMPY_ERRORS", "load_array", "load_items", "read_npy"]

NUMPY_ERRORS = (
    EOFError, MemoryError, OSError, OverflowError, RuntimeError, SyntaxError, TypeError, ValueError, tokenize.TokenError,
)  # fmt: skip
"""Exceptions that NumPy raises for damaged files: it parses their headers as Python literals."""


def read_npy(path: str | os.PathLike[str], **options: Any) -> Collection:
    """Read an .npy file written with `numpy.save`, and the labels of its rows.

    Parameters
    ----------
    path : path-like
        File with floating-point features of shape (n_items, n_features), or uint8 images of shape (n_items, H, W) or
        (n_items, H, W, C). It is memory-mapped. Pickled objects are refused.
    **options : Any
        `labels` (required): a table with one row per item, a .txt file with one label per line (empty for unlabelled), or an
        .npy file; and for a table `label_column`, `truth_column`, `group_column` and `file_column`, the names of the items.

    Returns
    -------
    Collection
        Items are `Features` or `ArrayImages`. All other columns of a table are metadata.

    Raises
    ------
    DataError
        If a file cannot be read (`unreadable`), there are no labels (`missing-labels`), or not one per row (`label-count`).

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "features.npy", np.eye(3))
    >>> _ = (folder / "labels.txt").write_text("bee\\nwasp\\nunknown\\n")
    >>> read_npy(folder / "features.npy", labels=folder / "labels.txt").catalog.labels.tolist()
    [0, 1, -1]
    """
    path, reading = Path(path), ReadingConfig(**options)
    check_used(reading, ("labels", *COLUMNS), "an .npy file")
    if reading.labels is None:
        raise DataError(
            f"{path} has no labels.",
            fix="Name a file with one label per row with `labels`: a table, a .txt or an .npy file.",
            code="missing-labels",
            path=str(path),
        )
    values, make = load_items(path)
    suffix = reading.labels.suffix.lower()
    if suffix in TABLE_SUFFIXES:
        collection = _with_table(make, values, reading, origin=str(path))
    else:
        check_used(reading, ("labels",), "labels that are not in a table")
        labels = load_array(reading.labels) if suffix == ".npy" else _lines(reading.labels)
        if isinstance(labels, np.ndarray) and labels.ndim != 1:
            raise DataError(
                f"{reading.labels} has shape {labels.shape}; expected one dimension.",
                code="array-shape",
                shape=labels.shape,
            )
        _check_count(reading.labels, len(labels), len(values))
        collection = make(values, labels if isinstance(labels, list) else labels.tolist(), origin=str(path))
    return replace(collection, location=os.path.abspath(path), reading=reading.given())


def _with_table(make: Any, values: NDArray[Any], reading: ReadingConfig, *, origin: str) -> Collection:
    """Collection of rows whose labels, names and metadata are in a table."""
    path: Any = reading.labels
    with open_table(path, reading, needed=("label",)) as table:
        rows: list[Row] = list(table.rows)
    at = table.columns
    _check_count(path, len(rows), len(values))
    names = None if at.file is None else [row.file for row in rows]
    truth = None if at.truth is None else [row.truth for row in rows]
    found: Collection = make(values, [row.label for row in rows], truth=truth, names=names, origin=origin)
    catalog = found.catalog
    if at.group is not None:
        given = Labels(catalog.labels, catalog.class_names)
        catalog = replace(catalog, groups=encode_groups([row.group for row in rows], given))
    found = replace(found, catalog=catalog, notes=table.notes(), metadata=metadata_of(at.names, rows))
    return replace(found, group_column=at.group_name)


def load_items(path: Path) -> tuple[NDArray[Any], Callable[..., Collection]]:
    """Array of an .npy file with one row per item, and the function that makes a collection of images or features of it."""
    values = load_array(path)
    if values.ndim == 0:
        raise DataError(f"{path} contains one number; expected one row per item.", code="array-shape", path=str(path))
    return values, from_arrays if values.dtype == np.uint8 and values.ndim > 2 else from_features


def load_array(path: Path) -> NDArray[Any]:
    """Array of an .npy file, memory-mapped; DataError if it cannot be read without pickled objects."""
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except NUMPY_ERRORS as error:
        raise DataError(
            f"{path} cannot be read as an .npy file without pickled objects ({error}).",
            code="unreadable",
            path=str(path),
        ) from None
    if not isinstance(found, np.ndarray):
        found.close()
        raise DataError(f"{path} is an .npz archive.", fix="Name it .npz.", code="unreadable", path=str(path))
    return found


def _lines(path: Path) -> list[str]:
    """Lines of a text file; DataError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig", errors="surrogateescape").splitlines()
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}).", code="unreadable", path=str(path)) from None


def _check_count(path: Path, n_labels: int, n_items: int) -> None:
    if n_labels != n_items:
        raise DataError(
            f"{path} has {n_labels:,} labels for {n_items:,} rows; expected one label per row.",
            code="label-count",
            n_items=n_items,
            n_labels=n_labels,
        )
