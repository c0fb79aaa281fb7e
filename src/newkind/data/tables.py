"""A table of images: CSV, TSV or JSON lines with `file_name`, `label` (empty = unlabelled) and optionally `truth`.

This is the imagefolder convention of Hugging Face datasets (`metadata.csv` or `metadata.jsonl` beside the images).
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from newkind.data.catalog import Catalog, Collection, FileImages, SetAside
from newkind.data.labels import encode_labels, encode_truth
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
    truth: str | None


def read_table(path: Path) -> Collection:
    """File names are relative to the table's own folder. A file that is not there is set aside, by name."""
    rows = _read_json_lines(path) if path.suffix.lower() == ".jsonl" else _read_csv(path)
    seen: dict[str, _Row] = {}
    set_aside: list[SetAside] = []
    exists = _FolderListing(path.parent)
    has_truth = False
    for row in rows:
        has_truth |= row.truth is not None
        earlier = seen.get(row.file)
        if earlier is not None:
            _check_same(path, earlier, row)
            set_aside.append(SetAside(row.file, f"line {row.line} repeats line {earlier.line}"))
        elif not exists(row.file):
            set_aside.append(SetAside(row.file, f"named in line {row.line}, but there is no such file"))
        else:
            seen[row.file] = row
    if not seen:
        example = f" (such as {printable(set_aside[0].name)})" if set_aside else ""
        raise DataError(
            f"{path}: none of its {len(set_aside)} files{example} is there." if set_aside else f"{path} names no file.",
            fix=f"File names are taken relative to {path.parent}.",
        )
    given = encode_labels(row.label for row in seen.values())
    truth = encode_truth((row.truth for row in seen.values()), given) if has_truth else None
    return Collection(
        catalog=Catalog(
            items=FileImages(path.parent, Names(seen)), labels=given.indices, class_names=given.class_names
        ),
        truth=truth,
        set_aside=tuple(set_aside),
        origin=str(path),
    )


def _check_same(path: Path, earlier: _Row, row: _Row) -> None:
    if row.label != earlier.label:
        raise DataError(
            f"{path}: {printable(row.file)} has two labels, '{printable(earlier.label)}' in line {earlier.line} and "
            f"'{printable(row.label)}' in line {row.line}.",
            fix="Keep one of the two lines.",
        )


def _read_csv(path: Path) -> Iterator[_Row]:
    try:
        with open(path, newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
            first = file.readline()
            file.seek(0)
            # Spreadsheets write semicolons or tabs in half of the world.
            delimiter = max(",;\t", key=first.count)
            reader = csv.reader(file, delimiter=delimiter, strict=True)
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
                truth = None if truth_at is None else cells[truth_at]
                yield _Row(reader.line_num, _file(cells[file_at]), cells[label_at], truth)
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: not a readable CSV ({error}).") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}).") from None


def _columns(path: Path, header: list[str]) -> tuple[int, int, int | None]:
    file_at = next((header.index(name) for name in FILE_COLUMNS if name in header), None)
    if file_at is None or "label" not in header:
        raise DataError(
            f"{path} has the columns {', '.join(map(printable, header)) or '(none)'}; expected file_name and label.",
            fix="Name them in the first line; leave the label of an unlabelled image empty.",
        )
    return file_at, header.index("label"), header.index("truth") if "truth" in header else None


def _read_json_lines(path: Path) -> Iterator[_Row]:
    try:
        with open(path, encoding="utf-8-sig", errors="surrogateescape") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                    name = next(row[column] for column in FILE_COLUMNS if column in row)
                except (ValueError, TypeError, StopIteration):
                    raise DataError(
                        f"{path}, line {number}: expected a JSON object with file_name and label."
                    ) from None
                yield _Row(
                    number, _file(str(name)), _text(row.get("label")), _text(row["truth"]) if "truth" in row else None
                )
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}).") from None


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _file(name: str) -> str:
    return os.path.normpath(name.strip().replace("\\", "/")) if name.strip() else ""


class _FolderListing:
    """Whether a file exists, asking the file system once a folder instead of once a file."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.folders: dict[str, frozenset[str]] = {}

    def __call__(self, name: str) -> bool:
        folder, _, base = name.rpartition("/")
        if folder not in self.folders:
            path = os.path.join(self.root, folder or ("/" if name.startswith("/") else ""))
            try:
                with os.scandir(path) as entries:
                    self.folders[folder] = frozenset(entry.name for entry in entries if not _is_folder(entry))
            except OSError:
                self.folders[folder] = frozenset()
        return base in self.folders[folder]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
