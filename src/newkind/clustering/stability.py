"""The number of new classes at which mixtures of different parts of the samples agree.

With too many categories, a class is split somewhere, and each part of the samples splits it elsewhere. With the right number, mixtures
of different parts agree. With too few they may agree too, so agreement alone prefers small numbers. Therefore it is combined with an
estimate that does not: each number n of new classes has the weight

    n exp(-((log n - log_n) / (WIDER deviation))^2 / 2 + WEIGHT agreement(n)),

the most likely one is chosen, and the interval leaves out 5 % of the weight on each side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from newkind.clustering.known_sizes import KnownSizes
from newkind.clustering.mixture import fit_mixture, target_sizes

__all__ = ["NewClasses", "choose_stable", "mixture_agreement"]

Ints = NDArray[np.int64]

WIDER, WEIGHT = 1.4, 30.0
"""Factor of the standard deviation of the first estimate, and the weight of agreement (benchmarks/results/number_of_categories.md)."""
REACH, MOST_NUMBERS = 2.5, 14
"""Standard deviations of the first estimate that are tried on each side, and the largest number of numbers."""
PARTS, PART = 5, 0.8
"""Number of mixtures, and the share of the unlabelled samples that each is fitted to."""
STEPS, RESTARTS = 30, 3
"""Iterations and restarts of a mixture. With one restart, the right number of categories is often not seen to agree."""


@dataclass(frozen=True)
class NewClasses:
    """Number of new classes with its 90 % interval.

    Parameters
    ----------
    low, middle, high : int
        Lower end, most likely number, upper end.
    """

    low: int
    middle: int
    high: int


def choose_stable(log_n: float, deviation: float, agreement: Callable[[int], float], *, most: int) -> NewClasses:
    """Choose a number of new classes near a first estimate, by agreement.

    Parameters
    ----------
    log_n, deviation : float
        Logarithm of the first estimate, and its standard deviation.
    agreement : callable
        Agreement of mixtures with a number of new classes, at most 1.
    most : int
        Largest number that is tried.

    Returns
    -------
    NewClasses

    Examples
    --------
    >>> choose_stable(np.log(6), 0.2, lambda n: 0.95 if n <= 5 else 0.8, most=100)
    NewClasses(low=4, middle=5, high=5)
    """
    reach = np.exp(np.linspace(log_n - REACH * deviation, log_n + REACH * deviation, MOST_NUMBERS))
    numbers = np.unique(np.clip(np.round(reach), 1, max(most, 1))).astype(np.int64)
    agreements = np.array([agreement(int(n)) for n in numbers])
    away = (np.log(numbers) - log_n) / (WIDER * deviation)
    log_weights = np.log(numbers) - away**2 / 2 + WEIGHT * agreements
    weights = np.exp(log_weights - log_weights.max())
    below = weights.cumsum() / weights.sum()
    low, high = (int(numbers[min(int(np.searchsorted(below, p)), len(numbers) - 1)]) for p in (0.05, 0.95))
    return NewClasses(low, int(numbers[weights.argmax()]), high)


@torch.no_grad()
def mixture_agreement(z: Tensor, labels: Ints, sizes: KnownSizes, n_categories: int, *, seed: int = 0) -> float:
    """Mean adjusted Rand index of mixtures that are fitted to different parts of the unlabelled samples.

    Parameters
    ----------
    z : tensor of shape (n_samples, n_features)
        Whitened features of unit length.
    labels : ndarray of int64, shape (n_samples,)
        Class of each sample, 0 to n_known - 1, or -1 for unlabelled. Every class has a labelled sample.
    sizes : KnownSizes
        Estimated sizes of the known classes.
    n_categories : int
        Number of categories of the mixtures, more than n_known.
    seed : int, default=0
        Seed of the parts and of the mixtures.

    Returns
    -------
    float
        1 if all mixtures divide the unlabelled samples alike, 0 if they agree no more than by chance.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat(np.arange(6), 40)
    >>> x = torch.from_numpy(rng.normal(size=(6, 8))[truth] + 0.3 * rng.normal(size=(240, 8))).float()
    >>> z = torch.nn.functional.normalize(x, dim=1)
    >>> labels = np.where((truth < 3) & (np.arange(240) % 2 == 0), truth, -1)
    >>> sizes = KnownSizes(np.full(3, 20.0), np.full(3, 20.0), 0.5, 0.5, 0.1)
    >>> mixture_agreement(z, labels, sizes, 6) > mixture_agreement(z, labels, sizes, 9)
    True
    """
    rng = np.random.default_rng(seed)
    given, free = np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0)
    n_part = max(round(PART * len(free)), 1)
    from sklearn.metrics import adjusted_rand_score  # slow to import

    smaller = replace(sizes, unlabelled=sizes.unlabelled * n_part / len(free))
    target = target_sizes(smaller, n_categories, n_part)
    found = []
    for part in range(PARTS):
        rows = torch.from_numpy(np.concatenate([given, rng.permutation(free)[:n_part]]))
        y = torch.from_numpy(labels)[rows]
        fit = fit_mixture(z[rows], labels=y, sizes=target, n_iter=STEPS, n_init=RESTARTS, seed=seed * PARTS + part)
        found.append((z[free] @ fit.directions.T).argmax(dim=1).numpy())
    return float(np.mean([adjusted_rand_score(a, b) for i, a in enumerate(found) for b in found[:i]]))
