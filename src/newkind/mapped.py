"""Arrays in memory-mapped files: their checksums, and the memory of what was read."""

from __future__ import annotations

import hashlib
import mmap
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["drop_pages", "file_sha256"]


def file_sha256(path: Path) -> str:
    """SHA-256 of a file; it is read again only after it changed. Raises OSError."""
    status = os.stat(path)
    return _sha256(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=16)
def _sha256(path: Path, changed: int, size: int) -> str:  # noqa: ARG001 - parts of the key of the cache
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
