"""Rows of a Parquet file. Needs pyarrow (the extra `parquet`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from newkind.data.missing_package import missing_package
from newkind.errors import DataError

__all__ = ["parquet_records"]

ROWS_PER_BATCH = 65536
MAX_BYTES = 8 * 10**9
"""Size of all columns in memory, as the file states it, that is read."""


@contextmanager
def parquet_records(path: Path) -> Iterator[tuple[tuple[str, ...], Iterator[tuple[int, Any]]]]:
    """Header and rows with numbers, counted from 1. Columns of images or other bytes are left out."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise missing_package(path, "Parquet files", "pyarrow", "parquet") from None
    errors = (pa.ArrowException, OSError, ValueError, MemoryError)
    try:
        file = pq.ParquetFile(path, memory_map=False)
    except errors as error:
        raise _unreadable(path, error) from None
    with file:
        about = file.metadata
        total = sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups))
        if total > MAX_BYTES:
            raise DataError(
                f"{path} would need {total / 1e9:,.1f} GB in memory.",
                fix="Save it without columns of images.",
                code="too-large",
                path=str(path),
                n_bytes=total,
            )
        names = tuple(field.name for field in file.schema_arrow if not _has_bytes(field.type))
        yield tuple(name.strip() for name in names), _rows(path, file, names, errors)


def _rows(
    path: Path, file: Any, names: tuple[str, ...], errors: tuple[type[BaseException], ...]
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Row numbers and values, batch by batch."""
    number = 0
    try:
        for batch in file.iter_batches(batch_size=ROWS_PER_BATCH, columns=list(names)) if names else ():
            for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                number += 1
                yield number, values
    except errors as error:
        raise _unreadable(path, error) from None


def _has_bytes(kind: Any) -> bool:
    """Whether a column type contains bytes, as Hugging Face's columns of images do."""
    return "binary" in str(kind)


def _unreadable(path: Path, error: BaseException) -> DataError:
    what = f"{path} cannot be read as a Parquet file ({str(error).splitlines()[0] if str(error) else error!r})."
    return DataError(what, code="unreadable", path=str(path))
