"""Estimated numbers of categories: the published search and ours compared with the truth, on photographs and on mixtures.

    python benchmarks/studies/number_of_categories.py cub:DATA GROCERIES --mixtures

Each DATA may be followed by its image size and number of views, as DATA@112@4 (default: 224 and 8). Beside the usual split,
random splits of the same truth (`--splits`) show how reliable the interval is. Prints Markdown.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from newkind.clustering import Estimate, estimate_by_search, estimate_n_categories
from newkind.config import BackboneConfig
from newkind.data import open_data
from newkind.pipeline.estimate_n_categories import backbone_features


@dataclass(frozen=True)
class Problem:
    """Features (n, d), labels (n,) with -1 for unlabelled, truth (n,)."""

    name: str
    x: torch.Tensor
    labels: NDArray[np.int64]
    truth: NDArray[np.int64]

    @property
    def n_known(self) -> int:
        """Number of known classes."""
        return int(self.labels.max()) + 1

    @property
    def n_classes(self) -> int:
        """True number of classes."""
        return len(np.unique(self.truth))


@dataclass(frozen=True)
class Split:
    """Numbers of known and new classes; `tail` keeps a random 15-100 % of each class."""

    n_known: int
    n_new: int
    tail: bool = False


def opened(text: str) -> Problem:
    """The problem of DATA@SIZE@VIEWS."""
    data, *rest = text.split("@")
    size, views = (int(v) for v in [*rest, *["224", "8"][len(rest) :]])
    collection = open_data(data)
    assert collection.truth is not None
    found = backbone_features(collection, BackboneConfig(image_size=size, views=views))
    name = data.partition(":")[0].rstrip("/").rpartition("/")[2]
    labels, truth = collection.catalog.labels[found.images], collection.truth.labels[found.images]
    return Problem(f"{name}, {size} px", found.features, labels.astype(np.int64), truth.astype(np.int64))


def random_split(whole: Problem, split: Split, *, seed: int) -> Problem:
    """Other known classes, with half of their images labelled."""
    truth, rng = whole.truth, np.random.default_rng(seed)
    classes = rng.permutation(np.unique(truth))[: split.n_known + split.n_new]
    rows, labels = [], []
    for i, c in enumerate(classes):
        own = rng.permutation(np.flatnonzero(truth == c))
        own = own[: max(4, int(len(own) * rng.uniform(0.15, 1)))] if split.tail else own
        n_labelled = len(own) // 2 if i < split.n_known else 0
        rows.append(own)
        labels.append(np.where(np.arange(len(own)) < n_labelled, i, -1))
    shape = f"{split.n_known} known + {split.n_new} new" + (", long-tailed" if split.tail else "")
    chosen = np.concatenate(rows)
    return Problem(f"{whole.name}, {shape}", whole.x[chosen], np.concatenate(labels), truth[chosen])


def mixture(n_classes: int, *, tail: bool, seed: int) -> Problem:
    """Gaussian clusters in 32-d, half of the classes known; with `tail`, sizes fall from 80 to 6."""
    rng = np.random.default_rng(seed)
    sizes = np.full(n_classes, 40)
    if tail:
        sizes = np.maximum(6, (80 * np.exp(-2.6 * np.arange(n_classes) / n_classes)).astype(int))
        sizes = rng.permutation(sizes)
    truth = np.repeat(np.arange(n_classes), sizes)
    x = 0.9 * rng.normal(size=(n_classes, 32))[truth] + rng.normal(size=(len(truth), 32))
    n_known = n_classes // 2
    labels = np.where((truth < n_known) & (rng.random(len(truth)) < 0.5), truth, -1)
    name = f"mixture of {n_classes}, {'long-tailed' if tail else 'balanced'}"
    return Problem(name, torch.tensor(x, dtype=torch.float32), labels, truth)


def line(problem: Problem, *, search: bool) -> None:
    """Print a row of the table; `search` also runs the published search."""
    x, labels, n_known, truth = problem.x, problem.labels, problem.n_known, problem.n_classes
    start = time.perf_counter()
    ours = estimate_n_categories(x, labels, n_known=n_known)
    seconds = time.perf_counter() - start
    published, took = "", ""
    if search:
        start = time.perf_counter()
        found: Estimate = estimate_by_search(x, labels, n_known=n_known)
        published, took = str(found.n_categories), f"{time.perf_counter() - start:.0f} s"
    inside = "yes" if ours.low <= truth <= ours.high else "no"
    cells = [problem.name, str(truth), published, took, f"{ours.n_categories} [{ours.low}, {ours.high}]", inside]
    print(f"| {' | '.join(cells)} | {seconds:.0f} s | {ours.quality:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*")
    parser.add_argument("--mixtures", action="store_true")
    parser.add_argument("--splits", type=int, default=2)
    arguments = parser.parse_args()
    print(
        "| data | truth | published | time | ours [interval] | inside | time | F1 |\n|---|---|---|---|---|---|---|---|"
    )
    for text in arguments.data:
        whole = opened(text)
        line(whole, search=True)
        n_classes, n_known = whole.n_classes, whole.n_known
        splits = [
            Split(n_known, n_classes - n_known),
            Split(n_known, n_known // 5),
            Split(n_classes * 3 // 10, n_classes // 2),
            Split(n_known, n_classes - n_known, tail=True),
        ]
        for seed in range(arguments.splits):
            for split in splits:
                line(random_split(whole, split, seed=seed), search=False)
    for n_classes in (20, 60) if arguments.mixtures else ():
        for tail in (False, True):
            line(mixture(n_classes, tail=tail, seed=n_classes), search=True)


if __name__ == "__main__":
    main()
