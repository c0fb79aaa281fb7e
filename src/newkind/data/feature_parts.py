"""Collections from a folder of feature parts, as `newkind features` writes it.

The folder has a `manifest.json`, and for each part of the images `part-000000.npy` with their features and `part-000000.json` with names,
labels and what could not be read. The .json file is written last: a part that has one is complete.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from newkind.atomic import replacing
from newkind.data.catalog import Catalog, Collection, Skipped, Truth
from newkind.data.items import Features
from newkind.data.names import Names
from newkind.errors import DataError

__all__ = [
    "FORMAT",
    "KIND",
    "LOCK",
    "MANIFEST",
    "has_feature_parts",
    "part_file",
    "read_feature_parts",
    "read_manifest",
]

KIND, FORMAT = "newkind-features", 1
MANIFEST, JOINED, LOCK = "manifest.json", "features.npy", ".lock"
MOST_NAMED = 5


def part_file(folder: Path, number: int, suffix: str) -> Path:
    """File of a part, with the suffix .npy or .json."""
    return folder / f"part-{number:06d}{suffix}"


def read_manifest(folder: Path) -> dict[str, Any]:
    """Content of the manifest; DataError (`unreadable`) if it is not one of this format."""
    path = folder / MANIFEST
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["kind"] != KIND or found["format"] != FORMAT or not isinstance(found["parts"], int):
            raise ValueError("it is of another kind or format")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{path} cannot be read ({error}).", code="unreadable", path=str(path)) from None
    return dict(found)


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
    try:
        parts = [json.loads(part_file(folder, number, ".json").read_text(encoding="utf-8")) for number in numbers]
        columns = {name: [value for part in parts for value in part[name]] for name in ("names", "labels")}
        truth = _joined(parts, "truth")
        groups = _joined(parts, "groups")
        skipped = tuple(Skipped(*entry) for part in parts for entry in part["skipped"])
        catalog = Catalog(
            items=Features(_features(folder, parts, manifest["dim"]), Names(columns["names"])),
            labels=np.array(columns["labels"], dtype=np.int32),
            class_names=tuple(manifest["class_names"]),
            groups=None if groups is None else groups.astype(np.int64),
        )
        names = tuple(manifest["truth_names"] or ())
        true = None if truth is None else Truth(labels=truth, class_names=names, n_old=len(catalog.class_names))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"{folder} cannot be read ({error}).", code="unreadable", path=str(folder)) from None
    place = os.path.abspath(folder)
    return Collection(catalog=catalog, truth=true, skipped=skipped, origin=str(folder), location=place)


def _joined(parts: list[dict[str, Any]], name: str) -> NDArray[np.int32] | None:
    """A column (n,) of whole numbers of all parts; None if the data has none."""
    if any(part[name] is None for part in parts):
        return None
    return np.array([value for part in parts for value in part[name]], dtype=np.int32)


def _features(folder: Path, parts: list[dict[str, Any]], dim: int) -> NDArray[np.float32]:
    """Features (n, d) of all parts, joined in one file and memory-mapped."""
    n = sum(len(part["names"]) for part in parts)
    path = folder / JOINED
    with FileLock(folder / LOCK):
        if not path.exists():
            with replacing(path, error=DataError) as file:
                header = {"descr": "<f4", "fortran_order": False, "shape": (n, dim)}
                np.lib.format.write_array_header_1_0(file, header)
                for number, part in enumerate(parts):
                    rows = np.load(part_file(folder, number, ".npy"), allow_pickle=False)
                    if rows.shape != (len(part["names"]), dim) or rows.dtype != np.float32:
                        raise ValueError(f"part {number} has features of shape {rows.shape}")
                    file.write(rows.tobytes())
    found: NDArray[np.float32] = np.load(path, mmap_mode="r", allow_pickle=False)
    if found.shape != (n, dim):
        raise ValueError(f"{JOINED} has shape {found.shape} instead of {(n, dim)}; remove it")
    return found
