"""The paper's eight datasets from their official layouts, with the published Old/New classes and labelled images."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from newkind.data.catalog import Catalog, Collection, Truth
from newkind.data.cifar import read_cifar10, read_cifar100
from newkind.data.layouts import SYNSET, Listing, class_folders, read_aircraft, read_cars, read_class_folders, read_cub
from newkind.data.splits import class_split, divide
from newkind.errors import BenchmarkMissing, DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["BENCHMARKS", "Benchmark", "departures", "load_benchmark", "recognise"]


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """What there is to know about a published dataset before it is read."""

    name: str
    title: str
    n_classes: int
    n_old: int
    n_images: int | None
    """Official training images; None where no official figure exists."""
    folders: tuple[str, ...]
    """What its folder is called; the first is the one to recommend."""
    pieces: tuple[str, ...]
    """What must be in that folder ('/' at the end: a folder); the first is what it is found by."""
    source: str
    """Where to get it."""
    read: Callable[[Path], Listing]


def _read_herbarium(folder: Path) -> Listing:
    return read_class_folders(folder / "small-train", n_classes=683)


def _read_imagenet_100(folder: Path) -> Listing:
    keep = class_split("imagenet_100").classes
    return read_class_folders(folder / "train", n_classes=1000, keep=keep, pattern=SYNSET)


def _read_imagenet_1k(folder: Path) -> Listing:
    return read_class_folders(folder / "train", n_classes=1000, pattern=SYNSET)


_CIFAR_SITE = "https://www.cs.toronto.edu/~kriz/cifar.html (the 'python version')"
_IMAGENET_SITE = "https://image-net.org/download.php (ILSVRC2012 training images, free account; one folder a synset)"
_IMAGENET_FOLDERS = ("imagenet", "ImageNet", "ILSVRC2012", "ILSVRC/Data/CLS-LOC")

BENCHMARKS: Mapping[str, Benchmark] = {
    benchmark.name: benchmark
    for benchmark in (
        Benchmark(
            name="cifar10",
            title="CIFAR-10",
            n_classes=10,
            n_old=5,
            n_images=50_000,
            folders=("cifar-10-batches-py",),
            pieces=("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "batches.meta"),
            source=_CIFAR_SITE,
            read=read_cifar10,
        ),
        Benchmark(
            name="cifar100",
            title="CIFAR-100",
            n_classes=100,
            n_old=80,
            n_images=50_000,
            folders=("cifar-100-python",),
            pieces=("train", "meta"),
            source=_CIFAR_SITE,
            read=read_cifar100,
        ),
        Benchmark(
            name="imagenet_100",
            title="ImageNet-100",
            n_classes=100,
            n_old=50,
            n_images=None,
            folders=_IMAGENET_FOLDERS,
            pieces=("train/",),
            source=_IMAGENET_SITE,
            read=_read_imagenet_100,
        ),
        Benchmark(
            name="imagenet_1k",
            title="ImageNet-1K",
            n_classes=1000,
            n_old=500,
            n_images=1_281_167,
            folders=_IMAGENET_FOLDERS,
            pieces=("train/",),
            source=_IMAGENET_SITE,
            read=_read_imagenet_1k,
        ),
        Benchmark(
            name="cub",
            title="CUB-200-2011",
            n_classes=200,
            n_old=100,
            n_images=5_994,
            folders=("CUB_200_2011",),
            pieces=("images.txt", "image_class_labels.txt", "train_test_split.txt", "classes.txt", "images/"),
            source="https://www.vision.caltech.edu/datasets/cub_200_2011/",
            read=partial(read_cub, n_classes=200),
        ),
        Benchmark(
            name="stanford_cars",
            title="Stanford Cars",
            n_classes=196,
            n_old=98,
            n_images=8_144,
            folders=("stanford_cars", "StanfordCars", "cars"),
            pieces=("devkit/cars_train_annos.mat", "devkit/cars_meta.mat", "cars_train/"),
            source="https://ai.stanford.edu/~jkrause/cars/car_dataset.html"
            " (if that page is down: https://github.com/pytorch/vision/issues/7545 names copies)",
            read=partial(read_cars, n_classes=196),
        ),
        Benchmark(
            name="fgvc_aircraft",
            title="FGVC-Aircraft",
            n_classes=100,
            n_old=50,
            n_images=6_667,
            folders=("fgvc-aircraft-2013b",),
            pieces=("data/images_variant_trainval.txt", "data/images/"),
            source="https://www.robots.ox.ac.uk/~vgg/data/fgvc-aircraft/",
            read=partial(read_aircraft, n_classes=100),
        ),
        Benchmark(
            name="herbarium_19",
            title="Herbarium 19",
            n_classes=683,
            n_old=341,
            n_images=34_225,
            folders=("herbarium_19", "herbarium19", "herbarium-2019"),
            pieces=("small-train/",),
            source="https://github.com/visipedia/herbarium_comp (2019, the small training set)",
            read=_read_herbarium,
        ),
    )
}


def load_benchmark(name: str, root: str | os.PathLike[str]) -> Collection:
    """The training images of a benchmark in `root`: the dataset's own folder, or the one that holds it.

    Labels and truth are those of the published runs; a note says so where images are missing.
    """
    if name not in BENCHMARKS:
        raise DataError(f"Unknown benchmark '{name}'; expected one of {', '.join(BENCHMARKS)}.")
    benchmark = BENCHMARKS[name]
    folder = _locate(benchmark, Path(os.path.expanduser(root)))
    listing = benchmark.read(folder)
    split = class_split(name)
    _require_images_of(split.classes, listing, folder)
    division = divide(listing.class_ids, old=split.old, new=split.new)
    class_names = tuple(listing.class_names[i] for i in split.classes)
    return Collection(
        catalog=Catalog(items=listing.images, labels=division.labels, class_names=class_names[: len(split.old)]),
        truth=Truth(labels=division.truth, class_names=class_names, n_old=len(split.old)),
        origin=f"{name} in {folder}",
        benchmark=name,
        location=f"{name}:{os.path.abspath(folder)}",
        notes=departures(benchmark, n_found=len(listing.class_ids)),
    )


def recognise(folder: str | os.PathLike[str]) -> str | None:
    """The name of the benchmark whose official layout `folder`, or its parent, has; None if it has none of them."""
    try:
        here = Path(folder).expanduser().resolve()
        for place in (here, here.parent):
            for name, benchmark in BENCHMARKS.items():
                # Nothing tells ImageNet-100 from ImageNet-1K on disk: the whole is what is there.
                if name != "imagenet_100" and all(_has(place, piece) for piece in benchmark.pieces):
                    # Many datasets have a folder 'train', even with some synsets in it.
                    if name == "imagenet_1k" and len(class_folders(place / "train", SYNSET)) != benchmark.n_classes:
                        continue
                    return name
    except (OSError, RuntimeError, ValueError, DataError):  # a folder that cannot be looked into has no known layout
        pass
    return None


def departures(benchmark: Benchmark, *, n_found: int) -> tuple[str, ...]:
    """How the images found differ from the official ones, in sentences; empty if they do not.

    The labelled images are drawn from an ordered list, so one missing image changes the whole draw.
    """
    if benchmark.n_images in (None, n_found):
        return ()
    return (
        f"{benchmark.title} has {benchmark.n_images:,} training images, but {n_found:,} are here: "
        "the labelled images are not those of the published runs.",
    )


def _locate(benchmark: Benchmark, root: Path) -> Path:
    """The dataset's folder; raises BenchmarkMissing."""
    candidates = [*(root / folder for folder in benchmark.folders), root]
    # Someone who gives .../imagenet/train or .../fgvc-aircraft-2013b/data means the folder around it.
    if root.name in {Path(piece).parts[0] for piece in benchmark.pieces}:
        candidates.append(root.parent)
    for candidate in candidates:
        if _has(candidate, benchmark.pieces[0]):
            return candidate
    recommended = root if root.name in benchmark.folders else root / benchmark.folders[0]
    looked_in = f"neither {recommended} nor {root} itself has" if recommended != root else "it does not have"
    raise BenchmarkMissing(
        f"{benchmark.title} is not in {root}: {looked_in} {benchmark.pieces[0]}.",
        fix=f"Get it from {benchmark.source} and unpack it so that {recommended} has {', '.join(benchmark.pieces)}.",
    )


def _has(folder: Path, piece: str) -> bool:
    try:
        return (folder / piece).is_dir() if piece.endswith("/") else (folder / piece).is_file()
    except OSError:
        return False


def _require_images_of(classes: tuple[int, ...], listing: Listing, folder: Path) -> None:
    counts = np.bincount(listing.class_ids, minlength=len(listing.class_names))
    empty = [listing.class_names[i] for i in classes if counts[i] == 0]
    if empty:
        raise DataError(
            f"{folder}: {len(empty)} of {len(classes)} classes have no training image, '{empty[0]}' for one.",
            fix="Unpack the dataset again: it is not complete.",
        )
