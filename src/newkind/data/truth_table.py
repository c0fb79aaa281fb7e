"""True classes for images that a run has sorted already."""

from __future__ import annotations

import csv
from pathlib import Path

from newkind.data.tables import FILE_COLUMNS
from newkind.errors import DataError

__all__ = ["read_truth"]

TRUTH_COLUMNS = ("truth", "label")


def read_truth(path: Path) -> dict[str, str]:
    """File name -> true class, from a CSV with file_name (or file) and truth (or label). The files need not be there."""
    try:
        with open(path, newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
            first = file.readline()
            file.seek(0)
            reader = csv.DictReader(file, delimiter=max(",;\t", key=first.count))
            header = reader.fieldnames or []
            name = next((column for column in FILE_COLUMNS if column in header), None)
            truth = next((column for column in TRUTH_COLUMNS if column in header), None)
            if name is None or truth is None:
                raise DataError(
                    f"{path} has the columns {', '.join(header) or '(none)'}; expected file_name and truth."
                )
            return {row[name]: row[truth] for row in reader if row[truth]}
    except (OSError, csv.Error) as error:
        raise DataError(f"{path} cannot be read ({error}).") from None
