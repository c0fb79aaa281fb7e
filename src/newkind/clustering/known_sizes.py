"""How many unlabelled samples belong to the known classes, and how far class sizes differ.

Labelled samples are held out in folds. The *hit rate* is the share of held-out samples that are nearest to the mean of their own
class and at least as near as its median. The *false-alarm rate* is the share of samples of held-out classes that look as typical
of another class. With the share h of unlabelled samples that look typical of a known class, the share of known classes among the
unlabelled samples is (h - false alarms) / (hits - false alarms), the adjusted count of quantification. If the number of categories K is
known, it is averaged, weighted by variance on the log-odds scale, with the share n_known / K that classes of one size would have. Among
the classes it is divided mostly by their labelled counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from newkind.clustering.whitening import within_class_whitening

__all__ = ["KnownSizes", "class_means", "estimate_known_sizes", "size_spread"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SPREAD, SPREAD_WEIGHT = 0.5, 3.0
"""Prior of the standard deviation of log sizes, and the number of classes that it counts for."""
COUNTED = 0.25
"""Weight of counted typical samples in the relative sizes, against labelled counts. Labelled counts are far better where labelling is
proportional; a quarter is kept for where it is not."""
FEW = 5.0
"""Number of samples by which a class's own threshold and hit rate are shrunk to those of all classes."""
SHARE_SPREAD = 0.1
"""Standard deviation of the log-odds of the counted share, times (hit rate - false-alarm rate)."""
FOLDS = 4
ROWS = 16_384
"""Number of samples that are compared with all means at a time."""


@dataclass(frozen=True, eq=False)
class KnownSizes:
    """Estimated sizes of the known classes.

    Parameters
    ----------
    labelled : ndarray of shape (n_known,)
        Number of labelled samples of each class.
    unlabelled : ndarray of shape (n_known,)
        Expected number of unlabelled samples of each class.
    spread : float
        Standard deviation of the logarithms of class sizes.
    hit_rate : float
        Share of held-out samples that are typical of their class.
    false_alarm_rate : float
        Share of samples of held-out classes that look typical of another class.
    """

    labelled: Floats
    unlabelled: Floats
    spread: float
    hit_rate: float
    false_alarm_rate: float


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """What n labelled samples look like out of sample; `unlabelled` has one entry per fold."""

    own: Floats
    """(n,): cosine with the mean of the own class."""
    is_right: NDArray[np.bool_]
    """(n,): whether that is the nearest mean."""
    other: Floats
    """(n,): with the whole class held out, cosine with the nearest mean of another class."""
    other_class: Ints
    """(n,): that class."""
    unlabelled: list[tuple[Floats, Ints]]
    """Cosine of every unlabelled sample with the nearest mean, and its class."""


@torch.no_grad()
def estimate_known_sizes(
    features: Tensor,
    labels: Ints,
    *,
    n_known: int,
    n_categories: int | None = None,
    shrinkage: float = 0.3,
    seed: int = 0,
) -> KnownSizes:
    """Estimate how many unlabelled samples each known class has.

    Parameters
    ----------
    features : tensor of shape (n_samples, n_features)
        Features on the CPU, not whitened.
    labels : ndarray of int64, shape (n_samples,)
        Class of each sample, 0 to `n_known` - 1, or -1 for unlabelled. Every class has a labelled sample.
    n_known : int
        Number of known classes.
    n_categories : int, optional
        Number of categories, known classes included. Default: unknown; the share of known classes is used as counted.
    shrinkage : float, default=0.3
        Shrinkage of the whitening, as in `within_class_whitening`.
    seed : int, default=0
        Seed of the folds.

    Returns
    -------
    KnownSizes

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1, 2, 3], [40, 80, 40, 40])
    >>> x = torch.from_numpy(10 * np.eye(4)[truth] + rng.normal(size=(200, 4))).float()
    >>> labels = np.where((truth < 2) & (np.arange(200) % 2 == 0), truth, -1)
    >>> found = estimate_known_sizes(x, labels, n_known=2, n_categories=4)
    >>> bool(np.abs(found.unlabelled - [20, 40]).max() < 10)
    True
    """
    given, free = np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0)
    y = labels[given]
    counts = np.bincount(y, minlength=n_known).astype(np.float64)
    seen = _hold_out(features, given, free, y, n_known, shrinkage, seed)
    threshold = _typical_cosines(seen.own, y, counts)
    is_hit = seen.is_right & (seen.own >= threshold[y])
    hit_rate = float(is_hit.mean())
    alarms = float(np.average(seen.other >= threshold[seen.other_class], weights=1 / counts[y]))
    spread = size_spread(counts)
    if not len(free):
        return KnownSizes(counts, np.zeros(n_known), spread, hit_rate, alarms)
    typical = [np.bincount(who[near >= threshold[who]], minlength=n_known) for near, who in seen.unlabelled]
    found = np.mean(typical, axis=0) if typical else counts
    gap = max(hit_rate - alarms, 0.05)
    share = float(np.clip((found.sum() / len(free) - alarms) / gap, 0.02, 0.98))
    if n_categories is not None:
        share = _combined_share(share, gap, spread, n_known, n_categories, len(labels), len(free))
    rates = (np.bincount(y, is_hit, minlength=n_known) + FEW * hit_rate) / (counts + FEW)
    unlabelled = share * len(free) * _relative_sizes(counts, found / np.maximum(rates, 0.05) + 0.5)
    return KnownSizes(counts, unlabelled, spread, hit_rate, alarms)


def size_spread(counts: NDArray[np.floating]) -> float:
    """Standard deviation of log class sizes, from labelled counts, without the noise of counting, shrunk to SPREAD.

    Parameters
    ----------
    counts : ndarray of shape (n_known,)
        Number of labelled samples of each class.

    Returns
    -------
    float

    Examples
    --------
    >>> size_spread(np.full(50, 20.0)) < 0.15 < size_spread(np.geomspace(5, 150, 50))
    True
    """
    counts = counts[counts > 0]
    if len(counts) < 2:
        return SPREAD
    variance = max(float(np.var(np.log(counts), ddof=1) - np.mean(0.5 / counts)), 0.0)
    seen = len(counts) - 1
    return float(np.sqrt((seen * variance + SPREAD_WEIGHT * SPREAD**2) / (seen + SPREAD_WEIGHT)))


def class_means(z: Tensor, labels: Ints, n_known: int) -> Tensor:
    """Mean directions (n_known, d), of unit length, of z (n, d) with labels (n,)."""
    sums = z.new_zeros(n_known, z.shape[1]).index_add_(0, torch.from_numpy(labels).to(z.device), z)
    return F.normalize(sums, dim=1)


def _typical_cosines(own: Floats, y: Ints, counts: Floats) -> Floats:
    """Median (n_known,) of the cosines (n,) of each class with its mean, shrunk to that of all classes."""
    middle = float(np.median(own))
    medians = np.array([np.median(own[y == c]) if counts[c] else middle for c in range(len(counts))])
    typical: Floats = (counts * medians + FEW * middle) / (counts + FEW)
    return typical


def _relative_sizes(counts: Floats, expected: Floats) -> Floats:
    """Sizes (n_known,) that add up to 1, from labelled counts and expected unlabelled ones."""
    relative = (counts / counts.sum()) ** (1 - COUNTED) * (expected / expected.sum()) ** COUNTED
    sizes: Floats = relative / relative.sum()
    return sizes


def _combined_share(
    counted: float, gap: float, spread: float, n_known: int, n_categories: int, n: int, n_free: int
) -> float:
    """Share of known classes among unlabelled samples: as counted, averaged with that of classes of one size."""
    all_known, n_new = n_known / n_categories, max(n_categories - n_known, 1)
    equal = float(np.clip((all_known * n - (n - n_free)) / n_free, 0.05, 0.95))
    steeper = n / n_free * all_known * (1 - all_known) / (equal * (1 - equal))
    deviations = (steeper * np.sqrt(spread**2 * (1 / n_known + 1 / n_new) + 0.01), SHARE_SPREAD / gap)
    weights = [max(float(deviation), 0.01) ** -2 for deviation in deviations]
    log_odds = np.average([np.log(p / (1 - p)) for p in (equal, counted)], weights=weights)
    return min(float(1 / (1 + np.exp(-log_odds))), max(1 - (n_categories - n_known) / n_free, 0.0))


def _hold_out(
    features: Tensor, given: Ints, free: Ints, y: Ints, n_known: int, shrinkage: float, seed: int
) -> _HeldOut:
    """Compare labelled and unlabelled samples with class means in frames that the held-out ones have no part in."""
    rng = np.random.default_rng(seed)
    x, rows, center = features[given].float(), features[free].float(), features.float().mean(dim=0)
    own, is_right, unlabelled = np.full(len(y), -1.0), np.zeros(len(y), dtype=bool), []
    other, other_class = np.full(len(y), -1.0), np.zeros(len(y), dtype=np.int64)
    part = np.empty(len(y), dtype=np.int64)
    for c in range(n_known):
        mine = np.flatnonzero(y == c)
        part[mine] = (rng.permutation(len(mine)) + rng.integers(FOLDS)) % FOLDS
    for fold in range(FOLDS):
        test = np.flatnonzero(part == fold)
        if 0 < len(test) < len(y):
            cosines = _Cosines(center, x, y, part != fold, n_known, shrinkage)
            tested = cosines.of(x[test])
            unlabelled.append(cosines.nearest(rows))
            own[test], is_right[test] = tested[np.arange(len(test)), y[test]], tested.argmax(axis=1) == y[test]
    groups = rng.permutation(np.arange(n_known) % min(FOLDS, n_known))
    for fold in np.unique(groups) if n_known > 1 else ():
        test = np.flatnonzero(groups[y] == fold)
        tested = _Cosines(center, x, y, groups[y] != fold, n_known, shrinkage).of(x[test])
        other[test], other_class[test] = tested.max(axis=1), tested.argmax(axis=1)
    return _HeldOut(own, is_right, other, other_class, unlabelled)


class _Cosines:
    """Cosines with class means in a frame, both from the samples that are used."""

    def __init__(
        self, center: Tensor, x: Tensor, y: Ints, used: NDArray[np.bool_], n_known: int, shrinkage: float
    ) -> None:
        matrix = within_class_whitening(x[used], y[used], shrinkage=shrinkage)[1]
        self.matrix, self.center = torch.from_numpy(matrix).float(), center
        self.means = class_means(self._framed(x[used]), y[used], n_known)
        self.missing = np.bincount(y[used], minlength=n_known) == 0

    def _framed(self, x: Tensor) -> Tensor:
        return F.normalize((x - self.center) @ self.matrix, dim=1)

    def of(self, x: Tensor) -> Floats:
        """(n, n_known) of x (n, d); -1 for classes without a sample that is used."""
        cosines = (self._framed(x) @ self.means.T).numpy().astype(np.float64)
        cosines[:, self.missing] = -1
        return cosines

    def nearest(self, x: Tensor) -> tuple[Floats, Ints]:
        """Cosine (n,) of x (n, d) with the nearest mean, and its class (n,)."""
        parts = (self.of(part) for part in torch.split(x, ROWS))
        pairs = [(part.max(axis=1), part.argmax(axis=1)) for part in parts]
        return np.concatenate([near for near, _ in pairs]), np.concatenate([who for _, who in pairs])
