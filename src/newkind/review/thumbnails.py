"""Thumbnails: made when they are asked for, kept in memory and in a cache file."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path

from newkind.review.originals import Original, Originals

__all__ = ["SIDE", "Thumbnails"]

SIDE = 224
"""Longer side of a thumbnail in pixels: sharp in cells of 112 pixels on screens with two dots per pixel."""
MEMORY_BYTES = 128_000_000
FILE_BYTES = 4_000_000_000


class Thumbnails:
    """Thumbnails by row; safe to use from several threads.

    Parameters
    ----------
    originals : Originals
        The images.
    folder : Path
        Folder of the cache file. The file holds thumbnails of any run, by path, size and time of the image file.
    """

    def __init__(self, originals: Originals, folder: Path) -> None:
        self.originals = originals
        self._memory: OrderedDict[int, Original] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        self._file_lock = threading.Lock()
        self._turns = threading.Semaphore(max(os.cpu_count() or 1, 2))
        self._file: sqlite3.Connection | None = None
        file = folder / "thumbnails.sqlite"
        with suppress(OSError, sqlite3.Error):  # a cache that cannot be written is done without
            folder.mkdir(parents=True, exist_ok=True)
            if file.exists() and file.stat().st_size > FILE_BYTES:
                file.unlink()
            self._file = self._connect(file)

    def close(self) -> None:
        """Close the cache file."""
        with self._file_lock:
            if self._file is not None:
                self._file.close()
            self._file = None

    def remembered(self, line: int) -> Original | None:
        """Thumbnail that is in memory; None if it is not."""
        with self._lock:
            found = self._memory.get(line)
            if found is not None:
                self._memory.move_to_end(line)
            return found

    def get(self, line: int) -> Original:
        """Thumbnail of a row: from memory, from the cache file, or made now. Raises BrokenImage."""
        found = self.remembered(line)
        if found is None:
            key = self.originals.key(line)
            found = self._read(key)
            if found is None:
                with self._turns:  # more threads than cores would only make each other slower
                    found = self.originals.thumbnail(line, SIDE)
                self._write(key, found)
            self._remember(line, found)
        return found

    def _remember(self, line: int, thumbnail: Original) -> None:
        with self._lock:
            if line not in self._memory:
                self._memory[line] = thumbnail
                self._bytes += len(thumbnail.content)
            while self._bytes > MEMORY_BYTES:
                _, oldest = self._memory.popitem(last=False)
                self._bytes -= len(oldest.content)

    def _connect(self, file: Path) -> sqlite3.Connection:
        connection = sqlite3.connect(file, timeout=5, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=OFF")  # a lost thumbnail is made again
        connection.execute("CREATE TABLE IF NOT EXISTS thumbnails (key TEXT PRIMARY KEY, type TEXT, content BLOB)")
        return connection

    def _read(self, key: str) -> Original | None:
        if self._file is None:
            return None
        with suppress(sqlite3.Error), self._file_lock:
            rows = self._file.execute("SELECT content, type FROM thumbnails WHERE key = ?", (f"{key}-{SIDE}",))
            row = rows.fetchone()
            if row is not None and row[1] in ("image/webp", "image/jpeg"):
                return Original(bytes(row[0]), row[1])
        return None

    def _write(self, key: str, thumbnail: Original) -> None:
        if self._file is not None:
            row = (f"{key}-{SIDE}", thumbnail.media_type, thumbnail.content)
            with suppress(sqlite3.Error), self._file_lock:
                self._file.execute("INSERT OR REPLACE INTO thumbnails VALUES (?, ?, ?)", row)
