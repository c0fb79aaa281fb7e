"""Where a run's images are now, and what is known of them beside the run: their truth, and what was left out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from newkind.data.benchmarks import BENCHMARKS, load_benchmark
from newkind.data.catalog import Collection, Features, FileImages, Images, Skipped, Truth
from newkind.data.inspection import look_at
from newkind.data.names import Names
from newkind.data.open_data import open_data
from newkind.errors import DataError, NewkindError
from newkind.report.contents import RunContents

__all__ = ["Pictures", "benchmark_of", "find_pictures"]

MANY_LOOKS = 1000
"""Images that the run has not are looked at for the reason; no more than these."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pictures:
    """The images of a contents's n lines."""

    images: Images | None
    """None if there is nothing to look at."""
    place: NDArray[np.int64]
    """(n,): the image of each line in `images`; -1 for one that is not there."""
    truth: NDArray[np.int32] | None
    """(n,): the true class of each line, -1 where it is not known; None without truth."""
    class_names: tuple[str, ...]
    n_old: int
    """Old classes are the first of `class_names`."""
    skipped: tuple[Skipped, ...]
    """Files of the data that the run could not use."""
    note: str
    """Why pictures are missing, and what to do; empty if none are."""
    missing_from: str = ""
    """Where they were looked for: for whoever makes the report, not for whoever gets it."""


def find_pictures(contents: RunContents, *, collection: Collection | None = None, data: Path | None = None) -> Pictures:
    """From `collection`, from `data` (a folder, if the images have moved), or from where the run had them."""
    if collection is not None:
        return _from_collection(contents, collection)
    if data is not None and not os.path.lexists(os.path.expanduser(data)):
        raise DataError(f"{data} does not exist.", fix="--data is the folder that holds the images now.")
    best: Pictures | None = None
    for found in _candidates(contents, data):
        pictures = _from_collection(contents, found)
        if best is None or (pictures.place >= 0).sum() > (best.place >= 0).sum():
            best = pictures
        if (best.place >= 0).all():
            break
    root = data or contents.config.get("root")
    place = np.full(len(contents), -1, dtype=np.int64)
    missing = Pictures(
        images=None,
        place=place,
        truth=None,
        class_names=(),
        n_old=0,
        skipped=(),
        note="The run's images are not to be found. With --data FOLDER, newkind report looks elsewhere.",
        missing_from=str(root) if root else "",
    )
    if best is not None and (best.place >= 0).any():
        if best.images is None or _any_there(best):
            return best
        best = None
    files = _bare_files(contents, Path(root)) if root else None
    return files if files is not None and _any_there(files) else missing


def benchmark_of(origin: str) -> tuple[str, str] | None:
    """(name, folder) of data that is a published benchmark, as a run's config names it."""
    found = re.fullmatch(r"(\w+) in (.+)", origin, flags=re.DOTALL)
    return (found[1], found[2]) if found and found[1] in BENCHMARKS else None


def _candidates(contents: RunContents, data: Path | None) -> Iterator[Collection]:
    """Collections that may be the run's own, read anew; one that cannot be read is passed over."""
    origin = str(contents.config.get("data") or "")
    benchmark = benchmark_of(origin)
    try:
        if benchmark is not None:
            yield load_benchmark(benchmark[0], Path(data or benchmark[1]))
        elif data is None:
            yield open_data(origin)
        else:
            yield open_data(data)
    except (NewkindError, OSError):
        return


def _from_collection(contents: RunContents, collection: Collection) -> Pictures:
    catalog, truth = collection.catalog, collection.truth
    number = {name: i for i, name in enumerate(catalog.items.names)}
    place = np.fromiter((number.get(file, -1) for file in contents.files), np.int64, len(contents))
    images = None if isinstance(catalog.items, Features) else catalog.items
    return Pictures(
        images=images,
        place=place,
        truth=None if truth is None else _truth_of(truth, place),
        class_names=() if truth is None else truth.class_names,
        n_old=0 if truth is None else truth.n_old,
        skipped=collection.skipped + _unused(images, place),
        note="This run sorted ready features, so there are no pictures." if images is None else "",
    )


def _truth_of(truth: Truth, place: NDArray[np.int64]) -> NDArray[np.int32]:
    return np.where(place >= 0, truth.labels[place], -1).astype(np.int32)


def _unused(images: Images | None, place: NDArray[np.int64]) -> tuple[Skipped, ...]:
    """Images that the run lacks because they cannot be decoded; those that came later are none of its business."""
    if images is None:
        return ()
    others = np.setdiff1d(np.arange(len(images)), place)[:MANY_LOOKS]
    looks = ((images.names[int(i)], look_at(images, int(i)).error) for i in others)
    return tuple(Skipped(name, reason) for name, reason in looks if reason)


def _bare_files(contents: RunContents, root: Path) -> Pictures:
    """The run's files below `root`, with no list of them but the run's own."""
    return Pictures(
        images=FileImages(root, Names(contents.files)),
        place=np.arange(len(contents), dtype=np.int64),
        truth=None,
        class_names=(),
        n_old=0,
        skipped=(),
        note="",
    )


def _any_there(pictures: Pictures) -> bool:
    """Whether some of the files exist: a list of names may outlive its images."""
    images = pictures.images
    if not isinstance(images, FileImages):
        return images is not None
    there = pictures.place[pictures.place >= 0]
    return any(os.path.isfile(images.path(int(i))) for i in there[:: max(len(there) // 50, 1)])
