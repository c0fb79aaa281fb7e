"""How many categories: the published search and ours against the truth, on real photographs and on mixtures.

    python benchmarks/studies/number_of_categories.py cub:DATA GROCERIES --mixtures

Each DATA may carry its image size and views as DATA@112@4 (default 224 and 8: the token cache that is there already).
Beside the usual split, random splits of the same truth (`--splits`) show how far the interval can be trusted. Markdown on stdout.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from numpy.typing import NDArray

from newkind.clustering import Estimate, estimate_by_search, estimate_n_categories
from newkind.config import BackboneConfig
from newkind.data import open_data
from newkind.pipeline.estimate_n_categories import backbone_features

Problem = tuple[str, torch.Tensor, NDArray[np.int64], int, int]


def opened(text: str) -> tuple[str, torch.Tensor, NDArray[np.int64], NDArray[np.int64]]:
    """(name, features, labels, truth)"""
    data, *rest = text.split("@")
    size, views = (int(v) for v in [*rest, *["224", "8"][len(rest) :]])
    collection = open_data(data)
    assert collection.truth is not None
    trunk = BackboneConfig(image_size=size, views=views)
    x, images = backbone_features(collection, trunk)
    name = data.partition(":")[0].rstrip("/").rpartition("/")[2]
    labels, truth = collection.catalog.labels[images], collection.truth.labels[images]
    return f"{name}, {size} px", x, labels.astype(np.int64), truth.astype(np.int64)


def random_split(
    name: str, x: torch.Tensor, truth: NDArray[np.int64], n_known: int, n_new: int, *, tail: bool, seed: int
) -> Problem:
    """Other classes known, half of their images labelled; `tail` keeps a random 15-100 % of each class."""
    rng = np.random.default_rng(seed)
    classes = rng.permutation(np.unique(truth))[: n_known + n_new]
    rows, labels = [], []
    for i, c in enumerate(classes):
        own = rng.permutation(np.flatnonzero(truth == c))
        own = own[: max(4, int(len(own) * rng.uniform(0.15, 1)))] if tail else own
        n_labelled = len(own) // 2 if i < n_known else 0
        rows.append(own)
        labels.append(np.where(np.arange(len(own)) < n_labelled, i, -1))
    shape = f"{n_known} known + {n_new} new" + (", long-tailed" if tail else "")
    return f"{name}, {shape}", x[np.concatenate(rows)], np.concatenate(labels), n_known, n_known + n_new


def mixture(n_classes: int, *, tail: bool, seed: int) -> Problem:
    """Gaussian clouds in 32-d, half of the classes known; `tail`: sizes fall from 80 to 6."""
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
    return name, torch.tensor(x, dtype=torch.float32), labels, n_known, n_classes


def line(problem: Problem, *, search: bool) -> None:
    name, x, labels, n_known, truth = problem
    start = time.perf_counter()
    ours = estimate_n_categories(x, labels, n_known=n_known)
    seconds = time.perf_counter() - start
    published, took = "", ""
    if search:
        start = time.perf_counter()
        found: Estimate = estimate_by_search(x, labels, n_known=n_known)
        published, took = str(found.n_categories), f"{time.perf_counter() - start:.0f} s"
    inside = "yes" if ours.low <= truth <= ours.high else "no"
    cells = [name, str(truth), published, took, f"{ours.n_categories} [{ours.low}, {ours.high}]", inside]
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
        name, x, labels, truth = opened(text)
        n_classes, n_known = len(np.unique(truth)), int(labels.max()) + 1
        line((name, x, labels, n_known, n_classes), search=True)
        for seed in range(arguments.splits):
            for known, new, tail in (
                (n_known, n_classes - n_known, False),
                (n_known, n_known // 5, False),
                (n_classes * 3 // 10, n_classes // 2, False),
                (n_known, n_classes - n_known, True),
            ):
                line(random_split(name, x, truth, known, new, tail=tail, seed=seed), search=False)
    for n_classes in (20, 60) if arguments.mixtures else ():
        for tail in (False, True):
            line(mixture(n_classes, tail=tail, seed=n_classes), search=True)


if __name__ == "__main__":
    main()
