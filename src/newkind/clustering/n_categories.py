"""Estimate the number of categories: known classes, and new ones that are counted in units of held-out known classes.

1. Ward's tree gives clusters for every number of clusters. Known classes that are held out make up some clusters each, and all known
   classes together make up a part of all clusters. The rest, in units of a held-out class, is the number of new classes (see
   `newkind.clustering.class_sized_clusters`).
2. For the part of the known classes one has to know how many unlabelled samples are theirs. This share is counted with mixtures of
   somewhat more categories than the estimate (see `newkind.clustering.known_share`), and the estimate is made again.
3. Up to `FEW_CATEGORIES` categories, numbers near this estimate are compared by how well mixtures of different parts of the samples
   agree (see `newkind.clustering.stability`).

The number of new classes has a log-normal interval: from resampling the known classes, from the error of the share, and from what neither
shows; agreement narrows it. The features are too weak if held-out classes are hardly found (F1 below `UNUSABLE_QUALITY`); then the answer is a prior with a wide
interval.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from newkind.clustering.class_sized_clusters import HeldOutClasses, hold_out_classes, micro_clusters, whiten
from newkind.clustering.estimate import UNUSABLE_QUALITY, Estimate
from newkind.clustering.known_share import count_known
from newkind.clustering.known_sizes import KnownSizes, estimate_known_sizes
from newkind.clustering.sampling import sample_rows
from newkind.clustering.stability import NewClasses, choose_stable, mixture_agreement
from newkind.config import MOST_CATEGORIES
from newkind.data.feature_scale import check_scale
from newkind.errors import DataError
from newkind.setting import check_number, check_seed

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
ROUNDS, MANY_CLASSES = 3, 50
"""Rounds of counting the share of known classes, each with three mixtures; one round is enough for so many known classes."""
ROOM = 1.4
"""Categories of these mixtures, as a multiple of the estimate. With fewer, new classes hide in known ones and the count is too large."""
SHARE_DEVIATION = 0.3
"""Standard deviation of the log-odds of the counted share."""
OWN_DEVIATION = 0.1
"""Standard deviation of the log number of new classes that resampling does not show."""
DOUBT = 0.6
"""Standard deviation that weak features add, times (1 - F1)^2."""
FEW_CATEGORIES, FEW_SAMPLES, FEW_FREE = 25, 3_000, 1_000
"""Up to so many categories, the number is chosen by agreement, with at most about so many samples, of which so many are unlabelled if there
are enough. With more categories, a mistake of one costs little."""
NORMAL_95 = 1.645
"""95 % quantile of the normal distribution."""


@dataclass(frozen=True, eq=False)
class _Sample:
    """Samples that are used, in random order, and the known classes that have a label among them."""

    x: Tensor
    """(n, d): features."""
    y: Ints
    """(n,): classes 0 to `n_classes` - 1, or -1."""
    n_classes: int
    """Number of known classes with a labelled sample."""

    @property
    def n_unlabelled(self) -> int:
        return int((self.y < 0).sum())


@dataclass(frozen=True)
class _Count:
    """Logarithm of the number of new classes with its standard deviation, and the share of known classes among all samples."""

    log_n: float
    deviation: float
    known_share: float

    def new_classes(self) -> NewClasses:
        """Number of new classes with its log-normal interval."""
        numbers = (round(float(np.exp(self.log_n + t * self.deviation))) for t in (-NORMAL_95, 0, NORMAL_95))
        return NewClasses(*numbers)


@torch.no_grad()
def estimate_n_categories(
    features: Tensor | NDArray[Any],
    labels: ArrayLike,
    *,
    n_known: int,
    seed: int = 0,
    max_categories: int | None = None,
) -> Estimate:
    """Estimate the number of categories, known and new together, with a 90 % interval. At most 20,000 samples are used.

    Parameters
    ----------
    features : tensor or ndarray of shape (n_samples, n_features)
        Features of all samples. A mean over several views of each image is better than one view. Their scale does not matter.
    labels : array-like of int, shape (n_samples,)
        Class of each sample, 0 to `n_known` - 1, or -1 for unlabelled.
    n_known : int
        Number of known classes.
    seed : int, default=0
        Seed of the folds, the small clusters, the mixtures and the resamples.
    max_categories : int, optional
        Upper bound of the estimate and its interval; known classes are counted even if they are more. Default: none.

    Returns
    -------
    Estimate
        The number with its interval. `way` is "guess" if there are fewer than three known classes of at least two labelled samples, or
        if the features do not separate the known classes. The number is then twice the number of known classes, with a wide interval.

    Raises
    ------
    DataError, ConfigError
        `features-shape`, `features-not-finite`, `feature-scale` or `labels-unusable`; `out-of-range` for `seed` or `max_categories`.

    Examples
    --------
    >>> import numpy as np
    >>> rng, truth = np.random.default_rng(0), np.repeat(np.arange(12), 20)
    >>> features = rng.normal(size=(12, 16))[truth] + 0.3 * rng.normal(size=(240, 16))
    >>> labels = np.where((truth < 6) & (np.arange(240) % 2 == 0), truth, -1)
    >>> found = estimate_n_categories(features, labels, n_known=6)
    >>> 10 <= found.n_categories <= 16
    True
    """
    check_search(seed, max_categories)
    x, y = _check(features, labels, n_known)
    most = _most(y, n_known, max_categories)
    rng = np.random.default_rng(seed)
    sample = _draw(x, y, n_known, rng, seed)
    if sample is None:
        return _guess(n_known, most)
    first = estimate_known_sizes(sample.x, sample.y, n_known=sample.n_classes, shrinkage=SHRINKAGE, seed=seed)
    sizes = first.labelled + first.unlabelled
    held_out = _hold_out(sample, sizes, rng, seed=seed, max_categories=max_categories)
    quality, curve = held_out.balanced_level().quality, _curve(held_out, n_known - sample.n_classes)
    if quality < UNUSABLE_QUALITY:
        return _guess(n_known, most, quality, curve)
    count = _count_new(sample, held_out, sizes, rng, seed)
    bounded = _bounded(_new_classes(sample, first, count, seed), n_known, most)
    return replace(bounded, quality=round(quality, 4), curve=curve, known_share=round(count.known_share, 4))


def _most(y: Ints, n_known: int, max_categories: int | None) -> int:
    """Largest number of categories: every new one has an unlabelled sample; one new category if all labels (n,) are known."""
    most = n_known + max(min(int((y < 0).sum()), len(y) - n_known), 1)
    return most if max_categories is None else max(min(max_categories, most), n_known)


def check_search(seed: int, max_categories: int | None) -> None:
    """Raise ConfigError unless the seed and the upper bound of a search can be used."""
    check_seed("seed", seed)
    if max_categories is not None:
        check_number("max_categories", max_categories, at_least=2, at_most=MOST_CATEGORIES)


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
    if x.ndim != 2 or x.shape[1] == 0 or y.shape != x.shape[:1] or len(x) < 2:
        raise DataError(
            f"Estimating the number of categories needs features (n, d) of at least 2 samples and n labels; got shapes "
            f"{tuple(x.shape)} and {y.shape}.",
            code="features-shape",
        )
    if not all(torch.isfinite(part).all() for part in torch.split(x, MAX_SAMPLES)):
        raise DataError(
            "Some features are NaN or infinite.",
            fix="Check how the features were computed.",
            code="features-not-finite",
        )
    given = torch.as_tensor(features).detach().cpu()  # numbers that are too small for float32 are zero in x
    check_scale(given.numpy() if given.dtype == torch.float64 else x.detach().numpy())
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


def _bounded(new: NewClasses, n_known: int, most: int) -> Estimate:
    """The estimate with its interval, at most `most` categories."""
    n_categories = min(n_known + new.middle, most)
    return Estimate(
        n_categories=n_categories,
        low=min(n_known + new.low, n_categories),
        high=min(max(n_known + new.high, n_categories, n_known + 1), most),
        n_known=n_known,
        way="clusters",
        quality=0.0,
    )


def _draw(x: Tensor, y: Ints, n_known: int, rng: np.random.Generator, seed: int) -> _Sample | None:
    """Shuffled and thinned samples of x (n, d) with labels (n,), some of every class; None if too few classes have labels."""
    # Shuffled even where nothing is left out: files often come class by class, and ties are broken by order.
    rows = sample_rows(y, MAX_SAMPLES, seed=seed)
    used = rng.permutation(len(x) if rows is None else rows)
    x, y = x[torch.from_numpy(used)], y[used]
    counts = np.bincount(y[y >= 0], minlength=n_known)
    if (counts >= 2).sum() < 3:
        return None
    present = np.flatnonzero(counts)
    return _Sample(x, np.where(y >= 0, np.searchsorted(present, y), -1), len(present))


def _hold_out(
    sample: _Sample, sizes: Floats, rng: np.random.Generator, *, seed: int, max_categories: int | None
) -> HeldOutClasses:
    """Clusters and known classes of expected sizes (L,), held out in turn."""
    x, y, given = sample.x, sample.y, sample.y >= 0
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


def _curve(held_out: HeldOutClasses, n_missing: int) -> tuple[tuple[int, float], ...]:
    """Numbers of categories in ascending order, each with the F1 of held-out classes."""
    scored = zip(held_out.levels[::-1], held_out.f1()[::-1], strict=True)
    return tuple((int(k) + n_missing, round(float(f1), 4)) for k, f1 in scored)


def _count_new(sample: _Sample, held_out: HeldOutClasses, sizes: Floats, rng: np.random.Generator, seed: int) -> _Count:
    """Number of new classes, from relative sizes (L,) of the known ones and their counted share."""
    n_labelled, n_free, n_known = len(sample.y) - sample.n_unlabelled, sample.n_unlabelled, sample.n_classes

    def sizes_at(log_odds: float) -> Floats:
        """Sizes (L,) at a share of the unlabelled samples."""
        return sizes * float((n_labelled + n_free / (1 + np.exp(-log_odds))) / sizes.sum())

    log_n, counted = held_out.log_n_new(sizes), list[float]()
    for i in range((1 if n_known >= MANY_CLASSES else ROUNDS) if n_free else 0):
        wanted = round(ROOM * (n_known + np.exp(log_n)))
        k = min(max(wanted, n_known + 1), n_known + max(n_free // 4, 1))
        share = count_known(
            sample.x, sample.y, n_known=n_known, n_categories=k, shrinkage=SHRINKAGE, seed=seed + 100 * i
        )
        counted.append(share)
        log_n = held_out.log_n_new(sizes_at(_log_odds(counted)))
    log_odds = _log_odds(counted or [0.5])
    found = sizes_at(log_odds)
    ends = [held_out.log_n_new(sizes_at(log_odds + d)) for d in (-SHARE_DEVIATION, SHARE_DEVIATION)]
    resampled = [
        held_out.log_n_new(found, np.bincount(rng.integers(0, n_known, n_known), minlength=n_known))
        for _ in range(RESAMPLES)
    ]
    doubt = DOUBT * (1 - held_out.balanced_level().quality) ** 2
    deviation = np.sqrt(np.var(resampled) + ((ends[0] - ends[1]) / 2) ** 2 + OWN_DEVIATION**2 + doubt**2)
    return _Count(log_n, float(deviation), float(min(found.sum() / len(sample.y), 1.0)))


def _new_classes(sample: _Sample, first: KnownSizes, count: _Count, seed: int) -> NewClasses:
    """Number of new classes as counted, or for few categories by agreement."""
    n_new = float(np.exp(count.log_n))
    few = n_new >= 0.5 and sample.n_classes + n_new <= FEW_CATEGORIES and sample.n_unlabelled >= 2 * sample.n_classes
    return _stable(sample, first, count, seed) if few else count.new_classes()


def _stable(sample: _Sample, first: KnownSizes, count: _Count, seed: int) -> NewClasses:
    """Number of new classes near the counted one at which mixtures agree. Samples are thinned if there are many."""
    rows = sample_rows(sample.y, FEW_SAMPLES, seed=seed, least_free=FEW_FREE)
    x, y = (sample.x, sample.y) if rows is None else (sample.x[torch.from_numpy(rows)], sample.y[rows])
    labelled, n_free = np.bincount(y[y >= 0]).astype(np.float64), int((y < 0).sum())
    known_free = (count.known_share * len(sample.y) - (sample.y >= 0).sum()) / sample.n_unlabelled
    n_unlabelled = np.clip(known_free * n_free, 1, max(n_free - 1, 1))
    sizes = replace(first, labelled=labelled, unlabelled=first.unlabelled * n_unlabelled / first.unlabelled.sum())
    z = whiten(x, x.mean(dim=0), x[torch.from_numpy(y >= 0)], y[y >= 0], shrinkage=SHRINKAGE)

    def agreement(n_new: int) -> float:
        return mixture_agreement(z, y, sizes, sample.n_classes + n_new, seed=seed)

    return choose_stable(count.log_n, count.deviation, agreement, most=max(n_free // 4, 1))


def _log_odds(shares: list[float]) -> float:
    """Log-odds of the mean of several shares."""
    mean = float(np.mean(shares))
    return float(np.log(mean / (1 - mean)))
