"""Whole numbers that a CSV file has as `3.0`: pandas writes a column of numbers in which some are missing in this way."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from newkind.data.labels import UNLABELLED_WORDS
from newkind.data.records import open_records

__all__ = ["decimal_columns", "without_decimals"]

DECIMAL = re.compile(r"(-?[0-9]{1,20})\.0+")


def decimal_columns(path: Path, columns: Collection[int]) -> tuple[int, ...]:
    """Those of the columns of a CSV file in which all labels look like `3.0`, and there is one; other tables have types.

    None if another one has `3.0` beside other names, such as `2.5`: labels and true classes must stay the same names.
    """
    if path.suffix.lower() not in (".csv", ".tsv") or not columns:
        return ()
    decimal, other = set[int](), set[int]()
    with open_records(path) as records:
        for _, values in records.rows:
            for i in columns:
                text = values[i].strip()
                if DECIMAL.fullmatch(text):
                    decimal.add(i)
                elif text.lower() not in UNLABELLED_WORDS:
                    other.add(i)
            if decimal & other or len(other) == len(columns):
                return ()
    return tuple(sorted(decimal))


def without_decimals(rows: Iterator[tuple[int, Any]], columns: Collection[int]) -> Iterator[tuple[int, Any]]:
    """Rows of a CSV file with `3` instead of `3.0` in some columns."""
    for line, values in rows:
        for i in columns:
            if found := DECIMAL.fullmatch(values[i].strip()):
                values[i] = str(int(found[1]))
        yield line, values
