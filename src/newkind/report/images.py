"""Images of a run: where they are now, their true classes, and the files that the run skipped."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from newkind.config import from_json
from newkind.data import (
    BENCHMARKS,
    Benchmark,
    Collection,
    Features,
    FileImages,
    Images,
    Names,
    Skipped,
    Truth,
    load_benchmark,
    open_data,
)
from newkind.data.added import add_images
from newkind.data.image_check import check_image
from newkind.errors import DataError, NewkindError, RunError
from newkind.reading import ReadingConfig
from newkind.runs.run_files import RunFiles, run_files

__all__ = ["ImageNames", "RunImages", "benchmark_of", "find_run_images"]

MAX_CHECKED = 1000  # Images that the run does not have are decoded to learn why; at most this many.
BENCHMARK_ORIGIN = re.compile(r"(?P<name>\w+)(?::| in )(?P<folder>.+)", re.DOTALL)


class ImageNames(Protocol):
    """Names of the images of a run, and contents of its config.json, which says where they were."""

    @property
    def files(self) -> Sequence[str]:
        """Names of the images."""

    @property
    def config(self) -> dict[str, Any]:
        """Contents of config.json."""

    def __len__(self) -> int: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class RunImages:
    """Images of the n rows of a run.

    Parameters
    ----------
    images : Images or None
        The images; None if there are none to show.
    place : ndarray of int64, shape (n,)
        Index of each row's image in `images`; -1 if it is missing.
    truth : ndarray of int32, shape (n,), default=None
        True class of each row, -1 if unknown. None if no true classes are known.
    class_names : tuple of str, default=()
        Names of the true classes, the known ones first.
    n_old : int, default=0
        Number of known classes in `class_names`.
    skipped : tuple of Skipped, default=()
        Files of the data that the run could not use.
    note : str, default=""
        Why images are missing, for the reader of the report. Empty if none are missing.
    searched : str, default=""
        Where missing images were searched, for the author of the report.
    """

    images: Images | None
    place: NDArray[np.int64]
    truth: NDArray[np.int32] | None = None
    class_names: tuple[str, ...] = ()
    n_old: int = 0
    skipped: tuple[Skipped, ...] = ()
    note: str = ""
    searched: str = ""

    @property
    def is_there(self) -> NDArray[np.bool_]:
        """Whether the image of each row can be shown, shape (n,)."""
        return (self.place >= 0) & (self.images is not None)


def find_run_images(
    contents: ImageNames, *, collection: Collection | None = None, data: Path | None = None
) -> RunImages:
    """Find the images of a run.

    Parameters
    ----------
    contents : ImageNames
        The run.
    collection : Collection, default=None
        Its data, if it is open already.
    data : Path, default=None
        Folder that contains the images now. Default: where the run read them.

    Returns
    -------
    RunImages

    Raises
    ------
    DataError
        If `data` does not exist.
    """
    if collection is not None:
        return _from_collection(contents, collection)
    if data is not None and not os.path.lexists(os.path.expanduser(data)):
        raise DataError(
            f"{data} does not exist.",
            fix="`data` is the folder that contains the images now.",
            code="data-not-found",
            data=data,
        )
    found = _reopened(contents, data)
    if found is not None and (found.images is None or _any_file_exists(found)):
        return found
    root = data or contents.config.get("root")
    bare = _bare_files(contents, data) if root else None
    if bare is not None and _any_file_exists(bare):
        return bare
    return RunImages(
        images=None,
        place=np.full(len(contents), -1, dtype=np.int64),
        note="The images of this run were not found. To include them: newkind report RUN --data FOLDER",
        searched=str(root) if root else "",
    )


def benchmark_of(config: dict[str, Any]) -> Benchmark | None:
    """Return the published benchmark that a run used; None for other data. `config`: contents of config.json."""
    found = _benchmark_and_folder(config)
    return None if found is None else found[0]


def _benchmark_and_folder(config: dict[str, Any]) -> tuple[Benchmark, str] | None:
    """Benchmark and its folder. A run names it `cub:FOLDER`; in format 1, `cub in FOLDER`."""
    found = BENCHMARK_ORIGIN.fullmatch(str(config.get("data") or ""))
    benchmark = BENCHMARKS.get(found["name"]) if found else None
    return None if found is None or benchmark is None else (benchmark, found["folder"])


def _reopened(contents: ImageNames, data: Path | None) -> RunImages | None:
    """Return the images of the data, opened again; None if it cannot be opened or has no image of the run."""
    try:
        collection = _open(contents.config, data)
    except (NewkindError, OSError):
        return None
    found = _from_collection(contents, collection)
    return found if (found.place >= 0).any() else None


def _open(config: dict[str, Any], data: Path | None) -> Collection:
    """Data of a run, with what was added to it."""
    found = _open_base(config, data)
    added = config.get("added")
    return add_images(found, [place for place in added if os.path.lexists(place)]) if added else found


def _open_base(config: dict[str, Any], data: Path | None) -> Collection:
    benchmark = _benchmark_and_folder(config)
    if benchmark is not None:
        return load_benchmark(benchmark[0].name, data or Path(benchmark[1]))
    reading = from_json(ReadingConfig, config.get("reading", {}))
    return open_data(data or str(config.get("data") or ""), **reading.given())


def _from_collection(contents: ImageNames, collection: Collection) -> RunImages:
    catalog, truth = collection.catalog, collection.truth
    number = {name: i for i, name in enumerate(catalog.items.names)}
    place = np.fromiter((number.get(file, -1) for file in contents.files), np.int64, len(contents))
    images = None if isinstance(catalog.items, Features) else catalog.items
    return RunImages(
        images=images,
        place=place,
        truth=None if truth is None else _truth_of(truth, place),
        class_names=() if truth is None else truth.class_names,
        n_old=0 if truth is None else truth.n_old,
        skipped=collection.skipped + tuple(_undecodable(images, place)),
        note="This run used precomputed features, so there are no images to show." if images is None else "",
    )


def _truth_of(truth: Truth, place: NDArray[np.int64]) -> NDArray[np.int32]:
    return np.where(place >= 0, truth.labels[place], -1).astype(np.int32)


def _undecodable(images: Images | None, place: NDArray[np.int64]) -> Iterator[Skipped]:
    """Yield images that the run lacks because they cannot be decoded; images added later are not reported."""
    if images is None:
        return
    for i in np.setdiff1d(np.arange(len(images)), place)[:MAX_CHECKED]:
        check = check_image(images, int(i))
        if check.error:
            yield Skipped(images.names[int(i)], check.error, check.code)


def _bare_files(contents: ImageNames, data: Path | None) -> RunImages:
    """Return the run's files in its folders, or in `data`, without a table or class folders."""
    files = run_files(contents.config, data)
    names = [_name_now(files, name) for name in contents.files]
    return RunImages(images=FileImages(files.folder, Names(names)), place=np.arange(len(contents), dtype=np.int64))


def _name_now(files: RunFiles, name: str) -> str:
    """Name of a file; an absolute path if it is not where its name leads to."""
    try:
        path = files.path(name)
    except RunError:  # it is not below the folders of the run
        return name
    return name if path == files.folder / name else str(path)


def _any_file_exists(found: RunImages) -> bool:
    """Whether some of the files exist (of up to 50 that are checked): a table may outlive its images."""
    images = found.images
    if not isinstance(images, FileImages):
        return images is not None
    there = found.place[found.place >= 0]
    return any(os.path.isfile(images.path(int(i))) for i in there[:: max(len(there) // 50, 1)])
