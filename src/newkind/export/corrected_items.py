"""One correction, and what all readers of corrections check."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from newkind.errors import DataError

__all__ = ["Correction", "invalid_file", "read_bounded"]

MAX_BYTES = 2**30
"""Larger files are not what they claim to be."""


@dataclass(frozen=True)
class Correction:
    """What a person said about one item.

    Parameters
    ----------
    file : str
        Name of the item in the run.
    category : str
        The category that a person chose.
    event : int, default=-1
        Number of the last event before the export; -1 if the file does not say it.
    """

    file: str
    category: str
    event: int = -1


def read_bounded(path: Path) -> bytes:
    """Content of a file; DataError (`missing-file`, `unreadable`, `too-large`) if it cannot be used."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise DataError(f"{path} is larger than {MAX_BYTES // 2**20:,} MB.", code="too-large", path=str(path))
        return path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path} does not exist.", code="missing-file", path=str(path)) from None
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}).", code="unreadable", path=str(path)) from None


def invalid_file(path: Path, problem: str, fix: str, *, code: str = "invalid-file") -> DataError:
    """Error for a file that is not in its format."""
    return DataError(f"{path} {problem}.", fix=fix, code=code, path=str(path))
