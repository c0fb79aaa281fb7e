"""Opening data by what the user typed: a path, or the name of a benchmark."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from newkind.data.benchmarks import BENCHMARKS, load_benchmark
from newkind.data.boxed_data import BOX_OPTIONS, read_boxes, with_boxes
from newkind.data.catalog import Collection
from newkind.data.feature_parts import has_feature_parts, read_feature_parts
from newkind.data.folder_walk import FolderWalk
from newkind.data.image_folders import read_image_folder
from newkind.data.names import printable
from newkind.data.npy import read_npy
from newkind.data.npz import read_npz
from newkind.data.numbered_files import is_range, numbered_files
from newkind.data.parquet_images import PARQUET, find_parquet_images, has_images, read_parquet_images
from newkind.data.tables import TABLE_SUFFIXES, read_table
from newkind.data.tars import TAR, find_tars, read_tars
from newkind.data.wording import count
from newkind.errors import DataError
from newkind.reading import ReadingConfig, check_used, split_reading

__all__ = ["has_many_items", "open_data", "open_with"]

KINDS = (
    "a folder of images, a table (.csv, .tsv, .jsonl, .xlsx, .parquet), boxes (.json), an .npz, .npy, .tar or .parquet file, "
    "or a benchmark as NAME:FOLDER"
)


ADVICE = {
    ".xls": "Save it as .xlsx or .csv.",
    ".ods": "Save it as .xlsx or .csv.",
    ".zip": "Unpack it, and name the folder.",
    ".7z": "Unpack it, and name the folder.",
    ".rar": "Unpack it, and name the folder.",
    ".gz": "Unpack it with gunzip.",
    ".tgz": "Unpack it with gunzip.",
    ".zst": "Unpack it with zstd -d.",
    ".txt": "Use a table with the columns file_name and label, such as a .csv file.",
}
"""What to do with files of other types, by suffix."""


def open_data(data: str | os.PathLike[str], **options: Any) -> Collection:
    """Open a folder, a table, boxes, arrays, an archive or a benchmark.

    Parameters
    ----------
    data : str or path-like
        Path of a folder (`read_folder`; also with `metadata.csv` or in splits, as Hugging Face's datasets have it), of a
        table (`read_table`), of a .json file with boxes (`read_boxes`), of an .npz file (`read_npz`) or .npy file
        (`read_npy`), of a .tar file or a folder of them (`read_tars`), of a .parquet file with images or a folder of them
        (`read_parquet_images`), or of a folder that `newkind features` wrote; or a benchmark (`load_benchmark`), as `cub:FOLDER`, or as `cub` with the folder in the environment variable `NEWKIND_DATA`.
    **options : Any
        Fields of `newkind.reading.ReadingConfig`: `file_column`, `label_column`, `truth_column`, `group_column`, `labels`,
        `image_folder`, `boxes`, `box_category`, `min_box_confidence` and `box_margin`.

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
    text, reading = os.fspath(data), ReadingConfig(**options)
    if reading.boxes is None:
        return _open(text, reading)
    plain = {name: value for name, value in reading.given().items() if name not in ("boxes", *BOX_OPTIONS)}
    return with_boxes(_open(text, ReadingConfig(**plain)), reading)


def open_with(
    data: str | os.PathLike[str] | Collection, options: Mapping[str, Any]
) -> tuple[Collection, dict[str, Any]]:
    """The data, opened with those of the options that `open_data` has, and all other options.

    A collection is open already, and no option for reading applies to it.
    """
    reading, others = split_reading(options)
    if not isinstance(data, Collection):
        return open_data(data, **reading), others
    check_used(ReadingConfig(**reading), (), "a collection, which is open already")
    return data, others


def has_many_items(data: Path) -> bool:
    """Whether `open_data` opens this as items that are not image files of their own: boxes, archives, Parquet files or features."""
    if is_range(str(data)) or data.suffix.lower() in (".json", *TAR, *PARQUET):
        return True
    return has_feature_parts(data) or bool(find_tars(data) or find_parquet_images(data))


def _open(text: str, reading: ReadingConfig) -> Collection:
    """Open data without boxes from another file."""
    path = Path(os.path.expanduser(text))
    name, colon, root = text.partition(":")
    if name in BENCHMARKS and (colon or not os.path.exists(path)):
        check_used(reading, (), "a benchmark")
        return load_benchmark(name, Path(root or os.environ.get("NEWKIND_DATA", ".")))
    if is_range(text):
        return _read_files(numbered_files(text), text, reading)
    mode = _mode_of(path, text)
    if stat.S_ISDIR(mode):
        return _open_folder(path, text, reading)
    if not stat.S_ISREG(mode):
        raise _error(text, "is neither a regular file nor a folder", code="not-a-file")
    suffix = path.suffix.lower()
    if suffix in TAR or (suffix in PARQUET and has_images(path, reading)):
        return _read_files([path], text, reading)
    if suffix == ".npz":
        check_used(reading, (), "an .npz file")
        return read_npz(path)
    readers = dict.fromkeys(TABLE_SUFFIXES, read_table) | {".json": read_boxes, ".npy": read_npy}
    if suffix not in readers:
        raise _error(
            text,
            f"has an unsupported file type ({path.suffix or 'no suffix'})",
            code="unsupported-type",
            advice=ADVICE.get(suffix, ""),
        )
    return readers[suffix](path, **reading.given())


def _open_folder(path: Path, text: str, reading: ReadingConfig) -> Collection:
    """Open a folder of features, archives, Parquet files with images, or images."""
    if has_feature_parts(path):
        check_used(reading, (), "a folder of features")
        return read_feature_parts(path)
    if found := find_tars(path) or find_parquet_images(path):
        return _with_others(_read_files(found, text, reading), path, {file.name for file in found})
    return read_image_folder(path, reading)


def _with_others(collection: Collection, folder: Path, used: set[str]) -> Collection:
    """Collection that also lists the files of a folder beside those that are used."""
    walk = FolderWalk(folder)
    for entry in walk.entries(folder):
        if walk.is_folder(entry):
            list(walk.images(entry.path))  # none; only to list what is there
        elif entry.name not in used:
            walk.is_image(entry)
    return replace(collection, skipped=collection.skipped + walk.skipped, ignored=dict(walk.ignored))


def _read_files(paths: list[Path], text: str, reading: ReadingConfig) -> Collection:
    """Open archives, or Parquet files with images."""
    if missing := [path for path in paths if not path.exists()]:
        others = f" (one of {count(len(missing), 'missing file')})" if len(missing) > 1 else ""
        what = f"{printable(str(missing[0]))} does not exist{others}."
        raise DataError(what, fix=f"Check {printable(text)}.", code="missing-file", data=text)
    kinds = {path.suffix.lower() for path in paths}
    if kinds <= set(TAR):
        return read_tars(paths, origin=text, **reading.given())
    if kinds <= set(PARQUET):
        return read_parquet_images(paths, origin=text, **reading.given())
    raise _error(text, "stands for files of other types", code="unsupported-type")


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


def _error(text: str, problem: str, *, code: str, names: str = "", advice: str = "") -> DataError:
    """Error about the data that the user named; `advice` is what to do, if that is known."""
    return DataError(f"{printable(text)} {problem}.", fix=advice or f"Expected {KINDS}{names}.", code=code, data=text)
