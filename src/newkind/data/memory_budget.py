"""A budget of memory that threads share, so that many threads do not decode large images at the same time."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["MemoryBudget"]


LARGE = 2**28
"""After so many bytes, of one image or of several, freed memory is returned to the system; after each photograph that would cost time."""


class MemoryBudget:
    """Number of bytes that all threads together may use.

    Parameters
    ----------
    total : int
        The number.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self._used = 0
        self._kept = 0  # bytes that were freed since memory was last returned to the system, at most
        self._changed = threading.Condition()

    @contextmanager
    def reserved(self, n_bytes: int) -> Iterator[None]:
        """Wait until so many bytes are free, and use them while the context is open; more than the total waits for all."""
        with self._changed:
            self._changed.wait_for(lambda: self._used == 0 or self._used + n_bytes <= self.total)
            self._used += n_bytes
        try:
            yield
        finally:
            with self._changed:
                self._kept += n_bytes
                is_much = self._kept >= LARGE
                self._kept = 0 if is_much else self._kept
            if is_much:
                _return_freed()
            with self._changed:
                self._used -= n_bytes
                self._changed.notify_all()


def _return_freed() -> None:
    """Return freed memory to the system, where glibc keeps it per thread: eight threads kept 2.5 GB after large images."""
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):  # another C library, such as musl
            ctypes.CDLL(None).malloc_trim(0)
