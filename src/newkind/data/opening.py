"""From what the user typed to a Collection."""

from __future__ import annotations

import os
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
    path = Path(text)
    name, colon, root = text.partition(":")
    if name in BENCHMARKS and (colon or not path.exists()):
        return load_benchmark(name, Path(root or os.environ.get("NEWKIND_DATA", ".")))
    if path.is_dir():
        table = next((path / file for file in METADATA_FILES if (path / file).is_file()), None)
        return read_folder(path) if table is None else read_table(table)
    if not path.exists():
        raise DataError(f"{printable(text)} does not exist.", fix=f"Expected {KINDS} ({', '.join(BENCHMARKS)}).")
    if path.suffix.lower() in (".csv", ".tsv", ".jsonl"):
        return read_table(path)
    if path.suffix.lower() == ".npz":
        return read_npz(path)
    raise DataError(f"{printable(text)} is a file of a kind that is not known here.", fix=f"Expected {KINDS}.")
