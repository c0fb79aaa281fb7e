"""How well a novelty score separates new classes from known ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from newkind.errors import DataError

__all__ = ["novelty_auroc"]


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
    old, score = np.asarray(is_old), np.asarray(novelty, dtype=np.float64)
    if old.ndim != 1 or old.shape != score.shape or not len(old) or old.dtype != np.bool_:
        raise DataError(
            f"`is_old` and `novelty` must have one bool and one number per sample; got {old.dtype} of shape {old.shape} and "
            f"shape {score.shape}.",
            code="scores-shape",
        )
    if not np.isfinite(score).all():
        raise DataError("`novelty` contains NaN or infinity.", code="scores-not-finite")
    if old.all() or not old.any():
        return float("nan")
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(~old, score))
