"""Data to measure on: it carries truth, and it is known by its content rather than by its name."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from newkind.backbone.ready import ReadyFeatures
from newkind.data import BENCHMARKS, Collection, Features, FileImages, Truth, find_obstacles, open_data, printable
from newkind.errors import BrokenImage, DataError

__all__ = ["BenchData", "bench_data", "open_bench_data"]


@dataclass(frozen=True, kw_only=True, eq=False)
class BenchData:
    """A collection with truth."""

    collection: Collection
    truth: Truth
    title: str
    """For tables."""
    benchmark: str
    """Its name among the published ones; empty for other data."""
    digest: str
    """Of what is in it."""

    @property
    def n_known(self) -> int:
        return self.collection.catalog.n_known_classes

    @property
    def n_classes(self) -> int:
        """Known and new together, as the truth has them."""
        return len(self.truth.class_names)

    @property
    def is_ready(self) -> bool:
        """Whether these are features already, so that no backbone is run."""
        return isinstance(self.collection.catalog.items, Features)

    def sentence(self) -> str:
        """Its name, and how much of what there is."""
        catalog = self.collection.catalog
        n_labelled = int(catalog.is_labelled.sum())
        return (
            f"{self.title}: {n_labelled:,} labelled of {self.n_known} known classes, "
            f"{len(catalog) - n_labelled:,} unlabelled of {self.n_classes} classes"
        )


def open_bench_data(text: str) -> BenchData:
    """As `discover` opens it: a folder, a table, an .npz file, or a benchmark as NAME:FOLDER."""
    name, colon, _ = text.partition(":")
    is_benchmark = name in BENCHMARKS and (bool(colon) or not os.path.exists(os.path.expanduser(text)))
    path = Path(os.path.expanduser(text))
    title = BENCHMARKS[name].title if is_benchmark else printable((path.name if path.is_dir() else path.stem) or text)
    return bench_data(open_data(text), title=title, benchmark=name if is_benchmark else "")


def bench_data(collection: Collection, *, title: str, benchmark: str = "") -> BenchData:
    """Checks that there is something to score."""
    catalog, truth = collection.catalog, collection.truth
    if truth is None:
        raise DataError(
            f"{title} carries no truth, so nothing can be measured on it.",
            fix="Take a benchmark as NAME:FOLDER, a table with a column 'truth', or an .npz file with 'truth'.",
        )
    if obstacles := find_obstacles(catalog.labels, catalog.class_names):
        raise obstacles[0]
    if not ((catalog.labels < 0) & (truth.labels >= 0)).any():
        raise DataError(f"{title}: no unlabelled image has a truth, so nothing can be measured on it.")
    return BenchData(
        collection=collection, truth=truth, title=title, benchmark=benchmark, digest=_digest(collection, truth)
    )


def _digest(collection: Collection, truth: Truth) -> str:
    """Of labels, truth and items: features and pixels as they are, image files by their names and sizes."""
    catalog, items = collection.catalog, collection.catalog.items
    digest = hashlib.sha256(json.dumps([catalog.class_names, truth.class_names, truth.n_old]).encode())
    digest.update(np.ascontiguousarray(catalog.labels).tobytes())
    digest.update(np.ascontiguousarray(truth.labels).tobytes())
    if isinstance(items, Features):
        digest.update(ReadyFeatures(items).content_hash())
    elif isinstance(items, FileImages):
        for i, name in enumerate(items.names):
            digest.update(f"{name}\0{_size(items.path(i))}\0".encode("utf-8", "surrogatepass"))
    else:
        for i in range(len(items)):
            try:
                digest.update(hashlib.sha256(items.content(i)).digest())
            except BrokenImage:
                digest.update(b"broken")
    return digest.hexdigest()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
