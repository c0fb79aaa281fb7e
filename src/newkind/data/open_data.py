"""From what the user typed to a Collection."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from newkind.data.benchmarks import BENCHMARKS, load_benchmark
from newkind.data.catalog import Collection
from newkind.data.names import printable
from newkind.data.sources import read_folder, read_npz
from newkind.data.tables import METADATA_FILES, read_table
from newkind.errors import DataError

__all__ = ["open_data"]

KINDS = "a folder of images, a .csv/.tsv/.jsonl table, an .npz file, or a benchmark as NAME:FOLDER"


def open_data(data: str | os.PathLike[str]) -> Collection:
    """A folder, a table, an .npz file, or a benchmark (`cub:/data`, or `cub` with the folder in $NEWKIND_DATA)."""
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
        raise DataError(f"{printable(text)} is not a regular file and not a folder.", fix=f"Expected {KINDS}.")
    if path.suffix.lower() in (".csv", ".tsv", ".jsonl"):
        return read_table(path)
    if path.suffix.lower() == ".npz":
        return read_npz(path)
    raise DataError(f"{printable(text)} is a file of a kind that is not known here.", fix=f"Expected {KINDS}.")


def _mode_of(path: Path, text: str) -> int:
    """What kind of thing stands at `path`; DataError if nothing does, or if it cannot be looked at."""
    if not text:
        raise DataError("The name of the data is empty.", fix=f"Expected {KINDS}.")
    try:
        return os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a name that no file can have
        raise DataError(
            f"{printable(text)} does not exist.", fix=f"Expected {KINDS} ({', '.join(BENCHMARKS)})."
        ) from None
    except OSError as error:
        raise DataError(f"{printable(text)} cannot be opened ({error.strerror}).", fix=f"Expected {KINDS}.") from None
