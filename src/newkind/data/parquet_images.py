"""Collections from Parquet files that contain the images themselves, as Hugging Face's datasets write them.

Images are read where they are. Of each file, a few row groups are in memory at a time, so that memory does not depend on the number of
images.
"""

from __future__ import annotations

import os
import re
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind.data.catalog import Catalog, Collection
from newkind.data.columns import SYNONYMS, Columns, find_columns
from newkind.data.decoding import broken_image
from newkind.data.file_sample import sampled_digest
from newkind.data.folder_walk import has_images_below
from newkind.data.groups import encode_groups
from newkind.data.items import MAX_FILE_BYTES, EncodedImages
from newkind.data.labels import encode_labels, encode_truth
from newkind.data.names import Names, printable
from newkind.data.numbered_files import files_in, prefixes
from newkind.data.parquet import ParquetTable, open_parquet, parquet_errors
from newkind.data.table_rows import Row, Table, table_row
from newkind.data.tables import METADATA_FILES, metadata_of
from newkind.errors import DataError
from newkind.reading import COLUMNS, ReadingConfig, check_used

__all__ = ["PARQUET", "ParquetImages", "find_parquet_images", "has_images", "read_parquet_images"]

PARQUET = (".parquet", ".pq")
IMAGE_COLUMNS = frozenset(
    {*SYNONYMS["file"], "images", "bytes", "content", "data", "jpg", "jpeg", "png", "webp", "image_bytes", "img_bytes"}
    | {"image_data", "image_content", "picture_bytes", "photo_bytes"}
)
"""Names, in lower case, of columns of plain bytes that are taken for images; other bytes may be anything."""
MAX_GROUP = 2**29
"""Bytes of a row group, as the file states it. Its images are in memory as a whole."""
CACHED_BYTES = 2**28
"""Bytes of row groups that are kept in memory, besides the last two."""


class _RowGroups:
    """Images of the row groups that were read last, for any thread. A copy in another process starts empty."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: OrderedDict[tuple[Path, int], Any] = OrderedDict()

    def __reduce__(self) -> tuple[type[_RowGroups], tuple[()]]:
        return (_RowGroups, ())

    def column(self, path: Path, group: int, name: str) -> Any:
        """Column (pyarrow.ChunkedArray) of the images of a row group."""
        import pyarrow.parquet as pq

        with self._lock:
            if (path, group) not in self._found:
                with pq.ParquetFile(path, memory_map=False) as file:
                    self._found[path, group] = file.read_row_group(group, columns=[name], use_threads=False).column(0)
                while len(self._found) > 2 and sum(each.nbytes for each in self._found.values()) > CACHED_BYTES:
                    self._found.popitem(last=False)
            self._found.move_to_end((path, group))
            return self._found[path, group]


@dataclass(frozen=True)
class ParquetImages(EncodedImages):
    """Image files in a column of Parquet files.

    Parameters
    ----------
    files : tuple of Path
        The Parquet files.
    columns : tuple of str, one per file
        Column of the images: bytes, or objects with `bytes`.
    names : Names of length n_images
        Unique names: from a column of file names or the `path` of the objects, otherwise the number of the row; after the name of the
        file if there are several.
    file : ndarray of int32, shape (n_images,)
        Index of each image's file.
    row : ndarray of int64, shape (n_images,)
        Row of each image in its file, counted from 0.
    groups : tuple of ndarray of int64, one per file
        First row of each row group, and the number of rows at the end.
    """

    files: tuple[Path, ...]
    columns: tuple[str, ...]
    names: Names
    file: NDArray[np.int32]
    row: NDArray[np.int64]
    groups: tuple[NDArray[np.int64], ...]
    _cached: _RowGroups = field(default_factory=_RowGroups, init=False, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.names)

    def content(self, index: int) -> bytes:
        number, row = int(self.file[index]), int(self.row[index])
        group = int(np.searchsorted(self.groups[number], row, side="right")) - 1
        errors: tuple[type[BaseException], ...] = (*parquet_errors(), LookupError)
        try:
            images = self._cached.column(self.files[number], group, self.columns[number])
            value = images[row - int(self.groups[number][group])].as_py()
        except errors as error:
            reason = f"the Parquet file cannot be read ({str(error).splitlines()[0] if str(error) else error!r})"
            raise broken_image(self.names[index], reason, code="unreadable") from None
        content = value.get("bytes") if isinstance(value, dict) else value
        if not isinstance(content, bytes):
            raise broken_image(self.names[index], "the row has no bytes of an image", code="missing-file")
        if len(content) > MAX_FILE_BYTES:
            raise broken_image(self.names[index], f"too large ({len(content):,} bytes)", code="image-too-large")
        return content

    def identity(self) -> Iterator[bytes]:
        for path, column in zip(self.files, self.columns, strict=True):
            yield sampled_digest(path)
            yield column.encode("utf-8", "surrogatepass")


def find_parquet_images(folder: Path) -> list[Path]:
    """Parquet files of a folder, sorted; none if they are tables beside images or folders of images."""
    found = files_in(folder, PARQUET)
    is_table = any(path.name in METADATA_FILES for path in found)
    return [] if not found or is_table or has_images_below(folder) else found


def has_images(path: Path, reading: ReadingConfig) -> bool:
    """Whether a Parquet file contains images, and not the names of image files."""
    with open_parquet(path) as table:
        return bool(_image_column(table, reading))


def read_parquet_images(paths: Sequence[Path], *, origin: str = "", **options: Any) -> Collection:
    """Read Parquet files that contain images.

    Parameters
    ----------
    paths : sequence of Path
        Files with a column of images: objects with `bytes` and optionally `path`, as Hugging Face's datasets write them, or bytes in a
        column named as images usually are. Other columns are labels, true classes and metadata, as in a table; a file may lack some.
    origin : str, default=""
        Value of `data` that names the files. Default: the first path.
    **options : Any
        `label_column`, `truth_column` and `group_column`; `file_column` chooses the column of the images.

    Returns
    -------
    Collection
        The items are `ParquetImages`.

    Raises
    ------
    DataError
        If a file is broken (`unreadable`), has no column of images (`missing-column`) or several (`ambiguous-column`), has a row group
        that does not fit into memory (`row-group-too-large`), or no file has a row (`no-images`).

    Examples
    --------
    >>> import io, tempfile
    >>> import pyarrow as pa
    >>> import pyarrow.parquet as pq
    >>> from PIL import Image
    >>> path, picture = Path(tempfile.mkdtemp()) / "train.parquet", io.BytesIO()
    >>> Image.new("RGB", (8, 8)).save(picture, "PNG")
    >>> images = [{"bytes": picture.getvalue(), "path": name} for name in ("1.png", "2.png")]
    >>> pq.write_table(pa.table({"image": images, "label": ["bee", None]}), path)
    >>> catalog = read_parquet_images([path]).catalog
    >>> list(catalog.items.names), catalog.labels.tolist(), catalog.items.open(0).size
    (['1.png', '2.png'], [0, -1], (8, 8))
    """
    reading, origin = ReadingConfig(**options), origin or str(paths[0])
    check_used(reading, COLUMNS, "images in Parquet files")
    files = [_checked(path, reading) for path in paths]
    header = tuple(dict.fromkeys(name.strip() for each in files for name in each.columns))
    plain = replace(reading, file_column=None)
    at = find_columns(Path(origin), header, plain, needed=(), roles=("file", "label", "truth", "group"))
    words: Counter[str] = Counter()
    names, rows = _read_rows(files, header, at, words)
    if not rows:
        raise DataError(f"{printable(origin)} contains no image.", code="no-images", path=origin)
    collection = _collection(_items(files, names), rows, Table(at, iter(()), words))
    place, note = (
        os.path.abspath(os.path.expanduser(origin)),
        f"The images are in the column '{printable(files[0].image)}'.",
    )
    return replace(collection, origin=origin, location=place, reading=reading.given(), notes=(note, *collection.notes))


def _collection(items: ParquetImages, rows: list[Row], table: Table) -> Collection:
    """Collection of images with the rows of a table that was read."""
    given, at = encode_labels(row.label for row in rows), table.columns
    groups = None if at.group is None else encode_groups([row.group for row in rows], given)
    return Collection(
        catalog=Catalog(items=items, labels=given.indices, class_names=given.class_names, groups=groups),
        truth=None if at.truth is None else encode_truth((row.truth for row in rows), given),
        notes=table.notes(),
        metadata=metadata_of(at.names, rows),
        group_column=at.group_name,
    )


def _items(files: Sequence[_File], names: Names) -> ParquetImages:
    """Images of all rows of the files."""
    sizes = [int(each.groups[-1]) for each in files]
    return ParquetImages(
        files=tuple(each.path for each in files),
        columns=tuple(each.image for each in files),
        names=names,
        file=np.repeat(np.arange(len(files), dtype=np.int32), sizes),
        row=np.concatenate([np.arange(size, dtype=np.int64) for size in sizes]),
        groups=tuple(each.groups for each in files),
    )


@dataclass(frozen=True)
class _File:
    """A Parquet file: the column of its images and whether it has paths, all other columns, and the first rows of the row groups."""

    path: Path
    image: str
    has_paths: bool
    columns: tuple[str, ...]
    groups: NDArray[np.int64]


def _checked(path: Path, reading: ReadingConfig) -> _File:
    """Read the columns of a file, and check that its images can be read."""
    with open_parquet(path) as table:
        image = _image_column(table, reading)
        if not image:
            raise DataError(
                f"{path} has no column of images; its columns are {', '.join(map(printable, table.all_columns)) or '(none)'}.",
                fix="Choose the column of the image bytes with `file_column`.",
                code="missing-column",
                path=str(path),
                columns=list(table.all_columns),
            )
        sizes = table.group_bytes()
        if sizes and max(sizes) > MAX_GROUP:
            raise DataError(
                f"{path} has {max(sizes) / 1e9:,.1f} GB in one row group; at most {MAX_GROUP / 1e9:.1f} GB are read at once.",
                fix="Write it with smaller row groups: pyarrow.parquet.write_table(..., row_group_size=100).",
                code="row-group-too-large",
                path=str(path),
                n_bytes=max(sizes),
            )
        groups = np.concatenate([[0], np.cumsum(table.group_rows(), dtype=np.int64)]).astype(np.int64)
        return _File(path, image, "path" in table.byte_columns[image], table.columns, groups)


def _image_column(table: ParquetTable, reading: ReadingConfig) -> str:
    """Column of the images: the one that was asked for, or the only candidate; empty if there is none."""
    if reading.file_column is not None:
        asked = reading.file_column.strip().lower()
        return next((name for name in table.byte_columns if name.strip().lower() == asked), "")
    found = [name for name, parts in table.byte_columns.items() if parts or name.strip().lower() in IMAGE_COLUMNS]
    if len(found) > 1:
        raise DataError(
            f"{table.path} has several columns of images: {', '.join(map(printable, found))}.",
            fix="Choose one with `file_column`.",
            code="ambiguous-column",
            path=str(table.path),
            columns=found,
        )
    return found[0] if found else ""


def _read_rows(
    files: Sequence[_File], header: tuple[str, ...], at: Columns, words: Counter[str]
) -> tuple[Names, list[Row]]:
    """Unique names and rows of all files; words that mean unlabelled are counted."""
    names: list[str] = []
    rows: list[Row] = []
    for file, prefix in zip(files, prefixes([file.path for file in files]), strict=True):
        own = list(_file_rows(file, header, at, words))
        names += (prefix + name for name in _unique([row.file for row in own]))
        rows += own
    return Names(names), rows


def _file_rows(file: _File, header: tuple[str, ...], at: Columns, words: Counter[str]) -> Iterator[Row]:
    """Rows of a file; a column that it lacks is empty. The file name is that of the image's object, unless there is a column of them."""
    place = [header.index(name.strip()) for name in file.columns]
    with open_parquet(file.path) as table:
        for line, values in table.rows(file.columns, path_in=file.image if file.has_paths else ""):
            cells: list[Any] = [None] * len(header)
            for i, value in zip(place, values, strict=False):  # the path comes last
                cells[i] = value
            row = table_row(file.path, line, cells, at, words)
            if file.has_paths and not row.file and isinstance(values[-1], str):
                row = row._replace(file=values[-1])
            yield row


def _unique(names: list[str]) -> list[str]:
    """Names without parts that lead out of a folder; numbers of the rows if one is empty or repeated."""
    parts = ([part for part in re.split(r"[/\\]", name) if part.strip() not in ("", ".", "..")] for name in names)
    found = ["/".join(each).replace("\0", "") for each in parts]
    return found if all(found) and len(set(found)) == len(found) else [f"{i:07d}" for i in range(len(names))]
