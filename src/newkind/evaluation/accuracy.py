"""Accuracy under the best matching, and two scores that need no matching."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from newkind.evaluation.matching import Matching, match

__all__ = ["Accuracy", "accuracy", "ari", "nmi"]


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """Fractions of correct samples, between 0 and 1.

    Parameters
    ----------
    all : float
        Fraction of all samples.
    old, new : float
        Fraction of the samples of Old (known) or New classes; nan if there are none.
    all_balanced : float
        Mean of the accuracies of all classes: each class counts the same, however many samples it has.
    old_balanced, new_balanced : float
        Mean of the accuracies of Old or New classes; nan if there are none.
    """

    all: float
    old: float
    new: float
    all_balanced: float
    old_balanced: float
    new_balanced: float

    @classmethod
    def of(cls, matching: Matching) -> Accuracy:
        """Compute the accuracy under a matching.

        Parameters
        ----------
        matching : Matching
            Counts and pairing, from `match`.

        Returns
        -------
        Accuracy
            All fractions.
        """
        n_correct, n_true, is_old = matching.n_correct, matching.n_true, matching.is_old

        def share(of_classes: NDArray[np.bool_]) -> float:
            return float(n_correct[of_classes].sum() / n_true[of_classes].sum()) if of_classes.any() else float("nan")

        def mean(of_classes: NDArray[np.bool_]) -> float:
            return float((n_correct / n_true)[of_classes].mean()) if of_classes.any() else float("nan")

        every = np.ones_like(is_old)
        return cls(
            all=share(every),
            old=share(is_old),
            new=share(~is_old),
            all_balanced=mean(every),
            old_balanced=mean(is_old),
            new_balanced=mean(~is_old),
        )


def accuracy(y_true: ArrayLike, y_pred: ArrayLike, is_old: ArrayLike) -> Accuracy:
    """Clustering accuracy under one optimal matching of clusters and classes.

    Pass all unlabelled samples in one call. A mean over parts (processes, batches), each with its own matching, is far too
    high. There may be more or fewer clusters than classes: samples in a cluster without a class are wrong, and so are all
    samples of a class without a cluster.

    Parameters
    ----------
    y_true : array-like of int or str, shape (n_samples,)
        True classes of the unlabelled samples.
    y_pred : array-like of int or str, shape (n_samples,)
        Predicted clusters; their labels need not be related to those of `y_true`.
    is_old : array-like of bool, shape (n_samples,)
        Whether the true class is one of the known classes.

    Returns
    -------
    Accuracy
        Fractions `all`, `old` and `new`, and their means over classes.

    Raises
    ------
    DataError
        As for `match`.

    Examples
    --------
    >>> accuracy([0, 0, 1, 1], [5, 5, 2, 5], [True, True, False, False])
    Accuracy(all=0.75, old=1.0, new=0.5, all_balanced=0.75, old_balanced=1.0, new_balanced=0.5)
    """
    return Accuracy.of(match(y_true, y_pred, is_old))


def nmi(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Normalised mutual information of two labellings.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True classes.
    y_pred : array-like of shape (n_samples,)
        Predicted clusters.

    Returns
    -------
    float
        Between 0 (independent) and 1 (the same partition).

    Examples
    --------
    >>> round(nmi([0, 0, 1, 1], [7, 7, 8, 9]), 3)
    0.8
    """
    from sklearn.metrics import normalized_mutual_info_score

    return _without_warnings(normalized_mutual_info_score, y_true, y_pred)


def ari(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Adjusted Rand index of two labellings.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True classes.
    y_pred : array-like of shape (n_samples,)
        Predicted clusters.

    Returns
    -------
    float
        1 for the same partition, about 0 for chance, at least -0.5.

    Examples
    --------
    >>> round(ari([0, 0, 1, 1], [7, 7, 8, 9]), 3)
    0.571
    """
    from sklearn.metrics import adjusted_rand_score

    return _without_warnings(adjusted_rand_score, y_true, y_pred)


def _without_warnings(score: Callable[..., float], y_true: ArrayLike, y_pred: ArrayLike) -> float:
    with warnings.catch_warnings():
        # scikit-learn 1.7 warns about many small clusters as if they were the targets of a classifier.
        warnings.filterwarnings("ignore", message="The number of unique classes", category=UserWarning)
        return float(score(np.asarray(y_true), np.asarray(y_pred)))
