"""The eight published benchmarks, read from their official layouts, with the published classes and labelled images."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from newkind.data.catalog import Catalog, Collection, Truth
from newkind.data.cifar import read_cifar10, read_cifar100
from newkind.data.layouts import SYNSET, Listing, class_folders, read_aircraft, read_cars, read_class_folders, read_cub
from newkind.data.list_files import incomplete
from newkind.data.splits import class_split, divide
from newkind.errors import BenchmarkMissing, DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["BENCHMARKS", "Benchmark", "load_benchmark", "recognise"]


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """Facts about a published dataset.

    Parameters
    ----------
    name : str
        Name for `load_benchmark`.
    title : str
        Name for display.
    n_images : int or None
        Official number of training images; None if there is no official number.
    folders : tuple of str
        Usual names of the dataset's folder; the first is recommended.
    contents : tuple of str
        Files and folders (ending in "/") in the dataset's folder; the dataset is recognised by the first.
    source : str
        Where to download the dataset.

    Examples
    --------
    >>> cub = BENCHMARKS["cub"]
    >>> cub.n_images, cub.n_classes, cub.n_old
    (5994, 200, 100)
    """

    name: str
    title: str
    n_images: int | None
    folders: tuple[str, ...]
    contents: tuple[str, ...]
    source: str

    @property
    def n_classes(self) -> int:
        """Number of classes, Old and New."""
        return len(class_split(self.name).classes)

    @property
    def n_old(self) -> int:
        """Number of Old classes."""
        return len(class_split(self.name).old)


def _known_benchmarks() -> dict[str, Benchmark]:
    """Benchmarks of `benchmarks.json` by name."""
    table = json.loads(files("newkind.data").joinpath("benchmarks.json").read_text(encoding="utf-8"))
    for facts in table.values():
        facts |= {"folders": tuple(facts["folders"]), "contents": tuple(facts["contents"])}
    return {name: Benchmark(name=name, **facts) for name, facts in table.items()}


BENCHMARKS: Mapping[str, Benchmark] = _known_benchmarks()
"""Benchmarks by name."""

_READERS: Mapping[str, Callable[[Path], Listing]] = {
    "cifar10": read_cifar10,
    "cifar100": read_cifar100,
    "imagenet_100": lambda folder: read_class_folders(
        folder / "train", n_classes=1000, keep=class_split("imagenet_100").classes, pattern=SYNSET
    ),
    "imagenet_1k": lambda folder: read_class_folders(folder / "train", n_classes=1000, pattern=SYNSET),
    "cub": partial(read_cub, n_classes=200),
    "stanford_cars": partial(read_cars, n_classes=196),
    "fgvc_aircraft": partial(read_aircraft, n_classes=100),
    "herbarium_19": lambda folder: read_class_folders(folder / "small-train", n_classes=683),
}


def load_benchmark(name: str, root: str | os.PathLike[str]) -> Collection:
    """Read the training images of a benchmark, with the labels and the truth of the published runs.

    Parameters
    ----------
    name : str
        One of `BENCHMARKS`: cifar10, cifar100, imagenet_100, imagenet_1k, cub, stanford_cars, fgvc_aircraft or
        herbarium_19.
    root : path-like
        Folder of the dataset, or the folder that contains it.

    Returns
    -------
    Collection
        A note says so if images are missing, because then the labelled images differ from those of the published runs.

    Raises
    ------
    BenchmarkMissing
        If the dataset is not in `root`; the message says where to download it.
    DataError
        If the dataset is damaged, or `name` is not a benchmark (`unknown-benchmark`).

    Examples
    --------
    >>> BENCHMARKS["cub"].title, BENCHMARKS["cub"].n_old, BENCHMARKS["cub"].n_classes
    ('CUB-200-2011', 100, 200)
    >>> load_benchmark("cub", "/nowhere")
    Traceback (most recent call last):
    newkind.errors.BenchmarkMissing: ...
    """
    if name not in BENCHMARKS:
        raise DataError(
            f"Unknown benchmark '{name}'; expected one of {', '.join(BENCHMARKS)}.",
            code="unknown-benchmark",
            benchmark=name,
        )
    benchmark = BENCHMARKS[name]
    folder = _locate(benchmark, Path(os.path.expanduser(root)))
    listing = _READERS[name](folder)
    split = class_split(name)
    _check_all_classes_have_images(split.classes, listing, folder)
    division = divide(listing.class_ids, old=split.old, new=split.new)
    class_names = tuple(listing.class_names[i] for i in split.classes)
    return Collection(
        catalog=Catalog(items=listing.images, labels=division.labels, class_names=class_names[: len(split.old)]),
        truth=Truth(labels=division.truth, class_names=class_names, n_old=len(split.old)),
        origin=f"{name} in {folder}",
        benchmark=name,
        location=f"{name}:{os.path.abspath(folder)}",
        notes=_differences(benchmark, n_found=len(listing.class_ids)),
    )


def recognise(folder: str | os.PathLike[str]) -> str | None:
    """Name of the benchmark whose official layout `folder` or its parent has; None if there is none."""
    try:
        here = Path(folder).expanduser().resolve()
        for place in (here, here.parent):
            for name, benchmark in BENCHMARKS.items():
                # ImageNet-100 and ImageNet-1K are the same on disk: the whole dataset is there.
                if name != "imagenet_100" and all(_has(place, entry) for entry in benchmark.contents):
                    # Many datasets have a folder 'train', even with some synsets in it.
                    if name == "imagenet_1k" and len(class_folders(place / "train", SYNSET)) != benchmark.n_classes:
                        continue
                    return name
    except (OSError, RuntimeError, ValueError, DataError):  # a folder that cannot be read has no known layout
        pass
    return None


def _differences(benchmark: Benchmark, *, n_found: int) -> tuple[str, ...]:
    """Notes on differences from the official dataset.

    The labelled images are drawn from an ordered list, so one missing image changes the whole draw.
    """
    if benchmark.n_images in (None, n_found):
        return ()
    return (
        f"{benchmark.title} has {benchmark.n_images:,} training images, but {n_found:,} were found: "
        "the labelled images differ from those of the published runs.",
    )


def _locate(benchmark: Benchmark, root: Path) -> Path:
    """Folder of a dataset in or around `root`; raises BenchmarkMissing."""
    candidates = [*(root / folder for folder in benchmark.folders), root]
    # Somebody who gives .../imagenet/train or .../fgvc-aircraft-2013b/data means the folder around it.
    if root.name in {Path(entry).parts[0] for entry in benchmark.contents}:
        candidates.append(root.parent)
    for candidate in candidates:
        if _has(candidate, benchmark.contents[0]):
            return candidate
    recommended = root if root.name in benchmark.folders else root / benchmark.folders[0]
    searched = f"neither {recommended} nor {root} contains" if recommended != root else "it does not contain"
    raise BenchmarkMissing(
        f"{benchmark.title} is not in {root}: {searched} {benchmark.contents[0]}.",
        fix=f"Download it from {benchmark.source} and unpack it so that {recommended} contains "
        f"{', '.join(benchmark.contents)}.",
        benchmark=benchmark.name,
        folder=str(recommended),
    )


def _has(folder: Path, entry: str) -> bool:
    """Whether a folder has a file, or a folder if `entry` ends in "/"."""
    try:
        return (folder / entry).is_dir() if entry.endswith("/") else (folder / entry).is_file()
    except OSError:
        return False


def _check_all_classes_have_images(classes: tuple[int, ...], listing: Listing, folder: Path) -> None:
    """Raise DataError if a class has no image."""
    counts = np.bincount(listing.class_ids, minlength=len(listing.class_names))
    empty = [listing.class_names[i] for i in classes if counts[i] == 0]
    if empty:
        found = f"{len(empty)} of {len(classes)} classes have no training image, such as '{empty[0]}'."
        raise incomplete(found, path=folder, code="empty-class", classes=empty)
