"""True classes of images to which a run has already assigned categories."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from newkind.data.names import printable
from newkind.data.opening import open_data
from newkind.data.records import TABLE_SUFFIXES
from newkind.data.table_rows import Row, open_table
from newkind.errors import DataError
from newkind.reading import ReadingConfig, check_used

__all__ = ["read_truth"]


def read_truth(path: str | os.PathLike[str], **options: Any) -> dict[str, str]:
    """Read the true classes of images. The images of a table do not have to exist.

    Parameters
    ----------
    path : path-like
        Table with the columns `file_name` and `truth` (or `label`) or synonyms of them; or any other data of `open_data`,
        whose true classes, or else labels, are used. Images without a class are left out.
    **options : Any
        Options of `open_data`, such as `file_column` and `truth_column`.

    Returns
    -------
    dict of str to str
        True class by file name, without "." and ".." parts where possible.

    Raises
    ------
    DataError
        If the file cannot be read (`unreadable`), has other columns (`missing-column`), or gives an image two classes
        (`label-conflict`).

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "truth.csv"
    >>> _ = path.write_text("file_name,truth\\n1.jpg,bee\\n2.jpg,\\n")
    >>> read_truth(path)
    {'1.jpg': 'bee'}
    """
    path, reading = Path(path), ReadingConfig(**options)
    if path.suffix.lower() not in TABLE_SUFFIXES or not path.is_file():
        return _opened_truth(path, reading)
    check_used(reading, ("file_column", "label_column", "truth_column"), "a table of true classes")
    if reading.label_column is None or reading.truth_column is not None:
        with open_table(path, reading, roles=("file", "truth"), needed=("file",)) as table:
            if table.columns.truth is not None:
                return _classes(path, ((row, row.truth or "") for row in table.rows))
    with open_table(path, reading, roles=("file", "label"), needed=("file", "label")) as table:
        return _classes(path, ((row, row.label) for row in table.rows))


def _classes(path: Path, rows: Iterable[tuple[Row, str]]) -> dict[str, str]:
    """Class by file name, of rows that have one."""
    found: dict[str, str] = {}
    for row, name in rows:
        if name and found.setdefault(row.file, name) != name:
            raise DataError(
                f"{path}, line {row.line}: {printable(row.file)} has two true classes, '{printable(found[row.file])}' and "
                f"'{printable(name)}'.",
                fix="Keep one of the two lines.",
                code="label-conflict",
                path=str(path),
                file=row.file,
            )
    return found


def _opened_truth(path: Path, reading: ReadingConfig) -> dict[str, str]:
    """True classes, or else labels, of data that is not a table."""
    collection = open_data(path, **reading.given())
    names, catalog, truth = collection.catalog.items.names, collection.catalog, collection.truth
    labels, classes = (catalog.labels, catalog.class_names) if truth is None else (truth.labels, truth.class_names)
    return {names[int(i)]: classes[labels[i]] for i in np.flatnonzero(labels >= 0)}
