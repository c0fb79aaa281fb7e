"""Collections from tables: CSV, TSV, JSON lines, Excel or Parquet with files, labels and optionally true classes and groups.

This includes the ImageFolder convention of Hugging Face datasets (`metadata.csv` next to the images).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from newkind.data.catalog import Catalog, Collection, Skipped
from newkind.data.decoding import unsupported_format
from newkind.data.groups import encode_groups
from newkind.data.items import FileImages
from newkind.data.labels import encode_labels, encode_truth
from newkind.data.names import Names, printable
from newkind.data.records import TABLE_SUFFIXES
from newkind.data.table_rows import Row, open_table
from newkind.data.wording import count
from newkind.errors import DataError
from newkind.reading import COLUMNS, ReadingConfig, check_used

__all__ = ["METADATA_FILES", "TABLE_SUFFIXES", "FolderListing", "metadata_of", "read_table"]

METADATA_FILES = ("metadata.csv", "metadata.jsonl", "metadata.parquet")


def read_table(path: str | os.PathLike[str], **options: Any) -> Collection:
    """Read a table of image files.

    Parameters
    ----------
    path : path-like
        A .csv, .tsv, .jsonl, .xlsx or .parquet file with the columns (or keys) `file_name` and `label` or synonyms of them,
        and optionally `truth`. File names are relative to the folder of the table. Commas, semicolons and tabs are
        recognised as separators. An empty label, -1, NA, NaN, None, null, unknown and unlabelled mean unlabelled.
    **options : Any
        `file_column`, `label_column`, `truth_column`, `group_column` and `image_folder`, as in `open_data`.

    Returns
    -------
    Collection
        Images in the order of the table, with all other columns as `metadata`. Files that do not exist or cannot be used,
        and repeated rows, are in `skipped`.

    Raises
    ------
    DataError
        If the table cannot be read, has other columns, gives one file two labels, or one group two labels.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("1.png", "2.png", "3.png"):
    ...     Image.new("RGB", (8, 8)).save(folder / name)
    >>> table = folder / "photos.csv"
    >>> _ = table.write_text("filename,species,site\\n1.png,bee,A\\n2.png,wasp,A\\n3.png,NA,B\\n")
    >>> collection = read_table(table)
    >>> collection.catalog.labels.tolist(), list(collection.metadata["site"])
    ([0, 1, -1], ['A', 'A', 'B'])
    """
    path, reading = Path(path), ReadingConfig(**options)
    check_used(reading, (*COLUMNS, "image_folder"), "a table")
    root = reading.image_folder or path.parent
    with open_table(path, reading) as table:
        rows, skipped = _usable(path, table.rows, FolderListing(root))
    if not rows:
        raise _no_files(path, root, skipped)
    at, given = table.columns, encode_labels(row.label for row in rows)
    items = FileImages(root, Names(row.file for row in rows))
    groups = None if at.group is None else encode_groups([row.group for row in rows], given)
    return Collection(
        catalog=Catalog(items=items, labels=given.indices, class_names=given.class_names, groups=groups),
        truth=None if at.truth is None else encode_truth((row.truth for row in rows), given),
        skipped=tuple(skipped),
        origin=str(path),
        location=os.path.abspath(path),
        reading=reading.given(),
        notes=table.notes(),
        metadata=metadata_of(at.names, rows),
        group_column=at.group_name,
    )


def _usable(path: Path, rows: Iterable[Row], listing: FolderListing) -> tuple[list[Row], list[Skipped]]:
    """Rows whose files can be used, each file once, and the others with the reasons."""
    seen: dict[str, Row] = {}
    skipped: list[Skipped] = []
    for row in rows:
        earlier = seen.get(row.file)
        if earlier is not None:
            _check_same(path, earlier, row)
            skipped.append(Skipped(row.file, f"line {row.line} repeats line {earlier.line}", "duplicate"))
        elif problem := listing.problem(row.file, f" (line {row.line})"):
            skipped.append(problem)
        else:
            seen[row.file] = row
    return list(seen.values()), skipped


def metadata_of(names: Sequence[str], rows: Sequence[Row]) -> dict[str, Names]:
    """Metadata columns of rows, by name."""
    return {name: Names(row.metadata[i] for row in rows) for i, name in enumerate(names)}


def _no_files(path: Path, root: Path, skipped: list[Skipped]) -> DataError:
    """Error for a table without a usable file."""
    if not skipped:
        return DataError(
            f"{path} lists no file.", fix="Each image needs a line of its own.", code="empty-table", path=str(path)
        )
    first = f"{printable(skipped[0].name)} ({skipped[0].reason})"
    what = f"{path} lists no usable file: {count(len(skipped), 'file')} skipped, such as {first}."
    fix = f"File names must be relative to {root}. Name another folder with `image_folder`."
    return DataError(what, fix=fix, code="no-images", path=str(path), n_skipped=len(skipped))


def _check_same(path: Path, earlier: Row, row: Row) -> None:
    """Raise DataError if two rows of one file differ."""
    for what, first, second in (
        ("labels", earlier.label, row.label),
        ("true classes", earlier.truth or "", row.truth or ""),
    ):
        if first != second:
            raise DataError(
                f"{path}: {printable(row.file)} has two {what}, '{printable(first)}' in line {earlier.line} and "
                f"'{printable(second)}' in line {row.line}.",
                fix="Keep one of the two lines.",
                code="label-conflict",
                file=row.file,
                lines=(earlier.line, row.line),
            )


class FolderListing:
    """Check of files that lists each folder once instead of asking the file system for each file."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.folders: dict[str, dict[str, bool]] = {}

    def problem(self, name: str, where: str = "") -> Skipped | None:
        """Reason why a file cannot be used; `where` says where it is listed."""
        folder, _, base = name.rpartition("/")
        if folder not in self.folders:
            path = os.path.join(self.root, folder or ("/" if name.startswith("/") else ""))
            try:
                with os.scandir(path) as entries:
                    self.folders[folder] = {entry.name: _is_file(entry) for entry in entries}
            except (OSError, ValueError):  # ValueError: a name that no folder can have
                self.folders[folder] = {}
        if base not in self.folders[folder]:
            return Skipped(name, f"no such file{where}", "missing-file")
        if not self.folders[folder][base]:
            return Skipped(name, f"not a regular file{where}", "not-a-file")
        reason = unsupported_format(base)
        return Skipped(name, reason, "unsupported-format") if reason else None


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a regular file, or a link to one."""
    try:
        return entry.is_file()
    except OSError:
        return False
