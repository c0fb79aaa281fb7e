"""Estimate the number of categories from held-out known classes.

Ward's tree over all samples gives a clustering for every number of categories at once, and held-out known classes show
which one is right (see `newkind.clustering.held_out_pairs`). Resampling the known classes gives the interval.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from newkind.clustering.estimate import Estimate
from newkind.clustering.held_out_pairs import HeldOutPairs, MicroClusters, count_held_out_pairs
from newkind.clustering.kmeans import k_means
from newkind.errors import DataError

__all__ = ["check_features", "estimate_n_categories"]

MICRO_CLUSTERS = 1500
"""Largest number of points of a tree; more samples are first grouped into this many small clusters."""
SHRINKAGE = (0.05, 0.2, 1.0)
"""Shrinkage of the covariance within classes; the one with the best F1 of held-out classes is used. 1: no whitening."""
FOLDS, RESAMPLES, LEVELS = 4, 200, 70
LARGEST_WIDENING = 3.0
"""The interval of the resamples is widened at most by this factor on a logarithmic scale."""


def estimate_n_categories(
    features: Tensor | NDArray[Any],
    labels: ArrayLike,
    *,
    n_known: int,
    seed: int = 0,
    max_categories: int | None = None,
) -> Estimate:
    """Estimate the number of categories, known and new together, with a 90 % interval.

    It takes one k-means and a dozen trees of at most 1,500 points.

    Parameters
    ----------
    features : tensor or ndarray of shape (n_samples, n_features)
        Features of all samples. They are L2-normalised first.
    labels : array-like of int, shape (n_samples,)
        Class of each sample, 0 to `n_known` - 1, or -1 for unlabelled.
    n_known : int
        Number of known classes.
    seed : int, default=0
        Seed of the folds, the small clusters and the resamples.
    max_categories : int, optional
        Largest number that is considered. Default: 8 times `n_known` plus 40, at least 60.

    Returns
    -------
    Estimate
        The number with its interval. With fewer than three known classes of at least two labelled samples it is a guess
        (`way` is "guess"): twice the number of known classes.

    Raises
    ------
    DataError
        `features-shape`, `features-not-finite` or `labels-unusable`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat(np.arange(12), 20)
    >>> features = rng.normal(size=(12, 16))[truth] + 0.3 * rng.normal(size=(240, 16))
    >>> labels = np.where((truth < 6) & (np.arange(240) % 2 == 0), truth, -1)
    >>> found = estimate_n_categories(features, labels, n_known=6)
    >>> 10 <= found.n_categories <= 16
    True
    """
    x, y = check_features(features, labels, n_known)
    counts = np.bincount(y[y >= 0], minlength=n_known)
    if (counts >= 2).sum() < 3:
        guess = int(np.clip(2 * n_known, 2, max(len(x) - 1, 2)))
        return Estimate(n_categories=guess, low=n_known, high=guess, n_known=n_known, way="guess", quality=0.0)
    rng = np.random.default_rng(seed)
    mixed = rng.permutation(len(x))  # files often come class by class, and ties are broken by order
    pairs = _best_pairs(x[torch.from_numpy(mixed)], y[mixed], n_known, max_categories, rng=rng, seed=seed)
    k, quality = pairs.best_level()
    low, high = _interval(pairs, k, n_known, rng)
    curve = zip(pairs.levels[::-1], pairs.f1()[::-1], strict=True)
    return Estimate(
        n_categories=max(round(k), n_known),
        low=max(min(round(low), round(k)), n_known),
        high=max(round(high), round(k), n_known),
        n_known=n_known,
        way="pairs",
        quality=round(float(quality), 4),
        curve=tuple((int(level), round(float(score), 4)) for level, score in curve),
    )


def check_features(
    features: Tensor | NDArray[Any], labels: ArrayLike, n_known: int
) -> tuple[Tensor, NDArray[np.int64]]:
    """Check features and labels.

    Parameters
    ----------
    features : tensor or ndarray of shape (n_samples, n_features)
        Features.
    labels : array-like of int, shape (n_samples,)
        Class of each sample, or -1 for unlabelled.
    n_known : int
        Number of known classes.

    Returns
    -------
    features : tensor of float32, shape (n_samples, n_features)
        L2-normalised features on the CPU.
    labels : ndarray of int64, shape (n_samples,)
        The labels.

    Raises
    ------
    DataError
        `features-shape`, `features-not-finite` or `labels-unusable`.
    """
    x, y = torch.as_tensor(features, dtype=torch.float32).cpu(), np.asarray(labels, dtype=np.int64)
    if x.ndim != 2 or y.shape != x.shape[:1] or len(x) < 2:
        raise DataError(
            f"Estimating the number of categories needs features (n, d) of at least 2 samples and n labels; got shapes "
            f"{tuple(x.shape)} and {y.shape}.",
            code="features-shape",
        )
    if not torch.isfinite(x).all():
        raise DataError(
            "Some features are NaN or infinite.",
            fix="Check how the features were computed.",
            code="features-not-finite",
        )
    if n_known < 1 or not (y >= 0).any() or y.max() >= n_known:
        raise DataError(
            f"At least one sample must be labelled, with classes 0 to {n_known - 1} for `n_known` = {n_known}; the largest "
            f"label is {int(y.max())}.",
            code="labels-unusable",
            n_known=n_known,
        )
    return torch.nn.functional.normalize(x, dim=1), y


def _best_pairs(
    x: Tensor,
    y: NDArray[np.int64],
    n_known: int,
    max_categories: int | None,
    *,
    rng: np.random.Generator,
    seed: int,
) -> HeldOutPairs:
    """Pair counts under the whitening with the best F1; x (n, d) of unit length, y (n,)."""
    micro = _micro_clusters(x, seed)
    most = min(max_categories or max(8 * n_known + 40, 60), max(len(micro.centers) - 1, 2))
    levels = np.unique(np.geomspace(max(0.7 * n_known, 2), max(most, 3), LEVELS).astype(np.int64))[::-1]
    fold_of = rng.permutation(np.arange(n_known) % min(FOLDS, n_known))
    candidates = [
        count_held_out_pairs(x.numpy(), y, micro, levels, fold_of, shrinkage=shrinkage) for shrinkage in SHRINKAGE
    ]
    return max(candidates, key=lambda pairs: pairs.best_level()[1])


def _interval(pairs: HeldOutPairs, k: float, n_known: int, rng: np.random.Generator) -> tuple[float, float]:
    """Bounds of the 90 % interval of K, from resamples of the known classes."""
    again = np.log(
        [
            pairs.best_level(np.bincount(rng.integers(0, n_known, n_known), minlength=n_known))[0]
            for _ in range(RESAMPLES)
        ]
    )
    # The new classes are one more sample of classes, so their number adds to the variance.
    wider = np.sqrt(1 + n_known / max(k - n_known, 1)) if k > n_known else 1.0
    spread = np.quantile(again, [0.05, 0.95]) - np.median(again)
    low, high = np.exp(np.log(k) + min(wider, LARGEST_WIDENING) * spread)
    return float(low), float(high)


def _micro_clusters(x: Tensor, seed: int) -> MicroClusters:
    """Small clusters of x (n, d); each sample is its own cluster if there are few."""
    if len(x) <= MICRO_CLUSTERS:
        return MicroClusters(np.arange(len(x)), x.numpy(), np.ones(len(x)))
    found = k_means(x, MICRO_CLUSTERS, n_init=1, max_iter=5, greedy=False, seed=seed)
    used, cluster_of = np.unique(found.labels.numpy(), return_inverse=True)
    return MicroClusters(cluster_of, found.centers.numpy()[used], np.bincount(cluster_of).astype(np.float64))
