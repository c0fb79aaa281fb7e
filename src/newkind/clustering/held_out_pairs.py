"""The pair criterion: which number of clusters separates held-out known classes best.

Known classes are held out in turn. The other classes show the spread within a class, by which the features are whitened.
At each number of clusters K the held-out classes then give two rates: how often two samples of one class are in one
cluster (TPR), and how often two samples of different classes are (FPR). Both rates are expected to hold for new classes as
well. With the share P of all pairs of samples that are in one cluster, which needs no label, the right K is where as many
pairs are wrongly together as wrongly apart:

    FPR (1 - P) = (1 - TPR) P
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from newkind.clustering.ward import ward_tree
from newkind.clustering.whitening import within_class_whitening

__all__ = ["HeldOutPairs", "MicroClusters", "count_held_out_pairs"]

PLATEAU = 0.99
"""A K whose F1 is at least this share of the best F1 is as good as the best."""
SMOOTHING = (0.1, 0.2, 0.4, 0.2, 0.1)
"""Weights of neighbouring levels in a smoothed curve."""


@dataclass(frozen=True, eq=False)
class MicroClusters:
    """Small clusters of n samples, over which the tree is built.

    Parameters
    ----------
    cluster_of : ndarray of shape (n,)
        The cluster of each sample.
    centers : ndarray of shape (n_clusters, d)
        Mean of each cluster.
    sizes : ndarray of shape (n_clusters,)
        Number of samples in each cluster.
    """

    cluster_of: NDArray[np.int64]
    centers: NDArray[np.float32]
    sizes: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HeldOutPairs:
    """Counts of pairs at each of J numbers of clusters, with one row per held-out known class, L in all.

    Parameters
    ----------
    levels : ndarray of shape (J,)
        Numbers of clusters, in descending order.
    together : ndarray of shape (J,)
        P, the share of all pairs of samples that are in one cluster.
    same : ndarray of shape (L, J)
        Pairs of labelled samples of this class in one cluster.
    n_same : ndarray of shape (L,)
        All pairs of labelled samples of this class.
    cross : ndarray of shape (L, J)
        Pairs of a sample of this class and one of another known class in one cluster.
    n_cross : ndarray of shape (L,)
        All pairs of a sample of this class and one of another known class.
    """

    levels: NDArray[np.int64]
    together: NDArray[np.float64]
    same: NDArray[np.float64]
    n_same: NDArray[np.float64]
    cross: NDArray[np.float64]
    n_cross: NDArray[np.float64]

    def rates(self, times: NDArray[np.int64] | None = None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Compute how often pairs of one class and of different classes are in one cluster.

        Parameters
        ----------
        times : ndarray of int, shape (L,), optional
            How often each class counts. Default: once.

        Returns
        -------
        tpr : ndarray of shape (J,)
            Rate of pairs of one class.
        fpr : ndarray of shape (J,)
            Rate of pairs of different classes.
        """
        w = np.ones(len(self.n_same)) if times is None else times.astype(np.float64)
        return w @ self.same / float(w @ self.n_same + 1e-12), w @ self.cross / float(w @ self.n_cross + 1e-12)

    def f1(self, times: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """Compute the F1 of finding the pairs that belong together.

        Parameters
        ----------
        times : ndarray of int, shape (L,), optional
            How often each class counts. Default: once.

        Returns
        -------
        ndarray of shape (J,)
            F1 at each level, scaled so that chance is 0 and perfect is 1.
        """
        tpr, fpr = self.rates(times)
        right = tpr * self.together
        precision = right / np.maximum(right + fpr * (1 - self.together), 1e-12)
        f1 = 2 * precision * tpr / np.maximum(precision + tpr, 1e-12)
        above: NDArray[np.float64] = (f1 - self.together) / np.maximum(1 - self.together, 1e-12)
        return above

    def best_level(self, times: NDArray[np.int64] | None = None) -> tuple[float, float]:
        """Find K at which both kinds of error are equally frequent, or the largest K on the F1 plateau if that is more.

        Where classes are far apart, many K make no error that known classes could show: merged new classes stay unnoticed,
        while splits show in every class. There F1 stays at its best up to the right K and falls beyond it.

        Parameters
        ----------
        times : ndarray of int, shape (L,), optional
            How often each class counts. Default: once.

        Returns
        -------
        k : float
            Number of clusters, interpolated between levels.
        f1 : float
            F1 at that number.
        """
        tpr, fpr = self.rates(times)
        excess = _smooth(fpr * (1 - self.together) - (1 - tpr) * self.together)  # (J,), above 0 where K is too small
        score, levels = _smooth(self.f1(times)), np.log(self.levels)
        plateau = int(np.flatnonzero(score >= score.max() - (1 - PLATEAU) * abs(score.max()))[0])
        crossings = np.flatnonzero((excess[:-1] < 0) & (excess[1:] >= 0))
        if not len(crossings):
            return float(self.levels[plateau]), float(score[plateau])
        at = int(crossings[np.argmax(np.maximum(score[crossings], score[crossings + 1]))])
        if plateau <= at:
            return float(self.levels[plateau]), float(score[plateau])
        share = excess[at] / (excess[at] - excess[at + 1])
        k = np.exp((1 - share) * levels[at] + share * levels[at + 1])
        return float(k), float((1 - share) * score[at] + share * score[at + 1])


def _smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.convolve(np.pad(values, 2, mode="edge"), SMOOTHING, "valid")


def count_held_out_pairs(
    x: NDArray[np.float32],
    y: NDArray[np.int64],
    micro: MicroClusters,
    levels: NDArray[np.int64],
    fold_of: NDArray[np.int64],
    *,
    shrinkage: float,
) -> HeldOutPairs:
    """Count pairs in the clusters of Ward's tree, with the known classes of each fold held out in turn.

    Parameters
    ----------
    x : ndarray of float32, shape (n, d)
        Features of unit length.
    y : ndarray of int64, shape (n,)
        Class of each sample, or -1 for unlabelled.
    micro : MicroClusters
        Small clusters of the samples, the leaves of the tree.
    levels : ndarray of int64, shape (J,)
        Numbers of clusters, in descending order.
    fold_of : ndarray of int64, shape (L,)
        Fold of each known class.
    shrinkage : float
        Shrinkage of the covariance within classes; 1 for no whitening.

    Returns
    -------
    HeldOutPairs
        The counts.
    """
    n, n_known, n_levels = len(x), len(fold_of), len(levels)
    given = np.flatnonzero(y >= 0)
    counts = np.bincount(y[given], minlength=n_known).astype(np.float64)
    same, cross = np.zeros((n_known, n_levels)), np.zeros((n_known, n_levels))
    folds = np.unique(fold_of)
    together = np.zeros((len(folds), n_levels))
    for fold in folds:
        held = fold_of == fold
        others = given[~held[y[given]]]
        points = micro.centers
        if shrinkage < 1:
            center, matrix = within_class_whitening(x[others], y[others], shrinkage=shrinkage)
            points = ((points - center) @ matrix).astype(np.float32)
        points = points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12)
        for j, cut in enumerate(ward_tree(points, micro.sizes).cut(levels)):
            cluster = cut[micro.cluster_of]
            size = np.bincount(cluster).astype(np.float64)
            together[fold, j] = (size * (size - 1)).sum() / (n * (n - 1))
            table = np.zeros((n_known, len(size)))  # (L, K): labelled samples of each class in each cluster
            np.add.at(table, (y[given], cluster[given]), 1)
            same[held, j] = (table * (table - 1)).sum(axis=1)[held]
            cross[held, j] = (table * (table.sum(axis=0) - table)).sum(axis=1)[held]
    return HeldOutPairs(
        levels, together.mean(axis=0), same, counts * (counts - 1), cross, counts * (len(given) - counts)
    )
