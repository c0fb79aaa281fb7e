"""The published way to estimate the number of categories (Vaze et al., Generalized Category Discovery, 2022).

k-means on all features for one K after another, scored by the accuracy on the labelled samples, with one of two searches for the
best K, Brent's bounded search or a binary one. A labelled sample that shares its cluster with a new class costs nothing, so it
tends to find too few.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import log2
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment, minimize_scalar
from sklearn.metrics.cluster import contingency_matrix
from torch import Tensor

from newkind.clustering.estimate import Estimate
from newkind.clustering.kmeans import k_means
from newkind.clustering.n_categories import check_features, check_search
from newkind.errors import ConfigError
from newkind.setting import check_number

__all__ = ["estimate_by_search"]


def estimate_by_search(
    features: Tensor | NDArray[Any],
    labels: ArrayLike,
    *,
    n_known: int,
    seed: int = 0,
    max_categories: int = 1000,
    n_init: int = 10,
    search: str = "brent",
) -> Estimate:
    """Estimate the number of categories by a published search, for comparison.

    Parameters
    ----------
    features : tensor or ndarray of shape (n_samples, n_features)
        Features of all samples. They are L2-normalised first.
    labels : array-like of int, shape (n_samples,)
        Class of each sample, 0 to `n_known` - 1, or -1 for unlabelled.
    n_known : int
        Number of known classes, the lower end of the search.
    max_categories : int, default=1000
        Upper end; at most the number of samples is used.
    seed, n_init : int, default=0 and 10
        Seed and number of restarts of each k-means.
    search : {"brent", "binary"}, default="brent"
        Brent's search, whose numbers are truncated, or a binary one, as the published script for Herbarium 19.

    Returns
    -------
    Estimate
        The number that the search ends with, without an interval.

    Raises
    ------
    DataError, ConfigError
        As from `estimate_n_categories`; `search-range` (`max_categories` is not above `n_known`) or `unknown-choice`.

    Examples
    --------
    >>> rng, truth = np.random.default_rng(0), np.repeat(np.arange(12), 20)
    >>> features = rng.normal(size=(12, 16))[truth] + 0.3 * rng.normal(size=(240, 16))
    >>> labels = np.where((truth < 6) & (np.arange(240) % 2 == 0), truth, -1)
    >>> found = estimate_by_search(features, labels, n_known=6, max_categories=40, n_init=2)
    >>> 8 <= found.n_categories <= 20
    True
    """
    check_search(seed, max_categories)
    check_number("n_init", n_init, at_least=1, at_most=1000)
    x, y = check_features(features, labels, n_known)
    score = cache(lambda k: _accuracy(y, k_means(x, k, n_init=n_init, seed=seed).labels.numpy()))
    best, scores = _visited(search, score, _bounds(n_known, min(max_categories, len(x))))
    return Estimate(
        n_categories=best,
        low=best,
        high=best,
        n_known=n_known,
        way="search",
        quality=round(scores[best], 4),
        curve=tuple((k, round(score, 4)) for k, score in sorted(scores.items())),
    )


def _bounds(n_known: int, most: int) -> tuple[int, int]:
    """Both ends of the search, checked."""
    if most <= n_known:
        raise ConfigError(
            f"The search needs more than {n_known} categories, the number of known classes; got at most {most}.",
            fix="Increase `max_categories`.",
            code="search-range",
            n_known=n_known,
            most=most,
        )
    return n_known, most


def _visited(search: str, score: Callable[[int], float], bounds: tuple[int, int]) -> tuple[int, dict[int, float]]:
    """Number that a search ends with, and the scores of all numbers that it visits."""
    if search not in SEARCHES:
        raise ConfigError(f"`search` must be brent or binary, got '{search}'.", code="unknown-choice", setting="search")
    scores: dict[int, float] = {}

    def scored(k: int) -> float:
        scores[k] = score(k)
        return scores[k]

    return SEARCHES[search](scored, bounds), scores


def _brent(score: Callable[[int], float], bounds: tuple[int, int]) -> int:
    """Number at which Brent's bounded search for the highest score ends; its numbers are truncated."""
    return int(minimize_scalar(lambda value: -score(int(value)), bounds=bounds, method="bounded").x)


def _binary(score: Callable[[int], float], bounds: tuple[int, int]) -> int:
    """Best of the last three numbers of a binary search, the smallest one of equals."""
    low, high = bounds
    middle = (low + high) // 2
    for _ in range(int(log2(high - low))):
        low, high = (middle, high) if score(high) > score(low) else (low, middle)
        middle = (low + high) // 2
    return max((low, middle, high), key=score)


SEARCHES = {"brent": _brent, "binary": _binary}


def _accuracy(labels: NDArray[np.int64], clusters: NDArray[np.int64]) -> float:
    """Accuracy on the labelled samples under the best matching; labels and clusters (n,)."""
    given = labels >= 0
    counts = contingency_matrix(labels[given], clusters[given])
    return float(counts[linear_sum_assignment(counts, maximize=True)].sum() / given.sum())
