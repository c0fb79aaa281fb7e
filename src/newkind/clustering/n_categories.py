"""Estimate the number of categories in two ways, and average them by how far each can be trusted.

*By clusters*: the K at which the clusters of Ward's tree are as large as held-out known classes (see
`newkind.clustering.class_sized_clusters`). It tends to be too large (mean error of log K +0.09 on 72 splits).

*By sizes*: known classes have an estimated share of all samples (see `newkind.clustering.known_sizes`). If new classes are as large on
average, K = n_known / share. It tends to be too small (-0.04 on the same splits).

The average is taken of log K, weighted by the inverse variances. The variance by clusters comes from resampling the known classes, that
by sizes from the spread of class sizes and from the error of the share. The features are too weak if held-out classes are hardly found
(F1 below `UNUSABLE_QUALITY`); then the answer is a prior with a wide interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from newkind.clustering.class_sized_clusters import HeldOutClasses, hold_out_classes, micro_clusters, whiten
from newkind.clustering.estimate import UNUSABLE_QUALITY, Estimate
from newkind.clustering.known_sizes import SHARE_SPREAD, estimate_known_sizes
from newkind.errors import DataError

__all__ = ["check_features", "estimate_n_categories"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_SAMPLES = 20_000
"""Largest number of samples that are used; more are thinned at random."""
MICRO_CLUSTERS = 1_200
"""Largest number of points of a tree; more samples are first grouped into this many small clusters."""
SHRINKAGE = 0.3
"""Shrinkage of the covariance within classes."""
LEVELS, FOLDS, RESAMPLES = 60, 3, 100
SHARE_REPEATS = 3
"""Number of estimates of the share of known classes, each with other folds, that are averaged."""
CLUSTERS_SPREAD = 0.12
"""Standard deviation of log K by clusters that resampling does not show."""
SIZES_SPREAD = 0.15
"""Standard deviation of log K by sizes beyond that from the spread of sizes and the error of the share."""
SHARED_LUCK = 0.5
"""Part of the variance from the sizes of the classes that happen to be known that both estimates share."""
DOUBT = 0.6
"""Standard deviation of log K that weak features add, times (1 - F1)^2."""
NORMAL_95 = 1.645
"""95 % quantile of the normal distribution."""


@dataclass(frozen=True, eq=False)
class _KnownShare:
    """Known classes among all samples."""

    sizes: Floats
    """(L,): expected number of samples of each class, labelled and unlabelled."""
    share: float
    """Share of all samples that belong to known classes."""
    spread: float
    """Standard deviation of log class sizes."""
    gap: float
    """Hit rate minus false-alarm rate of the count, at least 0.05."""

    def log_n_categories(self) -> float:
        """log K if new classes are as large as known ones on average."""
        return float(np.log(len(self.sizes) / self.share))

    def luck_variance(self, n_new: float) -> float:
        """Variance of log K because known and new classes are samples of classes of unequal size."""
        n_known = len(self.sizes)
        return float(np.expm1(self.spread**2) * (1 / n_known + 1 / n_new) * (1 - self.share) ** 2)

    def counting_variance(self) -> float:
        """Variance of log K from the error of the counted share."""
        return (SHARE_SPREAD / self.gap * (1 - self.share)) ** 2


@dataclass(frozen=True)
class _LogNumber:
    """log K with its standard deviation."""

    mean: float
    deviation: float

    def at(self, n_deviations: float) -> int:
        """K at a number of standard deviations from the mean."""
        return round(float(np.exp(self.mean + n_deviations * self.deviation)))


@torch.no_grad()
def estimate_n_categories(
    features: Tensor | NDArray[Any],
    labels: ArrayLike,
    *,
    n_known: int,
    seed: int = 0,
    max_categories: int | None = None,
) -> Estimate:
    """Estimate the number of categories, known and new together, with a 90 % interval.

    It takes one k-means, three trees of at most 1,200 points and 24 whitenings. At most 20,000 samples are used.

    Parameters
    ----------
    features : tensor or ndarray of shape (n_samples, n_features)
        Features of all samples. A mean over several views of each image is better than one view. Their scale does not matter.
    labels : array-like of int, shape (n_samples,)
        Class of each sample, 0 to `n_known` - 1, or -1 for unlabelled.
    n_known : int
        Number of known classes.
    seed : int, default=0
        Seed of the folds, the small clusters and the resamples.
    max_categories : int, optional
        Upper bound of the estimate and its interval; known classes are counted even if they are more. Default: 10 times `n_known`
        plus 60 for the estimate by clusters, none for the average.

    Returns
    -------
    Estimate
        The number with its interval. `way` is "guess" if there are fewer than three known classes of at least two labelled samples, or
        if the features do not separate the known classes. The number is then twice the number of known classes, with a wide interval.

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
    x, y = _check(features, labels, n_known)
    most = max(len(x), n_known + 1) if max_categories is None else max(min(max_categories, len(x)), n_known)
    rng = np.random.default_rng(seed)
    # Shuffled even where nothing is left out: files often come class by class, and ties are broken by order.
    used = rng.permutation(len(x))[:MAX_SAMPLES]
    x, y = x[torch.from_numpy(used)], y[used]
    counts = np.bincount(y[y >= 0], minlength=n_known)
    if (counts >= 2).sum() < 3:
        return _guess(n_known, most)
    # Classes that lost their labels by thinning are too small for the tree, so their number is added afterwards.
    present = np.flatnonzero(counts)
    n_missing = n_known - len(present)
    y = np.where(y >= 0, np.searchsorted(present, y), -1)
    known = _known_share(x, y, len(present), seed)
    held_out = _hold_out(x, y, known.sizes, rng, seed=seed, max_categories=max_categories)
    curve = tuple(
        (int(k) + n_missing, round(float(f1), 4))
        for k, f1 in zip(held_out.levels[::-1], held_out.f1()[::-1], strict=True)
    )
    by_clusters = held_out.balanced_level()
    if by_clusters.quality < UNUSABLE_QUALITY:
        return _guess(n_known, most, by_clusters.quality, curve)
    log_k = _average(by_clusters.log_k, _resampled_variance(held_out, rng), by_clusters.quality, known)
    low, middle, high = (log_k.at(t) + n_missing for t in (-NORMAL_95, 0, NORMAL_95))
    n_categories = min(max(middle, n_known), most)
    return Estimate(
        n_categories=n_categories,
        low=min(max(low, n_known), n_categories),
        high=min(max(high, n_categories, n_known + 1), most),
        n_known=n_known,
        way="clusters",
        quality=round(by_clusters.quality, 4),
        curve=curve,
        by_clusters=round(float(np.exp(by_clusters.log_k)) + n_missing, 1),
        by_sizes=round(float(np.exp(known.log_n_categories())) + n_missing, 1),
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
    x, y = _check(features, labels, n_known)
    return torch.nn.functional.normalize(x, dim=1), y


def _check(features: Tensor | NDArray[Any], labels: ArrayLike, n_known: int) -> tuple[Tensor, Ints]:
    """Check features (n, d) and labels (n,), and return them as float32 on the CPU and int64."""
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
    return x, y


def _guess(n_known: int, most: int, quality: float = 0.0, curve: tuple[tuple[int, float], ...] = ()) -> Estimate:
    """The prior: twice the known classes, from one new category to more than three times as many as known ones."""
    return Estimate(
        n_categories=min(max(2 * n_known, n_known + 2), most),
        low=min(n_known + 1, most),
        high=min(4 * n_known + 2, most),
        n_known=n_known,
        way="guess",
        quality=round(quality, 4),
        curve=curve,
    )


def _known_share(x: Tensor, y: Ints, n_known: int, seed: int) -> _KnownShare:
    """Sizes and share of the known classes among x (n, d) with labels (n,), averaged over several estimates."""
    found = [
        estimate_known_sizes(x, y, n_known=n_known, shrinkage=SHRINKAGE, seed=seed + i) for i in range(SHARE_REPEATS)
    ]
    sizes = found[0].labelled + np.mean([each.unlabelled for each in found], axis=0)
    return _KnownShare(
        sizes=sizes,
        share=float(np.clip(sizes.sum() / len(x), 1e-6, 1.0)),
        spread=found[0].spread,
        gap=max(found[0].hit_rate - found[0].false_alarm_rate, 0.05),
    )


def _hold_out(
    x: Tensor, y: Ints, sizes: Floats, rng: np.random.Generator, *, seed: int, max_categories: int | None
) -> HeldOutClasses:
    """Recall and precision of the known classes, of expected sizes (L,), among x (n, d) with labels (n,)."""
    given = y >= 0
    whitened = whiten(x, x.mean(dim=0), x[torch.from_numpy(given)], y[given], shrinkage=SHRINKAGE)
    micro = micro_clusters(x, whitened, MICRO_CLUSTERS, seed=seed)
    n_points = len(np.unique(micro.centers.numpy(), axis=0))  # more clusters than that would divide equal samples
    levels = _levels(len(sizes), n_points, max_categories)
    fold_of = rng.permutation(np.arange(len(sizes)) % FOLDS)
    return hold_out_classes(x, y, micro, levels, sizes=sizes, fold_of=fold_of, shrinkage=SHRINKAGE)


def _levels(n_known: int, n_points: int, max_categories: int | None) -> Ints:
    """Numbers of clusters, in descending order, at most the number of different points."""
    least, most = max(0.6 * n_known, 2.0), min(10 * n_known + 60, n_points - 1)
    if max_categories is not None:
        most = min(most, max_categories)
    levels = np.geomspace(least, max(most, least + 1, 4), LEVELS).astype(np.int64)
    return np.unique(np.minimum(levels, n_points))[::-1]


def _resampled_variance(held_out: HeldOutClasses, rng: np.random.Generator) -> float:
    """Variance of log K by clusters over resamples of the known classes."""
    n = len(held_out.recall)
    times = [np.bincount(rng.integers(0, n, n), minlength=n) for _ in range(RESAMPLES)]
    return float(np.var([held_out.balanced_level(each).log_k for each in times]))


def _average(log_by_clusters: float, resampled_variance: float, quality: float, known: _KnownShare) -> _LogNumber:
    """Average of log K by clusters and by sizes, weighted by their inverse variances."""
    n_new = max(np.exp(log_by_clusters) - len(known.sizes), 1.0)
    luck = known.luck_variance(n_new)
    variances = np.array([resampled_variance + CLUSTERS_SPREAD**2, luck + known.counting_variance() + SIZES_SPREAD**2])
    mean = np.average([log_by_clusters, known.log_n_categories()], weights=1 / variances)
    doubt = DOUBT * (1 - quality) ** 2
    return _LogNumber(float(mean), float(np.sqrt(1 / (1 / variances).sum() + SHARED_LUCK * luck + doubt**2)))
