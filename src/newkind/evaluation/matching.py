"""The confusion matrix of classes and clusters, and the one best pairing of the two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from newkind.errors import DataError

__all__ = ["Matching", "match"]

MAX_CELLS = 200_000_000
"""Of the confusion matrix: beyond this it no longer fits into an ordinary memory."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Matching:
    """C classes and K clusters that occur among the scored samples, each sorted by label."""

    classes: NDArray[Any]
    """(C,), the labels as they were given."""
    clusters: NDArray[Any]
    """(K,), likewise."""
    counts: NDArray[np.int64]
    """(C, K), samples of each class in each cluster."""
    is_old: NDArray[np.bool_]
    """(C,)"""
    cluster_of_class: NDArray[np.int64]
    """(C,), an index into `clusters`, or -1 for a class that no cluster was left for."""

    @property
    def n_true(self) -> NDArray[np.int64]:
        """Samples of each class, (C,)."""
        sizes: NDArray[np.int64] = self.counts.sum(axis=1)
        return sizes

    @property
    def n_predicted(self) -> NDArray[np.int64]:
        """Samples in each cluster, (K,)."""
        sizes: NDArray[np.int64] = self.counts.sum(axis=0)
        return sizes

    @property
    def is_matched(self) -> NDArray[np.bool_]:
        """Classes that have a cluster, (C,)."""
        return self.cluster_of_class >= 0

    @property
    def n_correct(self) -> NDArray[np.int64]:
        """Samples of each class that lie in its own cluster, (C,)."""
        own = self.counts[np.arange(len(self.classes)), self.cluster_of_class]
        return np.where(self.is_matched, own, 0)

    @property
    def cluster_is_old(self) -> NDArray[np.bool_]:
        """Clusters that stand for an Old class, (K,). A cluster matched to no class is a New one."""
        is_old = np.zeros(len(self.clusters), dtype=bool)
        is_old[self.cluster_of_class[self.is_old & self.is_matched]] = True
        return is_old

    def samples(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The samples' class and cluster indices, (N,) each, in the matrix's order rather than the given one."""
        rows, columns = np.nonzero(self.counts)
        repeats = self.counts[rows, columns]
        return np.repeat(rows, repeats), np.repeat(columns, repeats)


def match(y_true: ArrayLike, y_pred: ArrayLike, is_old: ArrayLike) -> Matching:
    """Pair clusters with classes, one to one, so that as many samples as possible are right.

    Among pairings that are equally good, one with the most Old samples right is taken, so that Old and New
    accuracy do not hang on how the clusters are numbered. A cluster is never paired with a class of which it
    holds no sample.

    y_true: (N,) whole numbers >= 0 or strings. y_pred: (N,) whole numbers or strings, with no relation to
    those of y_true. is_old: (N,) bool, whether the sample's class is an Old one.
    """
    true, classes = _encode(y_true, "y_true")
    pred, clusters = _encode(y_pred, "y_pred")
    old = np.asarray(is_old)
    if not (old.ndim == 1 and len(true) == len(pred) == len(old)):
        raise DataError(
            f"y_true, y_pred and is_old must have one entry a sample; got {len(true)} and {len(pred)} entries "
            f"and is_old of shape {old.shape}."
        )
    if not len(true):
        raise DataError("There is no sample to score.")
    if old.dtype != np.bool_:
        raise DataError(f"is_old must hold True or False for each sample; got {old.dtype}.")
    if classes.dtype.kind == "i" and classes[0] < 0:
        raise DataError(
            f"y_true has negative entries (such as {classes[0]}), which mean that the true class is not known.",
            fix="Leave those samples out: only the others can be scored.",
        )
    shape = len(classes), len(clusters)
    if shape[0] * shape[1] > MAX_CELLS:
        raise DataError(
            f"{shape[0]} classes and {shape[1]} clusters are too many to match.",
            fix="Check that y_true and y_pred are labels, not image numbers.",
        )

    counts = np.bincount(true * shape[1] + pred, minlength=shape[0] * shape[1]).reshape(shape)
    n_old = np.bincount(true[old], minlength=shape[0])  # (C,)
    mixed = np.flatnonzero((n_old > 0) & (n_old < counts.sum(axis=1)))
    if mixed.size:
        raise DataError(f"Class {classes[mixed[0]]} is Old for some samples and New for others.")
    return Matching(
        classes=classes,
        clusters=clusters,
        counts=counts,
        is_old=n_old > 0,
        cluster_of_class=_best_pairing(counts, n_old > 0),
    )


def _best_pairing(counts: NDArray[np.int64], is_old: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The cluster of each class, (C,), -1 for none. counts: (C, K), is_old: (C,)."""
    # One sample more outweighs all Old samples together, so these only decide between equals. All values are
    # whole numbers below 2**53 for up to 90 million samples, hence exact.
    worth = counts * (1.0 + counts[is_old].sum() + is_old[:, None])
    rows, columns = linear_sum_assignment(worth, maximize=True)
    cluster_of_class = np.full(len(counts), -1, dtype=np.int64)
    cluster_of_class[rows] = np.where(counts[rows, columns] > 0, columns, -1)
    return cluster_of_class


def _encode(values: ArrayLike, name: str) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Labels (N,) as indices (N,) into the sorted labels that occur."""
    labels = np.asarray(values)
    if labels.dtype == object:
        labels = _without_objects(labels)
    if labels.ndim != 1 or (labels.size and labels.dtype.kind not in "iuU"):
        raise DataError(
            f"{name} must be one whole number or string a sample; got {labels.dtype} of shape {labels.shape}."
        )
    if labels.size and labels.dtype.kind in "iu":
        low, high = int(labels.min()), int(labels.max())
        if high - low < 65_536 + 4 * labels.size and high < 2**63:
            # A table of the whole range is many times faster than the sort of np.unique.
            offsets = labels.astype(np.int64, copy=False) - low
            occurs = np.bincount(offsets) > 0
            found = np.flatnonzero(occurs)
            return (offsets if occurs.all() else (np.cumsum(occurs) - 1)[offsets]), found + low
    found, codes = np.unique(labels, return_inverse=True)
    return codes.astype(np.int64, copy=False), found


def _without_objects(labels: NDArray[Any]) -> NDArray[Any]:
    """Columns of a table often come as Python objects; returned as they are unless all of one usable kind."""
    kinds = {type(label) for label in labels.ravel()}
    if all(issubclass(kind, str) for kind in kinds):
        return labels.astype(str)
    if all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        return labels.astype(np.int64)
    return labels
