"""Tables as rows of values: CSV, TSV, JSON lines, Excel and Parquet, each with the names of its columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from newkind.data.excel import excel_records
from newkind.data.parquet import parquet_records
from newkind.errors import DataError
from newkind.schema import InvalidJson, parse_json

__all__ = ["TABLE_SUFFIXES", "Records", "csv_delimiter", "open_records"]

MAX_CELL = 131_072
"""Characters of a cell. It is Python's own limit, which other packages change for the whole process."""

TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".xlsx", ".xlsm", ".parquet", ".pq")


@dataclass(frozen=True)
class Records:
    """An open table.

    Parameters
    ----------
    header : tuple of str
        Names of the columns without surrounding spaces.
    rows : iterator of (int, sequence)
        Line number, counted from 1, and one value per column: text, or another type where the file has types.
    """

    header: tuple[str, ...]
    rows: Iterator[tuple[int, Any]]


@contextmanager
def open_records(path: Path) -> Iterator[Records]:
    """Open a table, by its suffix."""
    suffix = path.suffix.lower()
    if suffix in (".xlsx", ".xlsm"):
        with excel_records(path) as (header, rows):
            yield Records(header, rows)
    elif suffix in (".parquet", ".pq"):
        with parquet_records(path) as (header, rows):
            yield Records(header, rows)
    elif suffix in (".jsonl", ".ndjson"):
        keys = _json_keys(path)
        yield Records(tuple(key.strip() for key in keys), _json_rows(path, keys))
    else:
        with _open_text(path) as file:
            yield _csv_records(path, file)


def csv_delimiter(header: str) -> str:
    """Separator of a CSV file, by its first line; spreadsheets write semicolons or tabs in many countries."""
    return max(",;\t", key=header.count)


@contextmanager
def _open_text(path: Path) -> Iterator[TextIO]:
    """Open a UTF-8 text file; other bytes are read as surrogates, because file names can have them."""
    try:
        with (
            open(path, "rb") as raw,
            io.TextIOWrapper(raw, newline="", encoding="utf-8-sig", errors="surrogateescape") as file,
        ):
            start = raw.peek(2)[:2]
            if start in (b"\xff\xfe", b"\xfe\xff") or start.count(0) == 1:
                raise DataError(f"{path} is saved as UTF-16.", fix="Save it as UTF-8.", code="not-utf8", path=str(path))
            yield file
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}).", code="unreadable", path=str(path)) from None


def _csv_records(path: Path, file: TextIO) -> Records:
    """Rows of a CSV file with a header."""
    first = file.readline()
    file.seek(0)
    reader = csv.reader(file, delimiter=csv_delimiter(first), strict=True)
    lines = _csv_rows(path, reader)
    header = next(lines, (1, []))[1]
    return Records(tuple(column.strip() for column in header), _of_equal_length(path, lines, len(header)))


def _csv_rows(path: Path, reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and cells of a csv.reader, without empty lines."""
    try:
        for cells in reader:
            if any(len(cell) > MAX_CELL for cell in cells):
                raise csv.Error(f"a cell has more than {MAX_CELL:,} characters")
            if cells:
                yield reader.line_num, cells
    except csv.Error as error:
        raise DataError(
            f"{path}, line {reader.line_num}: not a readable CSV file ({error}).",
            code="not-csv",
            path=str(path),
            line=reader.line_num,
        ) from None


def _of_equal_length(
    path: Path, lines: Iterator[tuple[int, list[str]]], n_columns: int
) -> Iterator[tuple[int, list[str]]]:
    """The same lines; DataError at the first that has more or fewer cells than the header."""
    for line, cells in lines:
        if len(cells) != n_columns:
            raise DataError(
                f"{path}, line {line}: {len(cells)} cells, but the header has {n_columns} columns.",
                fix="Put names that contain the separator in double quotes.",
                code="cell-count",
                path=str(path),
                line=line,
            )
        yield line, cells


def _json_keys(path: Path) -> tuple[str, ...]:
    """Keys of all objects of a file of JSON lines, in the order in which they first appear."""
    return tuple(dict.fromkeys(key for _, row in _json_objects(path) for key in row))


def _json_rows(path: Path, keys: tuple[str, ...]) -> Iterator[tuple[int, list[Any]]]:
    """Values of each object; None for a key that it lacks."""
    return ((line, [row.get(key) for key in keys]) for line, row in _json_objects(path))


def _json_objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line numbers and objects of a file with one JSON object per line."""
    with _open_text(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                yield number, parse_json(line, dict[str, Any], any_number=True)
            except InvalidJson as error:
                raise DataError(
                    f"{path}, line {number}: expected a JSON object with the string file_name, and label ({error}).",
                    code="not-a-row",
                    path=str(path),
                    line=number,
                ) from None
