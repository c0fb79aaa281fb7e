"""Columns of the data table, to filter images by."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from newkind.data.table_rows import FILE_COLUMNS, csv_delimiter

__all__ = ["read_columns"]

HIDDEN = {*FILE_COLUMNS, "label", "truth"}
MOST_VALUES = 200
MOST_COLUMNS = 20
LONGEST = 200


def read_columns(data: str, files: Sequence[str]) -> dict[str, list[str]]:
    """Columns of a table of images with few different values, besides file, label and truth.

    Parameters
    ----------
    data : str
        What the run was made of; other data than a table has no columns.
    files : sequence of str, length n
        Names of the images.

    Returns
    -------
    dict of str to list of str
        Values by column, one per image; empty texts for images that the table does not have.
    """
    path = Path(data)
    try:
        rows = _read(path) if path.suffix.lower() in (".csv", ".tsv", ".jsonl") else []
    except (OSError, ValueError, csv.Error, RecursionError):
        return {}
    by_file = {str(next((row[name] for name in FILE_COLUMNS if row.get(name)), "")): row for row in rows}
    names = [name for name in dict.fromkeys(name for row in rows[:1000] for name in row) if name not in HIDDEN]
    found = {}
    for name in names[:MOST_COLUMNS]:
        values = [_text(by_file.get(file, {}).get(name)) for file in files]
        if 1 < len(set(values)) <= MOST_VALUES:
            found[name] = values
    return found


def _read(path: Path) -> list[dict[str, Any]]:
    """Rows of a table; raises if it cannot be read."""
    with open(path, newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        if path.suffix.lower() == ".jsonl":
            rows = [json.loads(line) for line in file if line.strip()]
            return [row for row in rows if isinstance(row, dict)]
        delimiter = csv_delimiter(file.readline())
        file.seek(0)
        return [{k: v for k, v in row.items() if k is not None} for row in csv.DictReader(file, delimiter=delimiter)]


def _text(value: Any) -> str:
    return "" if value is None else str(value)[:LONGEST]
