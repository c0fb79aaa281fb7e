"""The confusion matrix of classes and clusters, and their best one-to-one matching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

from newkind.errors import DataError

__all__ = ["Matching", "best_pairing", "match"]

MAX_CELLS = 200_000_000
"""Largest size of the confusion matrix (1.6 GB)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Matching:
    """Confusion matrix of C classes and K clusters, and the cluster that each class is paired with.

    Classes and clusters are those that occur among the scored samples, each sorted by label.

    Parameters
    ----------
    classes : ndarray of shape (C,)
        Labels of the classes, as given.
    clusters : ndarray of shape (K,)
        Labels of the clusters, as given.
    counts : ndarray of int64, shape (C, K)
        Number of samples of each class in each cluster.
    is_old : ndarray of bool, shape (C,)
        Whether each class is an Old (known) one.
    cluster_of_class : ndarray of int64, shape (C,)
        Index into `clusters` of the cluster that each class is paired with, or -1 for none.
    """

    classes: NDArray[Any]
    clusters: NDArray[Any]
    counts: NDArray[np.int64]
    is_old: NDArray[np.bool_]
    cluster_of_class: NDArray[np.int64]

    @property
    def n_true(self) -> NDArray[np.int64]:
        """Number of samples of each class, (C,)."""
        sizes: NDArray[np.int64] = self.counts.sum(axis=1)
        return sizes

    @property
    def n_predicted(self) -> NDArray[np.int64]:
        """Number of samples in each cluster, (K,)."""
        sizes: NDArray[np.int64] = self.counts.sum(axis=0)
        return sizes

    @property
    def is_matched(self) -> NDArray[np.bool_]:
        """Whether each class has a cluster, (C,)."""
        return self.cluster_of_class >= 0

    @property
    def n_correct(self) -> NDArray[np.int64]:
        """Number of samples of each class in its own cluster, (C,)."""
        own = self.counts[np.arange(len(self.classes)), self.cluster_of_class]
        return np.where(self.is_matched, own, 0)

    @property
    def cluster_is_old(self) -> NDArray[np.bool_]:
        """Whether each cluster is paired with an Old class, (K,). A cluster that is paired with no class is New."""
        is_old = np.zeros(len(self.clusters), dtype=bool)
        is_old[self.cluster_of_class[self.is_old & self.is_matched]] = True
        return is_old

    def samples(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the class and the cluster of every sample, in the order of the matrix.

        Returns
        -------
        classes : ndarray of int64, shape (n_samples,)
            Indices into `classes`.
        clusters : ndarray of int64, shape (n_samples,)
            Indices into `clusters`.
        """
        rows, columns = np.nonzero(self.counts)
        repeats = self.counts[rows, columns]
        return np.repeat(rows, repeats), np.repeat(columns, repeats)

    def is_correct(self, y_true: ArrayLike, y_pred: ArrayLike) -> NDArray[np.bool_]:
        """Whether each sample is in the cluster that its class is paired with.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n_samples,)
            Classes and clusters that the matching was made from.

        Returns
        -------
        ndarray of bool, shape (n_samples,)
        """
        rows = np.searchsorted(self.classes, np.asarray(y_true).astype(self.classes.dtype))
        columns = np.searchsorted(self.clusters, np.asarray(y_pred).astype(self.clusters.dtype))
        found: NDArray[np.bool_] = self.cluster_of_class[rows] == columns
        return found


def match(y_true: ArrayLike, y_pred: ArrayLike, is_old: ArrayLike) -> Matching:
    """Pair clusters with classes, one to one, so that as many samples as possible are correct.

    Among equally good pairings one with the most correct Old samples is used, so that Old and New accuracy do not depend on
    how clusters are numbered. A cluster is never paired with a class of which it has no sample.

    Parameters
    ----------
    y_true : array-like of int or str, shape (n_samples,)
        True classes; integers must be at least 0.
    y_pred : array-like of int or str, shape (n_samples,)
        Predicted clusters; their labels need not be related to those of `y_true`.
    is_old : array-like of bool, shape (n_samples,)
        Whether the true class of each sample is an Old (known) one.

    Returns
    -------
    Matching
        The confusion matrix with the best pairing.

    Raises
    ------
    DataError
        `scores-shape`, `no-samples`, `is-old-dtype`, `labels-dtype`, `unknown-truth` (negative classes), `class-old-and-new`,
        or `too-many-labels` if the confusion matrix would not fit into memory.

    Examples
    --------
    >>> found = match(["owl", "owl", "wren"], [3, 3, 8], [True, True, False])
    >>> found.counts.tolist()
    [[2, 0], [0, 1]]
    >>> found.cluster_of_class.tolist()
    [0, 1]
    """
    true, classes = _encode(y_true, "y_true")
    pred, clusters = _encode(y_pred, "y_pred")
    old = np.asarray(is_old)
    _check(true, pred, old, classes)
    shape = len(classes), len(clusters)
    _check_size(*shape)
    counts = np.bincount(true * shape[1] + pred, minlength=shape[0] * shape[1]).reshape(shape)
    n_old = np.bincount(true[old], minlength=shape[0])  # (C,)
    mixed = np.flatnonzero((n_old > 0) & (n_old < counts.sum(axis=1)))
    if mixed.size:
        label = classes[mixed[0]]
        raise DataError(
            f"Class {label} is Old for some samples and New for others.", code="class-old-and-new", label=label.item()
        )
    return Matching(
        classes=classes,
        clusters=clusters,
        counts=counts,
        is_old=n_old > 0,
        cluster_of_class=best_pairing(counts, n_old > 0),
    )


def _check(true: NDArray[np.int64], pred: NDArray[np.int64], old: NDArray[Any], classes: NDArray[Any]) -> None:
    """Raise for encoded labels (N,) or flags that cannot be used."""
    if not (old.ndim == 1 and len(true) == len(pred) == len(old)):
        raise DataError(
            f"`y_true`, `y_pred` and `is_old` must have one entry per sample; got {len(true)} and {len(pred)} entries and "
            f"`is_old` of shape {old.shape}.",
            code="scores-shape",
        )
    if not len(true):
        raise DataError("There is no sample to score.", code="no-samples")
    if old.dtype != np.bool_:
        raise DataError(f"`is_old` must be bool; got {old.dtype}.", code="is-old-dtype")
    if classes.dtype.kind == "i" and classes[0] < 0:
        raise DataError(
            f"`y_true` has negative entries (such as {classes[0]}), which mean that the true class is unknown.",
            fix="Leave these samples out.",
            code="unknown-truth",
        )


def _check_size(n_classes: int, n_clusters: int) -> None:
    """Raise for a confusion matrix that would not fit into memory."""
    if n_classes * n_clusters > MAX_CELLS:
        raise DataError(
            f"{n_classes} classes and {n_clusters} clusters are too many to match.",
            fix="Check that `y_true` and `y_pred` are classes, not sample numbers.",
            code="too-many-labels",
            n_classes=n_classes,
            n_clusters=n_clusters,
        )


def best_pairing(counts: NDArray[np.int64], is_old: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """Pair classes with clusters, one to one, so that the paired counts are as many as possible.

    Parameters
    ----------
    counts : ndarray of int64, shape (C, K)
        Number of samples of each class in each cluster.
    is_old : ndarray of bool, shape (C,), optional
        Among equally good pairings, prefer one with the most samples of these classes. Default: no preference.

    Returns
    -------
    ndarray of int64, shape (C,)
        The cluster of each class, or -1 for none.
    """
    preferred = np.zeros(len(counts), dtype=bool) if is_old is None else is_old
    # One sample more outweighs all Old samples together, so these only decide between equals. All values are integers below
    # 2**53 for up to 90 million samples, hence exact.
    worth = counts * (1.0 + counts[preferred].sum() + preferred[:, None])
    rows, columns = linear_sum_assignment(worth, maximize=True)
    cluster_of_class = np.full(len(counts), -1, dtype=np.int64)
    cluster_of_class[rows] = np.where(counts[rows, columns] > 0, columns, -1)
    return cluster_of_class


def _encode(values: ArrayLike, name: str) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Indices (N,) of labels (N,) into the sorted distinct labels, and those labels."""
    labels = np.asarray(values)
    if labels.dtype == object:
        labels = _without_objects(labels)
    if labels.ndim != 1 or (labels.size and labels.dtype.kind not in "iuU"):
        raise DataError(
            f"`{name}` must be one integer or string per sample; got {labels.dtype} of shape {labels.shape}.",
            code="labels-dtype",
            name=name,
        )
    if labels.size and labels.dtype.kind in "iu":
        low, high = int(labels.min()), int(labels.max())
        if high - low < 65_536 + 4 * labels.size and high < 2**63:
            # A table of the whole range is many times faster than sorting, as np.unique does.
            offsets = labels.astype(np.int64, copy=False) - low
            occurs = np.bincount(offsets) > 0
            found = np.flatnonzero(occurs)
            return (offsets if occurs.all() else (np.cumsum(occurs) - 1)[offsets]), found + low
    found, codes = np.unique(labels, return_inverse=True)
    return codes.astype(np.int64, copy=False), found


def _without_objects(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels of Python objects, such as a column of a table, as strings or integers if all are of one kind."""
    kinds = {type(label) for label in labels.ravel()}
    if all(issubclass(kind, str) for kind in kinds):
        return labels.astype(str)
    if all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        return labels.astype(np.int64)
    return labels
