"""Tables of true classes, for images to which a run has already assigned categories."""

from __future__ import annotations

import os
from pathlib import Path

from newkind.data.names import printable
from newkind.data.table_rows import read_rows
from newkind.errors import DataError

__all__ = ["read_truth"]

TRUTH_COLUMNS = ("truth", "label")


def read_truth(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read the true classes of images from a table. The images do not have to exist.

    Parameters
    ----------
    path : path-like
        A .csv, .tsv or .jsonl file, read as `read_table` does, with the columns `file_name` (or `file`) and `truth` (or
        `label`). Rows without a class (empty, or -1) are left out.

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
    found: dict[str, str] = {}
    for row in read_rows(Path(path), needed=TRUTH_COLUMNS):
        name = row.label if row.truth is None else row.truth
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
