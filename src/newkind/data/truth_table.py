"""Tables of true classes, for images to which a run has already assigned categories."""

from __future__ import annotations

import csv
import os

from newkind.data.names import printable
from newkind.data.table_rows import FILE_COLUMNS, csv_delimiter
from newkind.errors import DataError

__all__ = ["read_truth"]

TRUTH_COLUMNS = ("truth", "label")


def read_truth(path: str | os.PathLike[str]) -> dict[str, str]:
    """Read the true classes of images from a CSV file. The images do not have to exist.

    Parameters
    ----------
    path : path-like
        CSV file with the columns `file_name` (or `file`) and `truth` (or `label`). Rows without a class are left out.

    Returns
    -------
    dict of str to str
        True class by file name.

    Raises
    ------
    DataError
        If the file cannot be read (`unreadable`) or has other columns (`missing-column`).

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "truth.csv"
    >>> _ = path.write_text("file_name,truth\\n1.jpg,bee\\n2.jpg,\\n")
    >>> read_truth(path)
    {'1.jpg': 'bee'}
    """
    try:
        with open(path, newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
            first = file.readline()
            file.seek(0)
            reader = csv.DictReader(file, delimiter=csv_delimiter(first))
            header = reader.fieldnames or []
            name = next((column for column in FILE_COLUMNS if column in header), None)
            truth = next((column for column in TRUTH_COLUMNS if column in header), None)
            if name is None or truth is None:
                raise DataError(
                    f"{path} has the columns {', '.join(map(printable, header)) or '(none)'}; expected file_name and truth.",
                    code="missing-column",
                    path=str(path),
                    columns=list(header),
                )
            return {row[name]: row[truth] for row in reader if row[truth]}
    except (OSError, csv.Error) as error:
        raise DataError(f"{path} cannot be read ({error}).", code="unreadable", path=str(path)) from None
