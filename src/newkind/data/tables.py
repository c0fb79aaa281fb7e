"""A table of images: CSV, TSV or JSON lines with `file_name`, `label` (empty = unlabelled) and optionally `truth`.

This is the imagefolder convention of Hugging Face datasets (`metadata.csv` or `metadata.jsonl` beside the images).
"""

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

from newkind.data.catalog import Catalog, Collection, FileImages, Skipped
from newkind.data.labels import encode_labels, encode_truth, label_name
from newkind.data.names import Names, printable
from newkind.errors import DataError

__all__ = ["METADATA_FILES", "read_table"]

METADATA_FILES = ("metadata.csv", "metadata.jsonl")
FILE_COLUMNS = ("file_name", "file")


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    file: str
    label: str
    """'' is unlabelled."""
    truth: str | None
    """None if the table has no truth; '' if it is not known."""


def read_table(path: Path) -> Collection:
    """File names are relative to the table's own folder. A file that is not there is set aside, by name."""
    rows = _read_json_lines(path) if path.suffix.lower() == ".jsonl" else _read_csv(path)
    seen: dict[str, _Row] = {}
    skipped: list[Skipped] = []
    listing = _FolderListing(path.parent)
    has_truth = False
    for row in rows:
        has_truth |= row.truth is not None
        earlier = seen.get(row.file)
        if earlier is not None:
            _check_same(path, earlier, row)
            skipped.append(Skipped(row.file, f"line {row.line} repeats line {earlier.line}"))
        elif problem := listing.problem(row.file):
            skipped.append(Skipped(row.file, f"named in line {row.line}, but {problem}"))
        else:
            seen[row.file] = row
    if not seen:
        example = f" (such as {printable(skipped[0].name)})" if skipped else ""
        raise DataError(
            f"{path}: none of its {len(skipped)} files{example} is there." if skipped else f"{path} names no file.",
            fix=f"File names are taken relative to {path.parent}.",
        )
    given = encode_labels(row.label for row in seen.values())
    truth = encode_truth((row.truth for row in seen.values()), given) if has_truth else None
    return Collection(
        catalog=Catalog(
            items=FileImages(path.parent, Names(seen)), labels=given.indices, class_names=given.class_names
        ),
        truth=truth,
        skipped=tuple(skipped),
        origin=str(path),
        location=os.path.abspath(path),
    )


def _check_same(path: Path, earlier: _Row, row: _Row) -> None:
    for what, first, second in (("labels", earlier.label, row.label), ("truths", earlier.truth or "", row.truth or "")):
        if first != second:
            raise DataError(
                f"{path}: {printable(row.file)} has two {what}, '{printable(first)}' in line {earlier.line} and "
                f"'{printable(second)}' in line {row.line}.",
                fix="Keep one of the two lines.",
            )


@contextmanager
def _open_text(path: Path) -> Iterator[TextIO]:
    """Bytes that are not UTF-8 are read as surrogates: file names have them."""
    try:
        with (
            open(path, "rb") as raw,
            io.TextIOWrapper(raw, newline="", encoding="utf-8-sig", errors="surrogateescape") as file,
        ):
            start = raw.peek(2)[:2]
            if start in (b"\xff\xfe", b"\xfe\xff") or start.count(0) == 1:
                raise DataError(f"{path} is saved as UTF-16; save it as UTF-8.")
            yield file
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}).") from None


def _read_csv(path: Path) -> Iterator[_Row]:
    with _open_text(path) as file:
        first = file.readline()
        file.seek(0)
        # Spreadsheets write semicolons or tabs in half of the world.
        reader = csv.reader(file, delimiter=max(",;\t", key=first.count), strict=True)
        try:
            header = [column.strip().lower() for column in next(reader, [])]
            file_at, label_at, truth_at = _columns(path, header)
            for cells in reader:
                if not cells:
                    continue
                if len(cells) != len(header):
                    raise DataError(
                        f"{path}, line {reader.line_num}: {len(cells)} cells, but the header has {len(header)} columns.",
                        fix="A name that contains the separator must stand in double quotes.",
                    )
                truth = None if truth_at is None else label_name(cells[truth_at]) or ""
                yield _Row(reader.line_num, _file(cells[file_at]), label_name(cells[label_at]) or "", truth)
        except csv.Error as error:
            raise DataError(f"{path}, line {reader.line_num}: not a readable CSV ({error}).") from None


def _columns(path: Path, header: list[str]) -> tuple[int, int, int | None]:
    file_at = next((header.index(name) for name in FILE_COLUMNS if name in header), None)
    if file_at is None or "label" not in header:
        raise DataError(
            f"{path} has the columns {', '.join(map(printable, header)) or '(none)'}; expected file_name and label.",
            fix="Name them in the first line; leave the label of an unlabelled image empty.",
        )
    return file_at, header.index("label"), header.index("truth") if "truth" in header else None


def _read_json_lines(path: Path) -> Iterator[_Row]:
    with _open_text(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            place = f"{path}, line {number}"
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):  # RecursionError: brackets in brackets, thousands deep
                row = None
            name = next((row[key] for key in FILE_COLUMNS if key in row), None) if isinstance(row, dict) else None
            if not isinstance(row, dict) or not isinstance(name, str):
                raise DataError(f"{place}: expected a JSON object with file_name, a string, and label.")
            truth = _json_label(row["truth"], place) if "truth" in row else None
            yield _Row(number, _file(name), _json_label(row.get("label"), place), truth)


def _json_label(value: Any, place: str) -> str:
    try:
        if value != value:  # NaN, which Python writes into JSON although JSON has no such thing
            raise DataError("A label is a name, a whole number or null; got NaN.")
        return label_name(value) or ""
    except DataError as error:
        raise DataError(f"{place}: {error.what}", fix=error.fix) from None


def _file(name: str) -> str:
    return os.path.normpath(name.strip().replace("\\", "/")) if name.strip() else ""


class _FolderListing:
    """What hinders reading a file, asking the file system once a folder instead of once a file."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.folders: dict[str, dict[str, bool]] = {}

    def problem(self, name: str) -> str:
        """Empty if there is none."""
        folder, _, base = name.rpartition("/")
        if folder not in self.folders:
            path = os.path.join(self.root, folder or ("/" if name.startswith("/") else ""))
            try:
                with os.scandir(path) as entries:
                    self.folders[folder] = {entry.name: _is_file(entry) for entry in entries}
            except (OSError, ValueError):  # ValueError: a name that no folder can have
                self.folders[folder] = {}
        if base not in self.folders[folder]:
            return "there is no such file"
        return "" if self.folders[folder][base] else "it is not a regular file"


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False
