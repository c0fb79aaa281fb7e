"""How many samples are right under the one best matching, and two scores that need no matching."""

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
    """Shares between 0 and 1. Those of Old (New) classes are nan if no sample is of an Old (New) class."""

    all: float
    old: float
    new: float
    all_balanced: float
    """Mean of the classes' own accuracies: each class counts the same, however many samples it has."""
    old_balanced: float
    new_balanced: float

    @classmethod
    def of(cls, matching: Matching) -> Accuracy:
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
    """Match clusters with classes once over all given samples, then read off All, Old and New.

    Give all unlabelled samples in one call. A mean over parts (processes, batches), each with a matching of
    its own, is far too high. There may be more or fewer clusters than classes: samples in a cluster without a
    class are wrong, and so are all samples of a class without a cluster.

    y_true, y_pred: (N,) whole numbers or strings; is_old: (N,) bool. See `match`.
    """
    return Accuracy.of(match(y_true, y_pred, is_old))


def nmi(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Normalised mutual information of two labellings (N,), between 0 and 1."""
    from sklearn.metrics import normalized_mutual_info_score

    return _quietly(normalized_mutual_info_score, y_true, y_pred)


def ari(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Adjusted Rand index of two labellings (N,): 1 for the same, around 0 for chance, at least -0.5."""
    from sklearn.metrics import adjusted_rand_score

    return _quietly(adjusted_rand_score, y_true, y_pred)


def _quietly(score: Callable[..., float], y_true: ArrayLike, y_pred: ArrayLike) -> float:
    with warnings.catch_warnings():
        # scikit-learn 1.7 warns of many small clusters as if they were a classifier's targets.
        warnings.filterwarnings("ignore", message="The number of unique classes", category=UserWarning)
        return float(score(np.asarray(y_true), np.asarray(y_pred)))
