"""Arrays in memory-mapped files: release the memory of what was read."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["drop_pages"]


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
