"""Data of a study: a collection with truth, a title for tables, and a digest of its content."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from newkind.data import BENCHMARKS, Collection, Features, Truth, find_obstacles, open_data, printable
from newkind.errors import DataError
from newkind.experiments.collection_digest import collection_digest

__all__ = ["BenchData", "bench_data", "open_bench_data"]


@dataclass(frozen=True, kw_only=True, eq=False)
class BenchData:
    """A collection with truth. Made by `bench_data` or `open_bench_data`.

    Parameters
    ----------
    collection : Collection
        The data.
    truth : Truth
        Its truth.
    title : str
        Name for tables.
    digest : str
        Digest of the content.
    """

    collection: Collection
    truth: Truth
    title: str
    digest: str

    @property
    def benchmark(self) -> str:
        """Name of the published benchmark; empty for other data."""
        return self.collection.benchmark

    @property
    def n_known(self) -> int:
        """Number of known classes."""
        return self.collection.catalog.n_known_classes

    @property
    def n_classes(self) -> int:
        """Number of known and new classes together, as in the truth."""
        return len(self.truth.class_names)

    @property
    def is_ready(self) -> bool:
        """Whether the items are features, so that no backbone is used."""
        return isinstance(self.collection.catalog.items, Features)

    def description(self) -> str:
        """Title, and numbers of images and classes."""
        catalog = self.collection.catalog
        n_labelled = int(catalog.is_labelled.sum())
        return (
            f"{self.title}: {n_labelled:,} labelled images of {self.n_known} known classes, "
            f"{len(catalog) - n_labelled:,} unlabelled images of {self.n_classes} classes"
        )


def open_bench_data(text: str) -> BenchData:
    """Open data as `discover` does.

    Parameters
    ----------
    text : str
        A folder, a table, an .npz file, or a benchmark as NAME:FOLDER.

    Returns
    -------
    BenchData
    """
    collection = open_data(text)
    if collection.benchmark:
        return bench_data(collection, title=BENCHMARKS[collection.benchmark].title)
    path = Path(os.path.expanduser(text))
    return bench_data(collection, title=printable((path.name if path.is_dir() else path.stem) or text))


def bench_data(collection: Collection, *, title: str) -> BenchData:
    """Check that a collection can be scored.

    Parameters
    ----------
    collection : Collection
        The data.
    title : str
        Name for tables.

    Returns
    -------
    BenchData

    Raises
    ------
    DataError
        With code `no-truth`, `no-unlabelled-truth`, or as `find_obstacles`.
    """
    catalog, truth = collection.catalog, collection.truth
    if truth is None:
        raise DataError(
            f"{title} has no truth, so nothing can be measured on it.",
            fix="Use a benchmark as NAME:FOLDER, a table with a column 'truth', or an .npz file with 'truth'.",
            code="no-truth",
        )
    if obstacles := find_obstacles(catalog.labels, catalog.class_names):
        raise obstacles[0]
    if not ((catalog.labels < 0) & (truth.labels >= 0)).any():
        raise DataError(
            f"{title} has no truth for any unlabelled image, so nothing can be measured on it.",
            code="no-unlabelled-truth",
        )
    return BenchData(collection=collection, truth=truth, title=title, digest=collection_digest(collection))
