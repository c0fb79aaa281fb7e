"""The published way to estimate the number of categories (Vaze et al., Generalized Category Discovery, 2022).

k-means on all features for one K after another, scored by the accuracy on the labelled samples, with Brent's bounded search
for the best K. A labelled sample that shares its cluster with a new class costs nothing, so it tends to find too few.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment, minimize_scalar
from sklearn.metrics.cluster import contingency_matrix
from torch import Tensor

from newkind.clustering.estimate import Estimate
from newkind.clustering.kmeans import k_means
from newkind.clustering.n_categories import check_features
from newkind.errors import ConfigError

__all__ = ["estimate_by_search"]


def estimate_by_search(
    features: Tensor | NDArray[Any],
    labels: ArrayLike,
    *,
    n_known: int,
    seed: int = 0,
    max_categories: int = 1000,
    n_init: int = 10,
) -> Estimate:
    """Estimate the number of categories by the published search, for comparison.

    Parameters
    ----------
    features : tensor or ndarray of shape (n_samples, n_features)
        Features of all samples. They are L2-normalised first.
    labels : array-like of int, shape (n_samples,)
        Class of each sample, 0 to `n_known` - 1, or -1 for unlabelled.
    n_known : int
        Number of known classes, the lower end of the search.
    seed : int, default=0
        Seed of k-means.
    max_categories : int, default=1000
        Upper end of the search; at most the number of samples is used.
    n_init : int, default=10
        Number of restarts of each k-means.

    Returns
    -------
    Estimate
        The number with the best accuracy on labelled samples, without an interval.

    Raises
    ------
    DataError
        `features-shape`, `features-not-finite` or `labels-unusable`.
    ConfigError
        `search-range` if `max_categories` is not above `n_known`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat(np.arange(12), 20)
    >>> features = rng.normal(size=(12, 16))[truth] + 0.3 * rng.normal(size=(240, 16))
    >>> labels = np.where((truth < 6) & (np.arange(240) % 2 == 0), truth, -1)
    >>> found = estimate_by_search(features, labels, n_known=6, max_categories=40, n_init=2)
    >>> 8 <= found.n_categories <= 20
    True
    """
    x, y = check_features(features, labels, n_known)
    given = y >= 0
    most = min(max_categories, len(x))
    if most <= n_known:
        raise ConfigError(
            f"The search needs room above the {n_known} known classes; got at most {most} categories.",
            fix="Increase `max_categories`.",
            code="search-range",
            n_known=n_known,
            most=most,
        )
    scores: dict[int, float] = {}

    def loss(value: float) -> float:
        k = round(value)
        if k not in scores:
            cluster = k_means(x, k, n_init=n_init, seed=seed).labels.numpy()
            counts = contingency_matrix(y[given], cluster[given])
            scores[k] = float(counts[linear_sum_assignment(counts, maximize=True)].sum() / given.sum())
        return -scores[k]

    minimize_scalar(loss, bounds=(n_known, most), method="bounded", options={"xatol": 0.5})
    best = max(scores, key=lambda k: scores[k])
    return Estimate(
        n_categories=best,
        low=best,
        high=best,
        n_known=n_known,
        way="search",
        quality=round(scores[best], 4),
        curve=tuple((k, round(scores[k], 4)) for k in sorted(scores)),
    )
