"""Corrections from EcoTaxa's TSV export: objects that a person validated."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

from newkind.data.zip_errors import ZIP_ERRORS
from newkind.export.corrected_items import MAX_BYTES, Correction, invalid_file, read_bounded
from newkind.export.ecotaxa import EVENT_COLUMN, FILE_COLUMN

__all__ = ["read_ecotaxa"]

FIX = "Export the project from EcoTaxa as TSV, with all columns of objects."
CATEGORY, STATUS = "object_annotation_category", "object_annotation_status"
VALIDATED = ("validated", "v")
STATUSES = ("", "validated", "predicted", "dubious", "discarded", "v", "p", "d", "x", "unclassified", "noid")


def read_ecotaxa(path: Path) -> list[Correction]:
    """Corrections of a file.

    Parameters
    ----------
    path : Path
        A .tsv file, or a .zip file with .tsv files, as EcoTaxa exports them. Only validated objects are corrections.

    Returns
    -------
    list of Correction

    Raises
    ------
    DataError
        With the code `missing-file`, `unreadable`, `too-large`, `invalid-file` or `missing-column`.
    """
    found: list[Correction] = []
    for text in _tables(path):
        reader = csv.reader(io.StringIO(text), delimiter="\t")  # EcoTaxa writes texts in quotation marks
        try:
            found += _of_table(path, list(reader))
        except csv.Error as error:
            raise invalid_file(path, f"is not a table ({error})", FIX) from None
    return found


def _tables(path: Path) -> list[str]:
    """Texts of the tables in a file."""
    content = read_bounded(path)
    try:
        if not zipfile.is_zipfile(io.BytesIO(content)):
            return [_decoded(content)]
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [member for member in archive.infolist() if member.filename.lower().endswith((".tsv", ".txt"))]
            if sum(member.file_size for member in members) > MAX_BYTES:
                raise invalid_file(path, "is too large", FIX, code="too-large")
            if not members:
                raise invalid_file(path, "contains no .tsv file", FIX)
            return [_decoded(archive.read(member)) for member in members]
    except ZIP_ERRORS as error:
        raise invalid_file(path, f"cannot be read ({error})", FIX) from None


def _decoded(content: bytes) -> str:
    """Text of a table: UTF-8, or Latin-1, which EcoTaxa writes if it is asked to."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def _of_table(path: Path, rows: Sequence[list[str]]) -> list[Correction]:
    if not rows:
        raise invalid_file(path, "is empty", FIX)
    header = [name.strip().lower() for name in rows[0]]
    for column in (FILE_COLUMN, CATEGORY, STATUS):
        if column not in header:
            raise invalid_file(path, f"has no column {column}", FIX, code="missing-column")
    file, category, status = (header.index(name) for name in (FILE_COLUMN, CATEGORY, STATUS))
    event = header.index(EVENT_COLUMN) if EVENT_COLUMN in header else None
    found = []
    for number, row in enumerate(rows[1:], start=2):
        if not row or set(row) <= {"[t]", "[f]"}:
            continue  # an empty line, or EcoTaxa's row of types
        if len(row) != len(header):
            raise invalid_file(path, f"has {len(row)} cells in line {number}, expected {len(header)}", FIX)
        if row[status].strip().lower() not in STATUSES:
            raise invalid_file(path, f"has the unknown status {row[status]!r} in line {number}", FIX)
        if row[status].strip().lower() in VALIDATED:
            if not row[category].strip():
                raise invalid_file(path, f"has a validated object without a category in line {number}", FIX)
            found.append(Correction(row[file], row[category].strip(), _number(path, row, event, number)))
    return found


def _number(path: Path, row: list[str], event: int | None, line: int) -> int:
    if event is None or not row[event].strip():
        return -1
    try:
        return int(float(row[event].replace(",", ".")))  # decimal commas are an option of EcoTaxa
    except (ValueError, OverflowError):
        raise invalid_file(path, f"has {row[event]!r} as {EVENT_COLUMN} in line {line}", FIX) from None
