"""Rows of a table of images, from CSV, TSV or JSON lines."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from newkind.data.labels import label_name
from newkind.data.names import printable
from newkind.errors import DataError

__all__ = ["FILE_COLUMNS", "Row", "csv_delimiter", "plain_name", "read_rows"]

FILE_COLUMNS = ("file_name", "file")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table.

    Parameters
    ----------
    line : int
        Line number, counted from 1.
    file : str
        Normalised name of the file.
    label : str
        Class name; "" for unlabelled.
    truth : str, optional
        True class; "" if it is unknown, None if the table has no such column.
    """

    line: int
    file: str
    label: str
    truth: str | None


@dataclass(frozen=True, slots=True)
class _Columns:
    """Positions of the columns in a CSV file."""

    file: int
    label: int | None
    truth: int | None


def read_rows(path: Path, *, needed: tuple[str, ...] = ("label",)) -> Iterator[Row]:
    """Rows of a .jsonl, .csv or .tsv file. A CSV file must have one of the `needed` columns."""
    return _read_json_lines(path) if path.suffix.lower() == ".jsonl" else _read_csv(path, needed)


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


def _read_csv(path: Path, needed: tuple[str, ...]) -> Iterator[Row]:
    """Rows of a CSV file with a header."""
    with _open_text(path) as file:
        first = file.readline()
        file.seek(0)
        reader = csv.reader(file, delimiter=csv_delimiter(first), strict=True)
        try:
            header = [column.strip().lower() for column in next(reader, [])]
            at = _columns(path, header, needed)
            for cells in reader:
                if not cells:
                    continue
                if len(cells) != len(header):
                    raise DataError(
                        f"{path}, line {reader.line_num}: {len(cells)} cells, but the header has {len(header)} columns.",
                        fix="Put names that contain the separator in double quotes.",
                        code="cell-count",
                        path=str(path),
                        line=reader.line_num,
                    )
                label = "" if at.label is None else label_name(cells[at.label]) or ""
                truth = None if at.truth is None else label_name(cells[at.truth]) or ""
                yield Row(reader.line_num, plain_name(cells[at.file]), label, truth)
        except csv.Error as error:
            raise DataError(
                f"{path}, line {reader.line_num}: not a readable CSV file ({error}).",
                code="not-csv",
                path=str(path),
                line=reader.line_num,
            ) from None


def _columns(path: Path, header: list[str], needed: tuple[str, ...]) -> _Columns:
    """Positions of the columns in the header, which has one of those that are needed."""
    file = next((header.index(name) for name in FILE_COLUMNS if name in header), None)
    if file is None or not set(needed) & set(header):
        raise DataError(
            f"{path} has the columns {', '.join(map(printable, header)) or '(none)'}; expected file_name and {needed[0]}.",
            fix="Name the columns in the first line, and leave the label of an unlabelled image empty.",
            code="missing-column",
            path=str(path),
            columns=header,
        )
    label, truth = (header.index(name) if name in header else None for name in ("label", "truth"))
    return _Columns(file, label, truth)


def _read_json_lines(path: Path) -> Iterator[Row]:
    """Rows of a file with one JSON object per line."""
    with _open_text(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):  # RecursionError: thousands of nested brackets
                row = None
            name = next((row[key] for key in FILE_COLUMNS if key in row), None) if isinstance(row, dict) else None
            if not isinstance(row, dict) or not isinstance(name, str):
                raise DataError(
                    f"{path}, line {number}: expected a JSON object with the string file_name, and label.",
                    code="not-a-row",
                    path=str(path),
                    line=number,
                )
            truth = _json_label(row["truth"], path, number) if "truth" in row else None
            yield Row(number, plain_name(name), _json_label(row.get("label"), path, number), truth)


def _json_label(value: Any, path: Path, line: int) -> str:
    """Class name of a JSON value, "" for unlabelled."""
    try:
        if value != value:  # NaN, which Python writes into JSON although JSON has no such value
            raise DataError("A label must be a name, a whole number or null, got NaN.")
        return label_name(value) or ""
    except DataError as error:
        raise DataError(
            f"{path}, line {line}: {error.what}", fix=error.fix, code="not-a-label", path=str(path), line=line
        ) from None


def plain_name(name: str) -> str:
    """File name with forward slashes and without "." and ".." parts where possible."""
    return os.path.normpath(name.strip().replace("\\", "/")) if name.strip() else ""
