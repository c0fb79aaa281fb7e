"""Collections from a folder of feature parts, as `newkind features` writes it.

The folder has a `manifest.json`, and for each part of the images `part-000000.npy` with their features and `part-000000.json` with names,
labels, what could not be read, and the checksum of the features. The .json file is written last: a part that has one is complete.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from newkind.atomic import file_lock, write_errors, write_json
from newkind.data.catalog import Catalog, Collection, Skipped, Truth
from newkind.data.items import Features
from newkind.data.names import Names
from newkind.data.npy import load_array
from newkind.errors import DataError
from newkind.mapped import file_sha256, write_rows
from newkind.schema import InvalidJson, read_json_file

__all__ = [
    "FORMAT",
    "LOCK",
    "MANIFEST",
    "Manifest",
    "Part",
    "has_feature_parts",
    "part_file",
    "read_feature_parts",
    "read_manifest",
]

KIND, FORMAT = "newkind-features", 1
MANIFEST, JOINED, RECORD, LOCK = "manifest.json", "features.npy", "features.json", ".lock"
MOST_NAMED, MOST_PARTS = 5, 10_000_000


class Manifest(TypedDict):
    """Content of manifest.json."""

    kind: Literal["newkind-features"]
    format: int
    about: dict[str, Any]
    images: int
    names: str
    content: NotRequired[str]
    labels: str
    part_size: int
    parts: int
    dim: int
    class_names: list[str]
    truth_names: list[str] | None


class Part(TypedDict):
    """Names, labels, true classes and groups of the images of a part that can be read, and the others with the reasons."""

    names: list[str]
    labels: list[int]
    truth: list[int] | None
    groups: list[int] | None
    skipped: list[list[str]]
    sha256: NotRequired[str]


class _Joined(TypedDict):
    """Content of features.json."""

    sha256: str


def part_file(folder: Path, number: int, suffix: str) -> Path:
    """File of a part, with the suffix .npy or .json."""
    return folder / f"part-{number:06d}{suffix}"


def read_manifest(folder: Path) -> Manifest:
    """Content of the manifest; DataError (`unreadable`) if it is not one of this format."""
    with _unreadable(folder / MANIFEST):
        found = read_json_file(folder / MANIFEST, Manifest)
        if found["format"] != FORMAT or not 0 <= found["parts"] <= MOST_PARTS:
            raise InvalidJson("it is of another format")
    return found


@contextmanager
def _unreadable(path: Path) -> Iterator[None]:
    """Raise DataError (`unreadable`) instead of errors of a file that is missing or damaged."""
    try:
        yield
    except (OSError, ValueError, OverflowError) as error:  # InvalidJson is a ValueError
        raise DataError(f"{path} cannot be read ({error}).", code="unreadable", path=str(path)) from None


def has_feature_parts(folder: Path) -> bool:
    """Whether a folder was written by `newkind features`."""
    try:
        with open(folder / MANIFEST, "rb") as file:
            return KIND.encode() in file.read(4096)
    except OSError:
        return False


def read_feature_parts(folder: str | os.PathLike[str]) -> Collection:
    """Read a folder of feature parts, all of which must be complete.

    The first call joins the parts in `features.npy`, which is memory-mapped.

    Parameters
    ----------
    folder : path-like
        Folder written by `newkind features`.

    Returns
    -------
    Collection
        The items are `Features`, without the images that could not be read. Labels, truth and groups are those of the data.

    Raises
    ------
    DataError
        With the code `incomplete-features` (fact `missing`, the numbers of missing parts) or `unreadable`.
    """
    folder = Path(folder)
    manifest = read_manifest(folder)
    numbers = range(manifest["parts"])
    missing = [number for number in numbers if not part_file(folder, number, ".json").exists()]
    if missing:
        some = ", ".join(map(str, missing[:MOST_NAMED])) + (", ..." if len(missing) > MOST_NAMED else "")
        raise DataError(
            f"{folder} lacks {len(missing):,} of {len(numbers):,} parts ({some}).",
            fix="Run `newkind features` again for the missing shards.",
            code="incomplete-features",
            missing=missing,
        )
    with _unreadable(folder):
        parts = [read_json_file(part_file(folder, number, ".json"), Part) for number in numbers]
    _join(folder, parts, manifest["dim"])
    with _unreadable(folder):
        labels = np.array([label for part in parts for label in part["labels"]], dtype=np.int32)
        truth, groups = (_joined([part[name] for part in parts]) for name in ("truth", "groups"))
        catalog = Catalog(
            items=Features(
                _features(folder, len(labels), manifest["dim"]), Names(n for part in parts for n in part["names"])
            ),
            labels=labels,
            class_names=tuple(manifest["class_names"]),
            groups=None if groups is None else groups.astype(np.int64),
        )
        true = None if truth is None else _truth(truth, tuple(manifest["truth_names"] or ()), len(catalog.class_names))
    skipped = tuple(Skipped(*entry[:3]) for part in parts for entry in part["skipped"] if len(entry) == 3)
    place = os.path.abspath(folder)
    return Collection(catalog=catalog, truth=true, skipped=skipped, origin=str(folder), location=place)


def _joined(columns: list[list[int] | None]) -> NDArray[np.int32] | None:
    """A column (n,) of whole numbers of all parts; None if the data has none."""
    found = [value for column in columns if column is not None for value in column]
    return None if any(column is None for column in columns) else np.array(found, dtype=np.int32)


def _truth(labels: NDArray[np.int32], names: tuple[str, ...], n_old: int) -> Truth:
    """True classes, checked."""
    if labels.size and not -1 <= labels.min() <= labels.max() < len(names):
        raise InvalidJson("true classes are out of range")
    return Truth(labels=labels, class_names=names, n_old=n_old)


def _check(path: Path, sha256: str | None) -> None:
    """Raise ValueError if a file is not the one that was written; folders of earlier versions have no checksums."""
    if sha256 is not None and file_sha256(path) != sha256:
        raise ValueError(f"{path.name} is damaged: its sha256 is not the one that was written")


def _join(folder: Path, parts: list[Part], dim: int) -> None:
    """Write the features of all parts into one file, unless it exists; then nothing is written, and the folder may be read-only."""
    path, shape = folder / JOINED, (sum(len(part["names"]) for part in parts), dim)
    if path.exists():
        return
    with write_errors(folder, error=DataError), file_lock(folder / LOCK):
        if not path.exists():  # another process may have written it meanwhile
            rows = (_rows(folder, number, part, dim) for number, part in enumerate(parts))
            record = {"sha256": write_rows(path, "<f4", shape, rows, error=DataError)}
            write_json(folder / RECORD, record, error=DataError)


def _features(folder: Path, n: int, dim: int) -> NDArray[np.float32]:
    """Features (n, d) of all parts, memory-mapped."""
    path = folder / JOINED
    _check(path, read_json_file(folder / RECORD, _Joined)["sha256"] if (folder / RECORD).exists() else None)
    found: NDArray[np.float32] = load_array(path)
    if found.shape != (n, dim):
        raise ValueError(f"{JOINED} has shape {found.shape} instead of {(n, dim)}; remove it")
    return found


def _rows(folder: Path, number: int, part: Part, dim: int) -> NDArray[np.float32]:
    """Features (n, d) of a part, checked."""
    path = part_file(folder, number, ".npy")
    with _unreadable(path):
        _check(path, part.get("sha256"))
        rows: NDArray[np.float32] = load_array(path)
        if rows.shape != (len(part["names"]), dim) or rows.dtype != np.float32:
            raise ValueError(f"it has features of shape {rows.shape}")
    return rows
