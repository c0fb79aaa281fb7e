"""List files of published datasets: lines of 'key value', and the images that they name."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from newkind.data.names import printable
from newkind.errors import DataError

__all__ = ["Listed", "Row", "check_files", "class_number", "damaged", "incomplete", "read_rows", "row_of", "scan"]

UNPACK = "Unpack the dataset again."


class Row(NamedTuple):
    """Line 'key value' of a list file."""

    line: int
    key: str
    value: str


class Listed(NamedTuple):
    """Image that a list file names, and where it does so."""

    place: str
    name: str


def damaged(what: str, *, path: Path, fix: str = "", line: int | None = None) -> DataError:
    """Error for a dataset whose files are not the official ones."""
    place = f"{path}, line {line}" if line is not None else str(path)
    return DataError(f"{place}: {what}", fix=fix, code="damaged-dataset", path=str(path), line=line)


def incomplete(what: str, *, path: Path, code: str, **facts: object) -> DataError:
    """Error for a dataset without some of its classes or images."""
    fix = "The dataset is incomplete. Unpack it again."
    return DataError(f"{path}: {what}", fix=fix, code=code, path=str(path), **facts)


def read_rows(path: Path) -> dict[str, Row]:
    """Rows of a list file in its order, by key. Lines without two fields and repeated keys are errors."""
    try:
        if path.exists() and not path.is_file():  # reading a named pipe would wait forever
            raise damaged("not a regular file.", path=path, fix=UNPACK)
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise damaged(f"cannot be read ({error.strerror}).", path=path, fix=UNPACK) from None
    except UnicodeDecodeError as error:
        raise damaged(f"byte {error.start} is not UTF-8 text.", path=path, fix=UNPACK) from None
    rows: dict[str, Row] = {}
    for line, content in enumerate(text.split("\n"), start=1):
        fields = content.split(maxsplit=1)
        if not fields:
            continue
        if len(fields) != 2:
            raise damaged(f"expected two fields, got {content.strip()!r}.", path=path, line=line)
        if fields[0] in rows:
            raise damaged(f"{fields[0]!r} is already listed in line {rows[fields[0]].line}.", path=path, line=line)
        rows[fields[0]] = Row(line, fields[0], fields[1].rstrip())
    return rows


def row_of(rows: dict[str, Row], image: Row, path: Path) -> Row:
    """Row of the list file `path` that has the same key as an image."""
    if image.key not in rows:
        raise damaged(f"no line for image {image.key!r} ({printable(image.value)}) of images.txt.", path=path)
    return rows[image.key]


def class_number(value: object, n_classes: int, *, path: Path, line: int) -> int:
    """Class number, counted from 1, that a list file gives."""
    text = str(value)
    # The length is checked first: Python refuses to convert more than 4,300 digits.
    if not (len(text) <= 9 and text.isascii() and text.isdigit() and 1 <= int(text) <= n_classes):
        what = f"expected a class number from 1 to {n_classes}, got {reprlib.repr(text)}."
        raise damaged(what, path=path, line=line)
    return int(text)


@contextmanager
def scan(folder: Path) -> Iterator[Iterator[os.DirEntry[str]]]:
    """Entries of a folder; DataError if it cannot be listed."""
    try:
        with os.scandir(folder) as entries:
            yield entries
    except OSError as error:
        raise damaged(f"the folder cannot be listed ({error.strerror}).", path=folder, fix=UNPACK) from None


def check_files(root: Path, listed: Sequence[Listed]) -> None:
    """Raise DataError unless each listed image exists, once, directly in `root` or in a direct subfolder of it."""
    contents = {"": _entries(root)}
    seen: set[str] = set()
    missing = []
    for image in listed:
        parent, slash, file = image.name.rpartition("/")
        # A parent is looked up among the entries of `root`, so "..", "a/b" and absolute paths are never followed.
        if parent not in contents and parent in contents[""]:
            contents[parent] = _entries(root / parent)
        if (slash and not parent) or file not in contents.get(parent, ()):
            missing.append(image)
        if image.name in seen:
            raise DataError(
                f"{image.place}: {printable(image.name)} is listed twice.",
                fix="Use the official list file.",
                code="listed-twice",
                image=image.name,
            )
        seen.add(image.name)
    if missing:
        more = f" {len(missing) - 1:,} more missing." if len(missing) > 1 else ""
        raise DataError(
            f"{missing[0].place}: the image {printable(missing[0].name)} is not in {root}.{more}",
            fix=UNPACK,
            code="missing-images",
            images=[image.name for image in missing],
        )


def _entries(folder: Path) -> frozenset[str]:
    """Names of the entries of a folder."""
    with scan(folder) as entries:
        return frozenset(entry.name for entry in entries)
