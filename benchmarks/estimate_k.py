"""Time to estimate the number of categories, ours against the published way.

The published way is Brent's search with scikit-learn's k-means and its default of one start per step.

    python benchmarks/estimate_k.py [--quick] [--data cub:FOLDER]

Without --data, features of CUB's size and shape are generated: 5,994 samples of 200 classes in 384 dimensions, 100 classes known.
The ratio compares the estimates alone, from features that are computed already; both estimates are printed.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, minimize_scalar
from sklearn.cluster import KMeans

from newkind.clustering import estimate_n_categories
from newkind.config import BackboneConfig
from newkind.data import open_data
from newkind.pipeline.estimate_n_categories import backbone_features

BAR = 10


@dataclass(frozen=True)
class Problem:
    """Features (n, d), labels (n,) with -1 for unlabelled, and the numbers of known and of all classes."""

    features: torch.Tensor
    labels: NDArray[np.int64]
    n_known: int
    n_true: int


def generated(quick: bool) -> Problem:
    """Classes around random directions; half of the samples of the first half of the classes are labelled."""
    n_classes, dim = (40, 64) if quick else (200, 384)
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(n_classes), 30)
    x = rng.normal(size=(n_classes, dim))[truth] + 1.2 * rng.normal(size=(len(truth), dim))
    labels = np.where((truth < n_classes // 2) & (np.arange(len(truth)) % 2 == 0), truth, -1)
    return Problem(torch.tensor(x, dtype=torch.float32), labels, n_classes // 2, n_classes)


def opened(data: str) -> Problem:
    """Features of the default backbone of a collection."""
    collection = open_data(data)
    found = backbone_features(collection, BackboneConfig())
    labels = collection.catalog.labels[found.images].astype(np.int64)
    n_true = len(collection.truth.class_names) if collection.truth else 0
    return Problem(found.features, labels, collection.catalog.n_known_classes, n_true)


def published(x: torch.Tensor, y: NDArray[np.int64], n_known: int, most: int) -> tuple[int, int]:
    """K and the number of k-means runs, by the released procedure."""
    features = torch.nn.functional.normalize(x, dim=1).numpy()
    given = y >= 0
    scores: dict[int, float] = {}

    def loss(value: float) -> float:
        k = int(value)
        found = KMeans(k, random_state=0).fit_predict(features)[given]
        table = np.zeros((n_known, k))
        np.add.at(table, (y[given], found), 1)
        scores[k] = float(table[linear_sum_assignment(table, maximize=True)].sum() / given.sum())
        return -scores[k]

    steps = minimize_scalar(loss, bounds=(n_known, most), method="bounded").nfev
    return max(scores, key=lambda k: scores[k]), steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="Use 1,200 samples of 40 classes.")
    parser.add_argument("--data", help="Data to open instead of generated features.")
    parser.add_argument("--max-categories", type=int, default=1000, help="Upper end of the published search.")
    arguments = parser.parse_args()
    problem = opened(arguments.data) if arguments.data else generated(arguments.quick)
    x, y, n_known = problem.features, problem.labels, problem.n_known
    start = time.perf_counter()
    ours = estimate_n_categories(x, y, n_known=n_known)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    theirs, steps = published(x, y, n_known, min(arguments.max_categories, 200 if arguments.quick else 1000))
    plain = time.perf_counter() - start
    print(f"{len(x):,} samples, {n_known} known classes, truth {problem.n_true}")
    print(f"{'ours':10} {ours.n_categories:>5} [{ours.low}, {ours.high}]  {seconds:8.1f} s")
    print(f"{'published':10} {theirs:>5} ({steps} k-means)  {plain:8.1f} s")
    value = plain / seconds
    result = {"name": "estimate_k", "value": round(value, 1), "bar": BAR, "ok": value >= BAR, "unit": "x faster"}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
