"""Number of clusters at which clusters are as large as classes.

Ward's tree over all samples gives a clustering for every number of clusters K. Known classes are held out in turn: the features are
whitened by the other classes only, as they would be for a new class. At each K the labelled samples of a held-out class then give two
rates, for a sample of the class that is drawn at random:

- *recall*: the share of the other samples of its class that are in its cluster;
- *precision*: the share of the other samples in its cluster that belong to its class. The class's samples in the cluster are its recall
  times its expected size, labelled and unlabelled. All samples in the cluster count, so samples of new classes count as what they are.

Each class counts once, whatever its size. Recall falls with K and precision rises. Where they are equal, clusters are about as large
as classes: as many samples are wrongly apart as are wrongly together.

There, a held-out class makes up some number of clusters: the sum over its samples of 1 / (size of the cluster). The clusters that known
classes do not make up, divided by the clusters per held-out class, are the number of new classes. So classes of any size count as one,
and it does not matter whether clusters are a little too small or too large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from newkind.clustering.kmeans import k_means
from newkind.clustering.ward import ward_tree
from newkind.clustering.whitening import within_class_whitening

__all__ = [
    "BalancedLevel",
    "ClassRates",
    "HeldOutClasses",
    "MicroClusters",
    "class_rates",
    "hold_out_classes",
    "mean_inverse_sizes",
    "micro_clusters",
    "whiten",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SMOOTHING = (0.1, 0.2, 0.4, 0.2, 0.1)
"""Weights of neighbouring levels in a smoothed curve."""
NEARBY = 8
"""Levels on each side of the balanced one over which the number of new classes is averaged."""


@dataclass(frozen=True, eq=False)
class MicroClusters:
    """Small clusters of n samples, the leaves of the tree.

    Parameters
    ----------
    cluster_of : ndarray of int64, shape (n,)
        The cluster of each sample.
    centers : tensor of shape (n_clusters, d)
        Mean features of each cluster, not whitened.
    sizes : ndarray of shape (n_clusters,)
        Number of samples in each cluster.
    """

    cluster_of: Ints
    centers: Tensor
    sizes: Floats


@dataclass(frozen=True, eq=False)
class ClassRates:
    """Recall and precision of L classes in one clustering; NaN for classes with fewer than two labelled samples.

    Parameters
    ----------
    recall : ndarray of shape (L,)
        Share of the other samples of its class that a sample finds in its cluster.
    precision : ndarray of shape (L,)
        Expected share of its class among the other samples in its cluster.
    """

    recall: Floats
    precision: Floats


def mean_inverse_sizes(cluster_of: Ints, labels: Ints, n_classes: int) -> Floats:
    """Mean over the labelled samples of each class of 1 / (size of its cluster).

    Parameters
    ----------
    cluster_of : ndarray of int64, shape (n,)
        The cluster of each sample.
    labels : ndarray of int64, shape (n,)
        Class of each sample, 0 to `n_classes` - 1, or -1 for unlabelled.
    n_classes : int
        Number of classes L.

    Returns
    -------
    ndarray of shape (L,)
        Times the size of a class, the number of clusters that it makes up; 0 for a class without labelled samples.

    Examples
    --------
    >>> mean_inverse_sizes(np.array([0, 0, 1, 1, 1]), np.array([0, 0, -1, 0, 1]), 2).round(3).tolist()
    [0.444, 0.333]
    """
    given = labels >= 0
    inverse = 1 / np.bincount(cluster_of)[cluster_of[given]]
    counts = np.bincount(labels[given], minlength=n_classes)
    return np.bincount(labels[given], inverse, minlength=n_classes) / np.maximum(counts, 1)


@dataclass(frozen=True)
class BalancedLevel:
    """The number of clusters at which recall and precision are equal.

    Parameters
    ----------
    log_k : float
        Logarithm of the number, interpolated between levels.
    quality : float
        F1 at that number, scaled so that chance is 0 and perfect is 1.
    """

    log_k: float
    quality: float


@dataclass(frozen=True, eq=False)
class HeldOutClasses:
    """Recall and precision of L held-out classes at J numbers of clusters; NaN for classes with one labelled sample.

    Parameters
    ----------
    levels : ndarray of int64, shape (J,)
        Numbers of clusters, in descending order.
    recall : ndarray of shape (L, J)
        Recall of each class at each level.
    precision : ndarray of shape (L, J)
        Precision of each class at each level.
    own_inverse : ndarray of shape (L, J)
        Mean inverse cluster size of each class at each level while it is held out.
    mean_inverse : ndarray of shape (L, J)
        The same, averaged over all folds.
    """

    levels: Ints
    recall: Floats
    precision: Floats
    own_inverse: Floats
    mean_inverse: Floats

    def mean_rates(self, times: NDArray[np.integer] | None = None) -> ClassRates:
        """Average recall and precision over the classes.

        Parameters
        ----------
        times : ndarray of int, shape (L,), optional
            How often each class counts. Default: once, also if no class with two labelled samples counts.

        Returns
        -------
        ClassRates
            The means at each level, shape (J,); at least 1e-6.
        """
        use = ~np.isnan(self.recall[:, 0])
        weights = np.ones(use.sum()) if times is None or not times[use].any() else times[use].astype(np.float64)
        recall, precision = (
            np.maximum(np.average(rates[use], axis=0, weights=weights), 1e-6) for rates in (self.recall, self.precision)
        )
        return ClassRates(recall, precision)

    def f1(self, times: NDArray[np.integer] | None = None) -> Floats:
        """Compute the F1 of mean recall and mean precision above chance.

        Parameters
        ----------
        times : ndarray of int, shape (L,), optional
            How often each class counts. Default: once.

        Returns
        -------
        ndarray of shape (J,)
            F1 at each level, scaled so that 1 / K, the F1 of random clusters at the right K, is 0 and perfect is 1.
        """
        return np.array([_above_chance(f1, k) for f1, k in zip(_f1(self.mean_rates(times)), self.levels, strict=True)])

    def balanced_level(self, times: NDArray[np.integer] | None = None) -> BalancedLevel:
        """Find the number of clusters at which mean recall and mean precision are equal.

        Parameters
        ----------
        times : ndarray of int, shape (L,), optional
            How often each class counts. Default: once.

        Returns
        -------
        BalancedLevel
            Of several crossings the one with the best F1; without one, the largest level if precision is too small at every level,
            otherwise the smallest.
        """
        rates, log_k = self.mean_rates(times), np.log(self.levels)
        excess = _smooth(np.log(rates.recall) - np.log(rates.precision))  # (J,): above 0 where K is too small
        f1 = _f1(rates)
        crossings = np.flatnonzero((excess[:-1] < 0) & (excess[1:] >= 0))
        if not len(crossings):
            end = 0 if excess[0] >= 0 else -1
            return BalancedLevel(float(log_k[end]), _above_chance(f1[end], self.levels[end]))
        at = int(crossings[np.argmax(f1[crossings])])
        part = excess[at] / (excess[at] - excess[at + 1])
        crossing = float((1 - part) * log_k[at] + part * log_k[at + 1])
        return BalancedLevel(crossing, _above_chance(f1[at], np.exp(crossing)))

    def log_n_new(self, sizes: Floats, times: NDArray[np.integer] | None = None) -> float:
        """Logarithm of the number of new classes, averaged over the levels near the balanced one.

        Parameters
        ----------
        sizes : ndarray of shape (L,)
            Expected number of samples of each class, labelled and unlabelled.
        times : ndarray of int, shape (L,), optional
            How often each class counts. Default: once.

        Returns
        -------
        float
            At least log 0.5.
        """
        at = int(np.abs(np.log(self.levels) - self.balanced_level(times).log_k).argmin())
        near = slice(max(at - NEARBY, 0), at + NEARBY + 1)
        per_class = np.average(sizes[:, None] * self.own_inverse[:, near], axis=0, weights=times)  # (near,)
        rest = self.levels[near] - sizes @ self.mean_inverse[:, near]
        return float(np.log(np.maximum(rest / np.maximum(per_class, 1e-9), 0.5)).mean())


def class_rates(cluster_of: Ints, labels: Ints, sizes: Floats) -> ClassRates:
    """Compute recall and precision of L classes in a clustering.

    Parameters
    ----------
    cluster_of : ndarray of int64, shape (n,)
        The cluster of each sample.
    labels : ndarray of int64, shape (n,)
        Class of each sample, 0 to L - 1, or -1 for unlabelled.
    sizes : ndarray of shape (L,)
        Expected number of samples of each class, labelled and unlabelled.

    Returns
    -------
    ClassRates

    Examples
    --------
    >>> cluster_of, labels = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, -1, 0, -1, -1])
    >>> rates = class_rates(cluster_of, labels, np.array([3.0]))  # all of the class are labelled
    >>> rates.recall.round(3).tolist(), rates.precision.round(3).tolist()
    ([0.333], [0.333])
    """
    given = np.flatnonzero(labels >= 0)
    totals = np.bincount(cluster_of).astype(np.float64)
    cells = labels[given] * len(totals) + cluster_of[given]
    table = np.bincount(cells, minlength=len(sizes) * len(totals)).reshape(len(sizes), -1)  # (L, clusters)
    counts = table.sum(axis=1, keepdims=True).astype(np.float64)
    counts[counts < 2] = np.nan
    others = np.maximum(table - 1, 0) / (counts - 1)  # recall of a sample of the class in each cluster
    expected = others * np.maximum(sizes[:, None] - 1, 0) / np.maximum(totals - 1, 1e-9)
    precision = np.where(
        totals > 1, np.minimum(expected, 1.0), 1.0
    )  # a sample alone in its cluster is not with wrong ones
    weights = table / counts
    return ClassRates((weights * others).sum(axis=1), (weights * precision).sum(axis=1))


def hold_out_classes(
    x: Tensor, labels: Ints, micro: MicroClusters, levels: Ints, *, sizes: Floats, fold_of: Ints, shrinkage: float
) -> HeldOutClasses:
    """Compute recall and precision of known classes in Ward clusters, with the classes of each fold held out in turn.

    Parameters
    ----------
    x : tensor of shape (n, d)
        Features, not whitened.
    labels : ndarray of int64, shape (n,)
        Class of each sample, 0 to L - 1, or -1 for unlabelled.
    micro : MicroClusters
        Small clusters of the samples.
    levels : ndarray of int64, shape (J,)
        Numbers of clusters, in descending order.
    sizes : ndarray of shape (L,)
        Expected number of samples of each class, labelled and unlabelled.
    fold_of : ndarray of int64, shape (L,)
        Fold of each class; at least two folds.
    shrinkage : float
        Shrinkage of the whitening, as in `within_class_whitening`.

    Returns
    -------
    HeldOutClasses
    """
    recall, precision = (np.full((len(sizes), len(levels)), np.nan) for _ in range(2))
    own, mean = (np.zeros((len(sizes), len(levels))) for _ in range(2))
    known, folds = labels >= 0, np.unique(fold_of)
    for fold in folds:
        held = np.flatnonzero(fold_of == fold)
        is_held = known & (fold_of[labels] == fold)
        held_labels = np.where(is_held, np.searchsorted(held, labels), -1)
        used = known & ~is_held
        points = whiten(micro.centers, x.mean(dim=0), x[torch.from_numpy(used)], labels[used], shrinkage=shrinkage)
        for j, cut in enumerate(ward_tree(points.numpy(), micro.sizes).cut(levels)):
            cluster_of = cut[micro.cluster_of]
            rates = class_rates(cluster_of, held_labels, sizes[held])
            recall[held, j], precision[held, j] = rates.recall, rates.precision
            inverse = mean_inverse_sizes(cluster_of, labels, len(sizes))
            own[held, j] = inverse[held]
            mean[:, j] += inverse / len(folds)
    return HeldOutClasses(levels, recall, precision, own, mean)


def micro_clusters(x: Tensor, z: Tensor, most: int, *, seed: int) -> MicroClusters:
    """Group samples into small clusters by k-means; each sample is its own cluster if there are few.

    Parameters
    ----------
    x : tensor of shape (n, d)
        Features, whose means are returned.
    z : tensor of shape (n, d)
        Whitened features of unit length, which are clustered.
    most : int
        Largest number of clusters.
    seed : int
        Seed of k-means.

    Returns
    -------
    MicroClusters
    """
    if len(x) <= most:
        return MicroClusters(np.arange(len(x)), x, np.ones(len(x)))
    found = k_means(z, most, n_init=1, max_iter=4, greedy=False, seed=seed).labels.numpy()
    cluster_of = np.unique(found, return_inverse=True)[1].astype(np.int64)
    sizes = np.bincount(cluster_of).astype(np.float64)
    sums = torch.zeros(len(sizes), x.shape[1]).index_add_(0, torch.from_numpy(cluster_of), x)
    return MicroClusters(cluster_of, sums / torch.from_numpy(sizes).float()[:, None], sizes)


def whiten(points: Tensor, center: Tensor, labelled: Tensor, labels: Ints, *, shrinkage: float) -> Tensor:
    """Whiten points (m, d) by the spread within labelled classes, around a centre (d,), to unit length."""
    matrix = torch.from_numpy(within_class_whitening(labelled, labels, shrinkage=shrinkage)[1]).float()
    return F.normalize((points - center) @ matrix, dim=1)


def _f1(rates: ClassRates) -> Floats:
    f1: Floats = 2 * rates.recall * rates.precision / (rates.recall + rates.precision)
    return f1


def _above_chance(f1: float, k: float) -> float:
    """Scale an F1 at K clusters so that 1 / K is 0."""
    return max(float((f1 - 1 / k) / max(1 - 1 / k, 1e-12)), 0.0)


def _smooth(values: Floats) -> Floats:
    """Average of neighbouring levels (J,), with the ends repeated."""
    return np.convolve(np.pad(values, len(SMOOTHING) // 2, mode="edge"), SMOOTHING, "valid")
