"""How well a novelty score separates new classes from known ones, and at which threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from newkind.errors import DataError

__all__ = ["NoveltyThreshold", "novelty_auroc", "novelty_threshold"]


@dataclass(frozen=True)
class NoveltyThreshold:
    """A threshold between known and new, with its error rates.

    Parameters
    ----------
    threshold : float
        Samples with a novelty of at least this are called new.
    false_known : float
        Share of samples of new classes that are called known.
    false_new : float
        Share of samples of known classes that are called new.
    """

    threshold: float
    false_known: float
    false_new: float


def novelty_auroc(is_old: ArrayLike, novelty: ArrayLike) -> float:
    """Area under the ROC curve of a novelty score.

    It is the probability that a random sample of a new class has a higher score than a random sample of a known class, with
    ties counted half: 1 if the score separates the two, 0.5 for chance.

    Parameters
    ----------
    is_old : array-like of bool, shape (n_samples,)
        Whether the true class is a known one.
    novelty : array-like of float, shape (n_samples,)
        Novelty score, such as the probability of all new categories together. Higher means new.

    Returns
    -------
    float
        The area, or nan if all samples are of known classes or all of new ones.

    Raises
    ------
    DataError
        `scores-shape` if the shapes differ or there is no sample; `scores-not-finite` for NaN or infinity.

    Examples
    --------
    >>> novelty_auroc([True, True, False, False], [0.1, 0.4, 0.35, 0.8])
    0.75
    """
    old, score = _checked(is_old, novelty)
    if old.all() or not old.any():
        return float("nan")
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(~old, score))


def novelty_threshold(is_old: ArrayLike, novelty: ArrayLike) -> NoveltyThreshold | None:
    """Threshold of a probability of novelty at which the two error rates have the smallest sum.

    Parameters
    ----------
    is_old : array-like of bool, shape (n_samples,)
        Whether the true class is a known one.
    novelty : array-like of float, shape (n_samples,)
        Novelty of each sample, between 0 and 1.

    Returns
    -------
    NoveltyThreshold or None
        One of 0.01, 0.02, ..., 0.99, of equally good ones the middle one; None if all samples are of known classes or all of new ones.

    Raises
    ------
    DataError
        As `novelty_auroc`.

    Examples
    --------
    >>> novelty_threshold([True, True, True, False, False], [0.1, 0.2, 0.7, 0.6, 0.9])
    NoveltyThreshold(threshold=0.4, false_known=0.0, false_new=0.3333333333333333)
    """
    old, score = _checked(is_old, novelty)
    if old.all() or not old.any():
        return None
    tried = np.arange(1, 100) / 100
    false_known = (score[~old] < tried[:, None]).mean(axis=1)
    false_new = (score[old] >= tried[:, None]).mean(axis=1)
    total = false_known + false_new
    best = np.flatnonzero(total <= total.min() + 1e-12)
    middle = best[(len(best) - 1) // 2]
    return NoveltyThreshold(float(tried[middle]), float(false_known[middle]), float(false_new[middle]))


def _checked(is_old: ArrayLike, novelty: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """One bool and one finite number per sample."""
    old, score = np.asarray(is_old), np.asarray(novelty, dtype=np.float64)
    if old.ndim != 1 or old.shape != score.shape or not len(old) or old.dtype != np.bool_:
        raise DataError(
            f"`is_old` and `novelty` must have one bool and one number per sample; got {old.dtype} of shape {old.shape} and "
            f"shape {score.shape}.",
            code="scores-shape",
        )
    if not np.isfinite(score).all():
        raise DataError("`novelty` contains NaN or infinity.", code="scores-not-finite")
    return old, score
