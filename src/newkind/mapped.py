"""Arrays in files that are memory-mapped: writing them, their checksums, and the memory of what was read."""

from __future__ import annotations

import hashlib
import io
import mmap
import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind.atomic import replacing
from newkind.errors import NewkindError, RunError

__all__ = ["drop_pages", "file_sha256", "write_rows"]


def file_sha256(path: Path) -> str:
    """SHA-256 of a file; it is read again only after it changed. Raises OSError."""
    status = os.stat(path)
    return _sha256(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=16)
def _sha256(path: Path, changed: int, size: int) -> str:  # noqa: ARG001 - parts of the key of the cache
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_rows(
    path: Path,
    dtype: str,
    shape: tuple[int, int],
    parts: Iterable[NDArray[Any]],
    *,
    error: type[NewkindError] = RunError,
) -> str:
    """Write an .npy file of rows that come in parts.

    Parameters
    ----------
    path : Path
        The file.
    dtype : str
        Type of the values, as in NumPy's headers: `<f2`.
    shape : tuple of int
        Number of rows and columns.
    parts : iterable of ndarray
        The rows, in order.
    error : type of NewkindError, default=RunError
        Raised if the file cannot be written.

    Returns
    -------
    str
        SHA-256 of the file.
    """
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": dtype, "fortran_order": False, "shape": shape})
    digest = hashlib.sha256(header.getvalue())
    with replacing(path, error=error) as file:
        file.write(header.getvalue())
        for part in parts:
            content = part.tobytes()
            digest.update(content)
            file.write(content)
    return digest.hexdigest()


def drop_pages(x: NDArray[Any]) -> None:
    """Release the pages of a memory map that were read; the file keeps their content. Other arrays are not changed."""
    base: Any = x
    while base is not None and not isinstance(base, np.memmap):
        base = getattr(base, "base", None)
    # Pages of a copy-on-write map ("c") may hold changes that exist nowhere else.
    if base is None or getattr(base, "mode", "c") == "c" or not hasattr(mmap, "MADV_DONTNEED"):
        return
    mapping = getattr(base, "_mmap", None)
    if isinstance(mapping, mmap.mmap):
        mapping.madvise(mmap.MADV_DONTNEED)
