"""Whether confidences are as high as the accuracy that they promise."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from newkind.errors import ConfigError, DataError

__all__ = ["calibration_error"]


def calibration_error(confidence: ArrayLike, correct: ArrayLike, *, n_bins: int = 15) -> float:
    """Expected calibration error (ECE) with bins of equal width.

    The mean over samples of the difference between the accuracy and the mean confidence of the sample's bin (Guo et al., On
    Calibration of Modern Neural Networks, 2017).

    Parameters
    ----------
    confidence : array-like of float, shape (n_samples,)
        Confidence of each prediction, between 0 and 1.
    correct : array-like of bool, shape (n_samples,)
        Whether each prediction is correct.
    n_bins : int, default=15
        Number of bins. A bin includes its upper bound.

    Returns
    -------
    float
        The error between 0 (calibrated) and 1.

    Raises
    ------
    DataError
        `scores-shape` if the shapes differ or there is no sample; `confidence-range` for values outside [0, 1].
    ConfigError
        `n-bins-range` if `n_bins` is below 1.

    Examples
    --------
    Ten predictions with confidence 0.9, of which 7 are correct:

    >>> round(calibration_error([0.9] * 10, [True] * 7 + [False] * 3), 3)
    0.2
    """
    p, right = np.asarray(confidence, dtype=np.float64), np.asarray(correct)
    if p.ndim != 1 or p.shape != right.shape or not len(p) or right.dtype != np.bool_:
        raise DataError(
            f"`confidence` and `correct` must have one number and one bool per sample; got shape {p.shape} and "
            f"{right.dtype} of shape {right.shape}.",
            code="scores-shape",
        )
    if not ((p >= 0) & (p <= 1)).all():
        raise DataError("`confidence` must be between 0 and 1 for each sample.", code="confidence-range")
    if n_bins < 1:
        raise ConfigError(f"`n_bins` must be at least 1; got {n_bins}.", code="n-bins-range", n_bins=n_bins)
    bins = np.clip(np.ceil(p * n_bins).astype(np.int64) - 1, 0, n_bins - 1)
    gaps = np.bincount(bins, weights=p, minlength=n_bins) - np.bincount(bins, weights=right, minlength=n_bins)
    return float(np.abs(gaps).sum() / len(p))
