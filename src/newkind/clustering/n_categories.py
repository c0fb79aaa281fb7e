"""How many categories are there? Two answers.

`estimate_by_search` is the published one (Vaze et al. 2022): k-means on all features for one K after another, scored by the
accuracy on the labelled samples, with Brent's bounded search for the best K. A labelled sample that shares its cluster with a
new class costs nothing there, so it tends to find too few.

`estimate_n_categories` is ours. A tree of clusters over all samples gives every K at once. Known classes are held out in turn
as pretend-new: what the others teach about the spread within a class is used to whiten the features, and the held-out ones
tell two rates at each K: how often two samples of one class are parted, and how often two of different classes are put
together. Both hold for new classes as well. With the share P of all pairs of samples that lie in one cluster, which needs no
label, the right K is the one at which as many pairs are wrongly together as wrongly apart:

    FPR (1 - P) = (1 - TPR) P

or the largest K at which known classes come to no harm, if that is more. Resampling the known classes says how far that can be trusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, minimize_scalar
from torch import Tensor

from newkind.clustering.kmeans import k_means
from newkind.clustering.ward import ward_tree
from newkind.clustering.whitening import within_class_whitening
from newkind.errors import ConfigError, DataError

__all__ = ["Estimate", "estimate_by_search", "estimate_n_categories", "median_estimate"]

MICRO_CLUSTERS = 1500
"""A tree is built over at most so many points; more samples are first put together into small clusters."""
SHRINKAGE = (0.05, 0.2, 1.0)
"""Of the covariance within classes; the one under which held-out classes are found best is taken. 1 does not whiten."""
PLATEAU = 0.99
"""A K whose F1 is this share of the best costs nothing."""
FOLDS, RESAMPLES, LEVELS = 4, 200, 70


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number of categories, known and new together, and how far to trust it."""

    n_categories: int
    low: int
    high: int
    """[low, high]: where the number is to be expected, 9 times in 10."""
    n_known: int
    way: str
    """pairs (ours), search (published) or guess (too few labelled classes to learn from)."""
    quality: float
    """The score at the estimate: F1 above chance of pairs of held-out classes (pairs), or the accuracy on labelled samples (search)."""
    curve: tuple[tuple[int, float], ...] = ()
    """(K, score), rising in K."""

    def sentence(self) -> str:
        """In words, with how it was found."""
        if self.way == "guess":
            return (
                f"Room for {self.n_categories} categories: with {self.n_known} known classes there is too little to learn "
                f"from how many new ones there are. --n-categories sets it."
            )
        found = f"About {self.n_categories} categories ({self.n_known} of them known)"
        if self.way == "search":
            return f"{found}, by the published search: labelled accuracy {100 * self.quality:.1f} %."
        trust = (
            ""
            if self.quality >= 0.3
            else "; the features hardly tell the known classes apart, so this is a rough guess"
        )
        return (
            f"{found}, probably between {self.low} and {self.high}: found by holding out known classes as if they were new "
            f"(pairs found again: F1 {self.quality:.2f}){trust}."
        )

    def generous(self) -> int:
        """Room for more than are expected, for a method that leaves unused what it does not need."""
        return max(self.high, ceil(1.25 * self.n_categories))

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def median_estimate(estimates: Sequence[Estimate]) -> Estimate:
    """The middle one of several, with the middle of their bounds: other views of the same images say other numbers."""
    middle = sorted(estimates, key=lambda estimate: estimate.n_categories)[(len(estimates) - 1) // 2]
    low, high = (int(np.median([getattr(estimate, name) for estimate in estimates])) for name in ("low", "high"))
    return replace(middle, low=min(low, middle.n_categories), high=max(high, middle.n_categories))


def estimate_n_categories(
    features: Tensor,
    labels: NDArray[np.integer],
    *,
    n_known: int,
    seed: int = 0,
    max_categories: int | None = None,
) -> Estimate:
    """features (n, d), labels (n,), -1 for unlabelled. Cheap: one k-means and a dozen trees of at most 1,500 points."""
    x, y = _checked(features, labels, n_known)
    counts = np.bincount(y[y >= 0], minlength=n_known)
    if (counts >= 2).sum() < 3:
        guess = int(np.clip(2 * n_known, 2, max(len(x) - 1, 2)))
        return Estimate(n_categories=guess, low=n_known, high=guess, n_known=n_known, way="guess", quality=0.0)
    rng = np.random.default_rng(seed)
    mixed = rng.permutation(len(x))  # files often come class by class, and ties are broken by order
    x, y = x[torch.from_numpy(mixed)], y[mixed]
    micro, points, weights = _micro_clusters(x, seed)
    most = min(max_categories or max(8 * n_known + 40, 60), max(len(points) - 1, 2))
    levels = np.unique(np.geomspace(max(0.7 * n_known, 2), max(most, 3), LEVELS).astype(np.int64))[::-1]
    fold_of = rng.permutation(np.arange(n_known) % min(FOLDS, n_known))
    looks = [_held_out_pairs(x, y, micro, points, weights, levels, fold_of, shrinkage) for shrinkage in SHRINKAGE]
    pairs = max(looks, key=lambda look: _balance(look)[1])
    k, quality = _balance(pairs)
    again = np.log(
        [
            _balance(pairs, np.bincount(rng.integers(0, n_known, n_known), minlength=n_known))[0]
            for _ in range(RESAMPLES)
        ]
    )
    # The new classes are one more sample of classes, so their number adds to the spread.
    wider = np.sqrt(1 + n_known / max(k - n_known, 1)) if k > n_known else 1.0
    low, high = np.exp(np.log(k) + min(wider, 3.0) * (np.quantile(again, [0.05, 0.95]) - np.median(again)))
    score = pairs.f1()[::-1]
    return Estimate(
        n_categories=max(round(k), n_known),
        low=max(min(round(low), round(k)), n_known),
        high=max(round(high), round(k), n_known),
        n_known=n_known,
        way="pairs",
        quality=round(float(quality), 4),
        curve=tuple((int(a), round(float(b), 4)) for a, b in zip(levels[::-1], score, strict=True)),
    )


@dataclass(frozen=True)
class _Pairs:
    """Counts of pairs at each of J levels of the tree, a row for each known class, held out."""

    levels: NDArray[np.int64]
    """(J,) falling"""
    together: NDArray[np.float64]
    """(J,): the share of all pairs of samples that lie in one cluster: P."""
    same: NDArray[np.float64]
    """(L, J): pairs of labelled samples of this class in one cluster."""
    n_same: NDArray[np.float64]
    """(L,): all of them."""
    cross: NDArray[np.float64]
    """(L, J): pairs of this class with other known classes in one cluster."""
    n_cross: NDArray[np.float64]
    """(L,)"""

    def rates(self, times: NDArray[np.int64] | None = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(TPR, FPR) at each level, (J,) each; times (L,): how often each class counts."""
        w = np.ones(len(self.n_same)) if times is None else times.astype(np.float64)
        return w @ self.same / float(w @ self.n_same + 1e-12), w @ self.cross / float(w @ self.n_cross + 1e-12)

    def f1(self, times: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """(J,): of finding the pairs that belong together, where P is their share; 0 for chance, 1 for all right."""
        tpr, fpr = self.rates(times)
        right = tpr * self.together
        precision = right / np.maximum(right + fpr * (1 - self.together), 1e-12)
        f1 = 2 * precision * tpr / np.maximum(precision + tpr, 1e-12)
        above: NDArray[np.float64] = (f1 - self.together) / np.maximum(1 - self.together, 1e-12)
        return above


def _balance(pairs: _Pairs, times: NDArray[np.int64] | None = None) -> tuple[float, float]:
    """(K, F1): where wrongly together and wrongly apart weigh the same, or the largest K that costs nothing, if that is more.

    Where classes lie far apart, many K make no error that known classes could show: new ones melt into each other unseen, while
    splits show in every class. There F1 stays at its best up to the right K, and falls beyond.
    """
    tpr, fpr = pairs.rates(times)
    excess = _smooth(fpr * (1 - pairs.together) - (1 - tpr) * pairs.together)  # (J,): above 0 where K is too small
    score, levels = _smooth(pairs.f1(times)), np.log(pairs.levels)
    good = np.flatnonzero(score >= score.max() - (1 - PLATEAU) * abs(score.max()))
    plateau = int(good[0])  # levels fall
    crossings = np.flatnonzero((excess[:-1] < 0) & (excess[1:] >= 0))
    if not len(crossings):
        return float(pairs.levels[plateau]), float(score[plateau])
    at = int(crossings[np.argmax(np.maximum(score[crossings], score[crossings + 1]))])
    if plateau <= at:
        return float(pairs.levels[plateau]), float(score[plateau])
    share = excess[at] / (excess[at] - excess[at + 1])
    k = np.exp((1 - share) * levels[at] + share * levels[at + 1])
    return float(k), float((1 - share) * score[at] + share * score[at + 1])


def _smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.convolve(np.pad(values, 2, mode="edge"), [0.1, 0.2, 0.4, 0.2, 0.1], "valid")


def _held_out_pairs(
    x: Tensor,
    y: NDArray[np.int64],
    micro: NDArray[np.int64],
    points: NDArray[np.float32],
    weights: NDArray[np.float64],
    levels: NDArray[np.int64],
    fold_of: NDArray[np.int64],
    shrinkage: float,
) -> _Pairs:
    n, n_known = len(x), len(fold_of)
    given = np.flatnonzero(y >= 0)
    counts = np.bincount(y[given], minlength=n_known).astype(np.float64)
    same, cross = np.zeros((n_known, len(levels))), np.zeros((n_known, len(levels)))
    folds = np.unique(fold_of)
    together = np.zeros((len(folds), len(levels)))
    for fold in folds:
        held = fold_of == fold
        taught = given[~held[y[given]]]
        seen = points
        if shrinkage < 1:
            center, matrix = within_class_whitening(x[taught], y[taught], shrinkage=shrinkage)
            seen = ((points - center) @ matrix).astype(np.float32)
        seen = seen / np.maximum(np.linalg.norm(seen, axis=1, keepdims=True), 1e-12)
        for j, cut in enumerate(ward_tree(seen, weights).cut(levels)):
            cluster = cut[micro]
            size = np.bincount(cluster).astype(np.float64)
            together[fold, j] = (size * (size - 1)).sum() / (n * (n - 1))
            table = np.zeros((n_known, len(size)))
            np.add.at(table, (y[given], cluster[given]), 1)
            same[held, j] = (table * (table - 1)).sum(axis=1)[held]
            cross[held, j] = (table * (table.sum(axis=0) - table)).sum(axis=1)[held]
    return _Pairs(levels, together.mean(axis=0), same, counts * (counts - 1), cross, counts * (len(given) - counts))


def _micro_clusters(x: Tensor, seed: int) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float64]]:
    """(cluster of each sample (n,), centres (M, d), sizes (M,)); each sample for itself if there are few."""
    if len(x) <= MICRO_CLUSTERS:
        return np.arange(len(x)), x.numpy(), np.ones(len(x))
    found = k_means(x, MICRO_CLUSTERS, n_init=1, max_iter=5, greedy=False, seed=seed)
    used, micro = np.unique(found.labels.numpy(), return_inverse=True)
    return micro, found.centers.numpy()[used], np.bincount(micro).astype(np.float64)


def estimate_by_search(
    features: Tensor,
    labels: NDArray[np.integer],
    *,
    n_known: int,
    seed: int = 0,
    max_categories: int = 1000,
    n_init: int = 10,
) -> Estimate:
    """As published: Brent's bounded search over [n_known, max_categories] for the best accuracy on labelled samples."""
    x, y = _checked(features, labels, n_known)
    given = y >= 0
    most = min(max_categories, len(x))
    if most <= n_known:
        raise ConfigError(f"The search needs room above the {n_known} known classes; got at most {most} categories.")
    scores: dict[int, float] = {}

    def loss(value: float) -> float:
        k = round(value)
        if k not in scores:
            cluster = k_means(x, k, n_init=n_init, seed=seed).labels.numpy()[given]
            table = np.zeros((n_known, k))
            np.add.at(table, (y[given], cluster), 1)
            scores[k] = float(table[linear_sum_assignment(table, maximize=True)].sum() / given.sum())
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


def _checked(features: Tensor, labels: NDArray[np.integer], n_known: int) -> tuple[Tensor, NDArray[np.int64]]:
    """L2-normalised features and labels."""
    x, y = torch.as_tensor(features, dtype=torch.float32).cpu(), np.asarray(labels, dtype=np.int64)
    if x.ndim != 2 or len(x) != len(y) or len(x) < 2:
        raise DataError(
            f"Features (n, d) of at least 2 samples and n labels are needed; got {tuple(x.shape)} and {len(y)}."
        )
    if not torch.isfinite(x).all():
        raise DataError(
            "Some features are NaN or infinite.", fix="Find out where they come from; nothing was estimated."
        )
    if n_known < 1 or not (y >= 0).any() or y.max() >= n_known:
        raise DataError("Some samples have to be labelled, with classes below the number of known ones.")
    return torch.nn.functional.normalize(x, dim=1), y
