"""Atomic writes: a file is there as a whole or not at all, also after a crash or a power failure."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from newkind.errors import NewkindError, RunError

__all__ = ["PARTIAL", "replacing", "to_bytes", "write_bytes", "write_errors", "write_json", "write_text"]

PARTIAL = ".partial"
"""Suffix of a file that is being written."""
CHECK_DISK = "Free some disk space or check the permissions, then repeat the command."


@contextmanager
def write_errors(path: Path, *, error: type[NewkindError] = RunError, fix: str = CHECK_DISK) -> Iterator[None]:
    """Raise `error` with the code `cannot-write` instead of an OSError.

    Parameters
    ----------
    path : Path
        File or folder that is written.
    error : type of NewkindError, default=RunError
        Class of the error.
    fix : str, optional
        What to do next. Default: free some disk space or check the permissions.
    """
    try:
        yield
    except OSError as problem:
        reason = problem.strerror or problem
        raise error(f"{path} could not be written ({reason}).", fix=fix, code="cannot-write", path=path) from None


@contextmanager
def replacing(path: Path, *, error: type[NewkindError] = RunError) -> Iterator[Path]:
    """Yield a path to write to; on success the file is synced to disk and replaces `path`, otherwise it is removed.

    Parameters
    ----------
    path : Path
        File to create or replace.
    error : type of NewkindError, default=RunError
        Raised instead of an OSError.
    """
    partial = path.with_name(path.name + PARTIAL)
    try:
        with write_errors(path, error=error):
            yield partial
            with open(partial, "rb") as file:
                os.fsync(file.fileno())
            partial.replace(path)
            _sync_folder(path.parent)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make the rename durable, where the system allows to sync a folder."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_bytes(path: Path, content: bytes | memoryview, *, error: type[NewkindError] = RunError) -> None:
    """Write a file atomically."""
    with replacing(path, error=error) as partial:
        partial.write_bytes(content)


def write_text(path: Path, text: str, *, error: type[NewkindError] = RunError) -> None:
    """Write a text file atomically, encoded by `to_bytes`."""
    write_bytes(path, to_bytes(text), error=error)


def write_json(path: Path, content: Any, *, error: type[NewkindError] = RunError) -> None:
    """Write a JSON file atomically; NaN and infinity are not allowed."""
    write_text(path, json.dumps(content, indent=2, allow_nan=False) + "\n", error=error)


def to_bytes(text: str) -> bytes:
    """UTF-8; file names that are not valid UTF-8 keep their bytes, other invalid characters become escapes."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace")
