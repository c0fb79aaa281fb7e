"""Rows of a table of images: file, label, true class, group and metadata, from any kind of table."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from newkind.data.cells import cell_text, group_name
from newkind.data.columns import Columns, find_columns
from newkind.data.labels import label_name
from newkind.data.names import printable
from newkind.data.records import open_records
from newkind.data.whole_numbers import decimal_columns, without_decimals
from newkind.data.wording import count
from newkind.errors import DataError
from newkind.reading import ReadingConfig

__all__ = ["Row", "Table", "open_table", "plain_name", "table_row"]

BYTES = re.compile("[\udc80-\udcff]")
"""What bytes that are not UTF-8 are read as."""


class Row(NamedTuple):
    """One row of a table.

    Parameters
    ----------
    line : int
        Line number, counted from 1.
    file : str
        Normalised name of the file; "" for a table without files.
    label : str
        Class name; "" for unlabelled.
    truth : str, optional
        True class; "" if it is unknown, None if the table has no such column.
    group : str, default=""
        Group; "" for none.
    metadata : tuple of str, default=()
        Texts of all other columns.
    """

    line: int
    file: str
    label: str
    truth: str | None
    group: str = ""
    metadata: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """An open table: its columns, an iterator over its rows, and how often which word meant unlabelled so far."""

    columns: Columns
    rows: Iterator[Row]
    words: Counter[str] = field(default_factory=Counter)

    def notes(self) -> tuple[str, ...]:
        """What was detected in columns and labels, in sentences."""
        found = (
            f"{count(n, 'label')} '{printable(word)}' {'means' if n == 1 else 'mean'} unlabelled."
            for word, n in sorted(self.words.items())
        )
        return (*self.columns.notes, *found)


@contextmanager
def open_table(
    path: Path,
    reading: ReadingConfig,
    *,
    needed: tuple[str, ...] = ("file", "label"),
    roles: tuple[str, ...] = ("file", "label", "truth", "group"),
) -> Iterator[Table]:
    """Open a table of images; `roles` are the columns to find, `needed` those of them that it must have."""
    if path.suffix.lower() in (".jsonl", ".ndjson"):  # an unlabelled image needs no key
        needed = tuple(role for role in needed if role != "label")
    with open_records(path) as records:
        at = find_columns(path, records.header, reading, needed=needed, roles=roles)
        words: Counter[str] = Counter()
        decimal = decimal_columns(path, {i for i in (at.label, at.truth) if i is not None})
        notes = (f"The numbers of the column '{printable(records.header[i])}' are read without `.0`." for i in decimal)
        rows = without_decimals(records.rows, decimal) if decimal else records.rows
        at = replace(at, notes=(*at.notes, *notes))
        yield Table(at, (table_row(path, line, values, at, words) for line, values in rows), words)


def table_row(path: Path, line: int, values: Any, at: Columns, words: Counter[str]) -> Row:
    """Row of the values of one line; a word in the column of labels that means unlabelled is counted."""
    _check_texts(path, line, values, at)
    label = "" if at.label is None else _label(path, line, values[at.label])
    if not label and at.label is not None and isinstance(values[at.label], str) and (word := values[at.label].strip()):
        words[word] += 1
    return Row(
        line,
        "" if at.file is None else _file(path, line, values[at.file], "" if at.folder is None else values[at.folder]),
        label,
        None if at.truth is None else _label(path, line, values[at.truth]),
        "" if at.group is None else group_name(values[at.group]),
        tuple(cell_text(values[i]) for i in at.others),
    )


def _check_texts(path: Path, line: int, values: Any, at: Columns) -> None:
    """Raise DataError if a text is not UTF-8. Names of files may have any bytes, because file systems allow them."""
    for i, value in enumerate(values):
        if isinstance(value, str) and not value.isascii() and i not in (at.file, at.folder) and BYTES.search(value):
            raise DataError(
                f"{path}, line {line}: {printable(value[:80])} is not UTF-8.",
                fix="Save the table as UTF-8 (in Excel: as CSV UTF-8) or as .xlsx.",
                code="not-utf8",
                path=str(path),
                line=line,
            )


def _file(path: Path, line: int, value: Any, folder: Any) -> str:
    """File name of a cell; a whole number is one, another type is an error."""
    is_json = path.suffix.lower() in (".jsonl", ".ndjson")
    if not isinstance(value, str) and (is_json or not (value is None or _is_whole(value))):
        raise DataError(
            f"{path}, line {line}: expected the name of a file as text, got {cell_text(value)[:80] or 'nothing'}.",
            code="not-a-row",
            path=str(path),
            line=line,
        )
    name = "" if value is None else str(value)
    return plain_name(f"{folder}/{name}" if isinstance(folder, str) and folder.strip() else name)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _label(path: Path, line: int, value: Any) -> str:
    """Class name of a value, "" for unlabelled."""
    try:
        return label_name(value) or ""
    except DataError as error:
        raise DataError(
            f"{path}, line {line}: {error.what}", fix=error.fix, code="not-a-label", path=str(path), line=line
        ) from None


def plain_name(name: str) -> str:
    """File name with forward slashes and without "." and ".." parts where possible."""
    return os.path.normpath(name.strip().replace("\\", "/")) if name.strip() else ""
