"""Collections from tables: CSV, TSV or JSON lines with `file_name`, `label` and optionally `truth`.

This is the ImageFolder convention of Hugging Face datasets (`metadata.csv` or `metadata.jsonl` next to the images).
"""

from __future__ import annotations

import os
from pathlib import Path

from newkind.data.catalog import Catalog, Collection, Skipped
from newkind.data.decoding import unsupported_format
from newkind.data.items import FileImages
from newkind.data.labels import encode_labels, encode_truth
from newkind.data.names import Names, printable
from newkind.data.table_rows import Row, read_rows
from newkind.data.wording import count
from newkind.errors import DataError

__all__ = ["METADATA_FILES", "TABLE_SUFFIXES", "read_table"]

METADATA_FILES = ("metadata.csv", "metadata.jsonl")
TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl")


def read_table(path: str | os.PathLike[str]) -> Collection:
    """Read a table of image files.

    Parameters
    ----------
    path : path-like
        A .csv, .tsv or .jsonl file with the columns (or keys) `file_name` (or `file`) and `label`, and optionally `truth`.
        File names are relative to the folder of the table. Commas, semicolons and tabs are recognised as separators.
        An empty label or -1 means unlabelled.

    Returns
    -------
    Collection
        Images in the order of the table. Files that do not exist or cannot be used, and repeated rows, are in `skipped`.

    Raises
    ------
    DataError
        If the table cannot be read, has other columns, or gives one file two labels.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("1.png", "2.png", "3.png"):
    ...     Image.new("RGB", (8, 8)).save(folder / name)
    >>> table = folder / "metadata.csv"
    >>> _ = table.write_text("file_name,label,truth\\n1.png,bee,\\n2.png,wasp,\\n3.png,,fly\\n")
    >>> collection = read_table(table)
    >>> collection.catalog.labels.tolist(), collection.truth.class_names
    ([0, 1, -1], ('bee', 'wasp', 'fly'))
    """
    path = Path(path)
    seen: dict[str, Row] = {}
    skipped: list[Skipped] = []
    listing = _FolderListing(path.parent)
    has_truth = False
    for row in read_rows(path):
        has_truth |= row.truth is not None
        earlier = seen.get(row.file)
        if earlier is not None:
            _check_same(path, earlier, row)
            skipped.append(Skipped(row.file, f"line {row.line} repeats line {earlier.line}", "duplicate"))
        elif problem := listing.problem(row):
            skipped.append(problem)
        else:
            seen[row.file] = row
    if not seen:
        raise _no_files(path, skipped)
    given = encode_labels(row.label for row in seen.values())
    truth = encode_truth((row.truth for row in seen.values()), given) if has_truth else None
    items = FileImages(path.parent, Names(seen))
    return Collection(
        catalog=Catalog(items=items, labels=given.indices, class_names=given.class_names),
        truth=truth,
        skipped=tuple(skipped),
        origin=str(path),
        location=os.path.abspath(path),
    )


def _no_files(path: Path, skipped: list[Skipped]) -> DataError:
    """Error for a table without a usable file."""
    if not skipped:
        what, code = f"{path} lists no file.", "empty-table"
    else:
        first = f"{printable(skipped[0].name)} ({skipped[0].reason})"
        what, code = (
            f"{path} lists no usable file: {count(len(skipped), 'file')} skipped, such as {first}.",
            "no-images",
        )
    fix = f"File names must be relative to {path.parent}."
    return DataError(what, fix=fix, code=code, path=str(path), n_skipped=len(skipped))


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


class _FolderListing:
    """Check of files that lists each folder once instead of asking the file system for each file."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self.folders: dict[str, dict[str, bool]] = {}

    def problem(self, row: Row) -> Skipped | None:
        """Reason why the file of a row cannot be used."""
        folder, _, base = row.file.rpartition("/")
        if folder not in self.folders:
            path = os.path.join(self.root, folder or ("/" if row.file.startswith("/") else ""))
            try:
                with os.scandir(path) as entries:
                    self.folders[folder] = {entry.name: _is_file(entry) for entry in entries}
            except (OSError, ValueError):  # ValueError: a name that no folder can have
                self.folders[folder] = {}
        if base not in self.folders[folder]:
            return Skipped(row.file, f"no such file (line {row.line})", "missing-file")
        if not self.folders[folder][base]:
            return Skipped(row.file, f"not a regular file (line {row.line})", "not-a-file")
        reason = unsupported_format(base)
        return Skipped(row.file, reason, "unsupported-format") if reason else None


def _is_file(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a regular file, or a link to one."""
    try:
        return entry.is_file()
    except OSError:
        return False
