"""Opening data by what the user typed: a path, or the name of a benchmark."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from newkind.data.benchmarks import BENCHMARKS, load_benchmark
from newkind.data.catalog import Collection
from newkind.data.folders import read_folder
from newkind.data.names import printable
from newkind.data.npz import read_npz
from newkind.data.tables import METADATA_FILES, TABLE_SUFFIXES, read_table
from newkind.errors import DataError

__all__ = ["open_data"]

KINDS = "a folder of images, a .csv, .tsv or .jsonl table, an .npz file, or a benchmark as NAME:FOLDER"


def open_data(data: str | os.PathLike[str]) -> Collection:
    """Open a folder, a table, an .npz file or a benchmark.

    Parameters
    ----------
    data : str or path-like
        Path of a folder (`read_folder`; a `metadata.csv` or `metadata.jsonl` in it is read as a table), of a .csv, .tsv
        or .jsonl table (`read_table`) or of an .npz file (`read_npz`); or a benchmark (`load_benchmark`), as `cub:FOLDER`,
        or as `cub` with the folder in the environment variable `NEWKIND_DATA`.

    Returns
    -------
    Collection
        Data of any of these sources.

    Raises
    ------
    DataError
        If the data does not exist or cannot be used.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> path = Path(tempfile.mkdtemp()) / "features.npz"
    >>> np.savez(path, features=np.eye(3), labels=["bee", "wasp", ""])
    >>> len(open_data(path).catalog)
    3
    """
    text = os.fspath(data)
    path = Path(os.path.expanduser(text))
    name, colon, root = text.partition(":")
    if name in BENCHMARKS and (colon or not os.path.exists(path)):
        return load_benchmark(name, Path(root or os.environ.get("NEWKIND_DATA", ".")))
    mode = _mode_of(path, text)
    if stat.S_ISDIR(mode):
        table = next((path / file for file in METADATA_FILES if os.path.isfile(path / file)), None)
        return read_folder(path) if table is None else read_table(table)
    if not stat.S_ISREG(mode):
        raise _error(text, "is neither a regular file nor a folder", code="not-a-file")
    if path.suffix.lower() in TABLE_SUFFIXES:
        return read_table(path)
    if path.suffix.lower() == ".npz":
        return read_npz(path)
    raise _error(text, f"has an unsupported file type ({path.suffix or 'no suffix'})", code="unsupported-type")


def _mode_of(path: Path, text: str) -> int:
    """Mode bits of the file or folder at `path`; DataError if there is none, or it cannot be accessed."""
    if not text:
        raise DataError("The name of the data is empty.", fix=f"Expected {KINDS}.", code="empty-name")
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a name that no file can have
        raise _error(text, "does not exist", code="missing-file", names=f" ({', '.join(BENCHMARKS)})") from None
    except OSError as error:
        raise _error(text, f"cannot be opened ({error.strerror})", code="unreadable") from None


def _error(text: str, problem: str, *, code: str, names: str = "") -> DataError:
    """Error about the data that the user named."""
    return DataError(f"{printable(text)} {problem}.", fix=f"Expected {KINDS}{names}.", code=code, data=text)
