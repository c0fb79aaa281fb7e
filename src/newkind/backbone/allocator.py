"""One setting of the C library that makes reading a batch of tokens three times as fast on a CPU."""

from __future__ import annotations

import ctypes
import sys

__all__ = ["keep_large_blocks"]

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def keep_large_blocks() -> None:
    """Lets glibc keep freed blocks of any size for the next step, instead of giving them back to the system.

    A batch of tokens is 100 MB. By default each one is mapped anew, and the kernel clears it page by page when it is first
    touched: 69 ms to read a batch of ViT-S/14, 19 ms with this. Other systems' allocators are left as they are.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library, such as musl
        return
    mallopt(M_MMAP_THRESHOLD, 1 << 30)
    mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
