"""Parquet files as tables of values. Needs pyarrow (the extra `parquet`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict

from newkind.data.missing_package import missing_package
from newkind.errors import DataError, NewkindError
from newkind.schema import InvalidJson, parse_json

__all__ = ["ParquetTable", "open_parquet", "parquet_errors", "parquet_records"]

ROWS_PER_BATCH = 65536
BYTES, TEXTS = ("binary", "large_binary", "binary_view"), ("string", "large_string", "string_view")
MAX_BYTES = 8 * 10**9
"""Size of a table in memory, as the file states it."""


class _Info(TypedDict):
    features: dict[str, Any]


class _Described(TypedDict):
    """Metadata that Hugging Face's datasets write into a Parquet file."""

    info: _Info


class ParquetTable:
    """An open Parquet file.

    Parameters
    ----------
    path : Path
        The file, for errors.
    file : pyarrow.parquet.ParquetFile
        The same, open.

    Attributes
    ----------
    all_columns : tuple of str
        Names of all columns, in order.
    columns : tuple of str
        Names of those without bytes.
    byte_columns : dict of str to tuple of str
        Names of the columns that can have image files as values, and their parts: none for plain bytes, `bytes` and `path` for
        objects as Hugging Face's datasets write them.
    class_names : dict of str to list of str
        Names of the classes of those columns that have numbers of classes, as Hugging Face's datasets write labels.
    """

    def __init__(self, path: Path, file: Any) -> None:
        self.path, self.file = path, file
        kinds = {field.name: field.type for field in file.schema_arrow}
        if len(kinds) < len(file.schema_arrow):
            raise ValueError("several columns have the same name")
        self.all_columns = tuple(kinds)
        self.columns = tuple(name for name, kind in kinds.items() if "binary" not in str(kind))
        self.byte_columns = {name: _parts(kind) for name, kind in kinds.items() if _is_image(kind)}
        self.class_names = _class_names(file.schema_arrow.metadata or {})

    def rows(self, columns: tuple[str, ...], *, path_in: str = "") -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Row numbers, counted from 1, and values of columns, batch by batch; last the `path` of the objects in `path_in`, if given."""
        read = [*columns, f"{path_in}.path"] if path_in else list(columns)
        if not read:
            yield from ((number, ()) for number in range(1, self.file.metadata.num_rows + 1))
            return
        number = 0
        try:
            for batch in self.file.iter_batches(batch_size=ROWS_PER_BATCH, columns=read):
                values = [_named(batch.column(name).to_pylist(), self.class_names.get(name)) for name in columns]
                if path_in:
                    values.append([value and value.get("path") for value in batch.column(path_in).to_pylist()])
                for row in zip(*values, strict=True):
                    number += 1
                    yield number, row
        except parquet_errors() as error:
            raise _unreadable(self.path, error) from None

    def group_rows(self) -> list[int]:
        """Number of rows of each row group."""
        return [self.file.metadata.row_group(i).num_rows for i in range(self.file.metadata.num_row_groups)]

    def group_bytes(self) -> list[int]:
        """Size of each row group in memory, as the file states it; sizes of columns are not asked for, where pyarrow ends the process."""
        return [self.file.metadata.row_group(i).total_byte_size for i in range(self.file.metadata.num_row_groups)]


@contextmanager
def open_parquet(path: Path) -> Iterator[ParquetTable]:
    """Open a Parquet file; DataError (`unreadable`, or `missing-package` without pyarrow)."""
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise missing_package(path, "Parquet files", "pyarrow", "parquet") from None
    try:
        file = pq.ParquetFile(path, memory_map=False)
        table = ParquetTable(path, file)
    except parquet_errors() as error:
        raise _unreadable(path, error) from None
    with file:
        try:
            yield table
        except NewkindError:  # some are ValueErrors
            raise
        except parquet_errors() as error:  # names and sizes are decoded when they are asked for
            raise _unreadable(path, error) from None


@contextmanager
def parquet_records(path: Path) -> Iterator[tuple[tuple[str, ...], Iterator[tuple[int, Any]]]]:
    """Header and rows with numbers, counted from 1. Columns of images or other bytes are left out."""
    with open_parquet(path) as table:
        if (total := sum(table.group_bytes())) > MAX_BYTES:
            raise DataError(
                f"{path} would need {total / 1e9:,.1f} GB in memory.",
                fix="Save it without large columns.",
                code="too-large",
                path=str(path),
                n_bytes=total,
            )
        yield tuple(name.strip() for name in table.columns), table.rows(table.columns)


def parquet_errors() -> tuple[type[BaseException], ...]:
    """Errors of pyarrow for a damaged file."""
    import pyarrow as pa

    return (pa.ArrowException, OSError, ValueError, MemoryError, OverflowError)


def _is_image(kind: Any) -> bool:
    """Whether a column can have image files as its values: bytes, or objects with `bytes`."""
    return str(kind) in BYTES or "bytes" in _parts(kind)


def _parts(kind: Any) -> tuple[str, ...]:
    """Names of those parts of objects that are needed of an image: `bytes` and `path`; empty for other types."""
    wanted = {"bytes": BYTES, "path": TEXTS}
    fields = kind if str(kind).startswith("struct<") else ()
    return tuple(field.name for field in fields if str(field.type) in wanted.get(field.name, ()))


def _class_names(metadata: Mapping[bytes, bytes]) -> dict[str, list[str]]:
    """Names of the classes by column, from the metadata of Hugging Face's datasets; empty if there are none."""
    try:
        found = parse_json(metadata.get(b"huggingface", b"{}"), _Described)["info"]["features"]
    except InvalidJson:
        return {}
    named = {name: about.get("names") for name, about in found.items() if isinstance(about, dict)}
    return {
        name: names
        for name, names in named.items()
        if isinstance(names, list) and all(isinstance(each, str) for each in names)
    }


def _named(values: list[Any], names: list[str] | None) -> list[Any]:
    """Values of a column; numbers of classes as their names."""
    if names is None:
        return values
    return [names[value] if isinstance(value, int) and 0 <= value < len(names) else value for value in values]


def _unreadable(path: Path, error: BaseException) -> DataError:
    what = f"{path} cannot be read as a Parquet file ({str(error).splitlines()[0] if str(error) else error!r})."
    return DataError(what, code="unreadable", path=str(path))
