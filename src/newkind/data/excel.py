"""Rows of the first sheet of an Excel file. Needs openpyxl (the extra `excel`)."""

from __future__ import annotations

import logging
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from newkind.data.missing_package import missing_package
from newkind.data.wording import count
from newkind.data.zip_errors import ZIP_ERRORS
from newkind.errors import DataError

__all__ = ["excel_records"]

logger = logging.getLogger(__name__)

PART_BYTES = 2**20
WITHOUT_VALUE = re.compile(
    rb"""<c\b(?![^<>]*\bt="str")[^<>]*?\br="([A-Z]+[0-9]+)"[^<>]*>\s*<f\b(?:[^<>]*/>|[^<>]*>[^<]*</f>)\s*(?:<v\s*/>|<v>\s*</v>)?\s*</c>"""
)
"""Cell with a formula whose value was not computed by the program that saved it; an empty text as a value has the type `str`."""

MAX_BYTES = 2 * 10**9
"""Unpacked size of a file that is read: a sheet has at most 1,048,576 rows, so larger ones are not tables of images."""
MAX_RATIO = 200
"""Unpacked by packed size of a part above SMALL_PART; sheets are packed by factors of 5 to 30, and of 100 if every row is equal."""
SMALL_PART = 10**8
EXCEL_ERRORS = (
    *ZIP_ERRORS, KeyError, TypeError, AttributeError, IndexError, ParseError, MemoryError,
)  # fmt: skip
"""Exceptions that openpyxl raises for damaged files; its documentation does not list them."""


@contextmanager
def excel_records(path: Path) -> Iterator[tuple[tuple[str, ...], Iterator[tuple[int, Any]]]]:
    """Header and rows of the first sheet, with line numbers; rows without a value are left out."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise missing_package(path, "Excel files", "openpyxl", "excel") from None
    _check_size(path)
    with open(path, "rb") as file:  # openpyxl would leave it open after an error
        try:
            book = load_workbook(file, read_only=True, data_only=True, keep_links=False)
        except EXCEL_ERRORS as error:
            raise _unreadable(path, error) from None
        try:
            _warn_of_formulas(path, book)
            lines = _lines(path, book)
            header = tuple("" if value is None else str(value).strip() for value in next(lines, (1, ()))[1])
            n_columns = max((i + 1 for i, name in enumerate(header) if name), default=0)
            yield header[:n_columns], _rows(lines, n_columns)
        finally:
            with suppress(*EXCEL_ERRORS):
                book.close()


def _lines(path: Path, book: Any) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Line numbers and values of the first sheet, without empty rows."""
    try:
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # the size that a file states may be wrong
        for number, values in enumerate(sheet.iter_rows(values_only=True), 1):
            if any(value is not None for value in values):
                yield number, values
    except EXCEL_ERRORS as error:
        raise _unreadable(path, error) from None


def _warn_of_formulas(path: Path, book: Any) -> None:
    """Say which cells count as empty although they have a formula: programs that compute nothing store no values."""
    try:
        with zipfile.ZipFile(path) as archive:
            found = list(_cells_without_value(archive, getattr(book.worksheets[0], "_worksheet_path", "")))
    except EXCEL_ERRORS as error:
        raise _unreadable(path, error) from None
    if found:
        more = f" and {count(len(found) - 1, 'more cell')} have" if len(found) > 1 else " has"
        logger.warning(
            f"{path}: {found[0]}{more} a formula without a stored value, which counts as empty. Open the file in a spreadsheet "
            "program and save it."
        )


def _cells_without_value(archive: zipfile.ZipFile, sheet: str) -> Iterator[str]:
    """Names, such as B2, of cells of a sheet with a formula that has no value; none if there is no such sheet."""
    if sheet not in archive.namelist():
        return
    rest = b""
    with archive.open(sheet) as file:
        while part := file.read(PART_BYTES):
            content = rest + part
            end = content.rfind(b"</c>") + 4 if b"</c>" in content else 0
            yield from (match[1].decode() for match in WITHOUT_VALUE.finditer(content, 0, end))
            rest = content[end:][-PART_BYTES:]  # a cell is shorter


def _rows(lines: Iterator[tuple[int, tuple[Any, ...]]], n_columns: int) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Rows with exactly one value per column; openpyxl leaves out empty cells at the end of a row."""
    return ((line, (*values[:n_columns], *(None,) * (n_columns - len(values)))) for line, values in lines)


def _check_size(path: Path) -> None:
    """Raise DataError for a file that is no archive, or that would fill the memory when it is unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            parts = [(part.file_size, part.compress_size) for part in archive.infolist()]
    except EXCEL_ERRORS as error:
        raise _unreadable(path, error) from None
    total = sum(size for size, _ in parts)
    if total > MAX_BYTES or any(size > SMALL_PART and size > MAX_RATIO * packed for size, packed in parts):
        raise DataError(
            f"{path} would need {total / 1e9:,.1f} GB when it is unpacked.",
            fix="Save the table as CSV.",
            code="too-large",
            path=str(path),
            n_bytes=total,
        )


def _unreadable(path: Path, error: BaseException) -> DataError:
    what = f"{path} cannot be read as an Excel file ({type(error).__name__}: {error})."
    return DataError(what, fix="Save it again as .xlsx, or as CSV.", code="unreadable", path=str(path))
