"""Whitening by the covariance within labelled classes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from newkind.errors import ConfigError, DataError

__all__ = ["within_class_whitening"]

ROWS, PART = 65_536, 16_384
"""Largest number of samples that are converted to float64 at once, and how many of more are converted at a time."""
SMALLEST_VARIANCE = float(np.finfo(np.float32).tiny)
"""Classes whose mean variance is not above this have no spread to normalise."""


def within_class_whitening(
    x: ArrayLike, labels: ArrayLike, *, shrinkage: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Find the linear map after which the pooled covariance within labelled classes is about the identity.

    Labels show in which directions samples of one class differ. After the map these directions are short, for new
    classes as well as for known ones.

    Parameters
    ----------
    x : array-like of shape (n_samples, n_features)
        Features of labelled samples.
    labels : array-like of int, shape (n_samples,)
        Class of each sample.
    shrinkage : float
        Weight of a multiple of the identity in the covariance, between 0 and 1, as in
        `sklearn.covariance.shrunk_covariance`. It keeps directions with few samples from being scaled up too far; with 1
        all directions are scaled alike.

    Returns
    -------
    center : ndarray of shape (n_features,)
        Mean of all samples.
    matrix : ndarray of shape (n_features, n_features)
        The map: `(x - center) @ matrix` is whitened. It is the identity if no class has any spread.

    Raises
    ------
    DataError
        `whitening-shape` if the shapes do not fit or there is no sample.
    ConfigError
        `shrinkage-range` if `shrinkage` is not between 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([[0.0, 0], [4, 0], [0, 1], [4, 1], [10, 10], [14, 10], [10, 11], [14, 11]])
    >>> center, matrix = within_class_whitening(x, [0, 0, 0, 0, 1, 1, 1, 1], shrinkage=0.0)
    >>> z = (x - center) @ matrix
    >>> np.ptp(z[:4], axis=0).round(3).tolist()  # class 0 was 4 wide and 1 high
    [1.732, 1.732]
    """
    samples, given = np.asarray(x), np.asarray(labels)
    if samples.ndim != 2 or given.shape != samples.shape[:1] or 0 in samples.shape:
        raise DataError(
            f"Whitening needs features (n, d) and n labels; got shapes {samples.shape} and {given.shape}.",
            code="whitening-shape",
        )
    if not 0 <= shrinkage <= 1:
        raise ConfigError(f"`shrinkage` must be between 0 and 1; got {shrinkage}.", code="shrinkage-range")
    classes, y = np.unique(given, return_inverse=True)
    center, covariance = _center_and_covariance(samples, y, len(classes))
    if np.trace(covariance) / len(covariance) <= SMALLEST_VARIANCE:
        return center, np.eye(len(covariance))
    values, vectors = np.linalg.eigh(_shrunk(covariance, shrinkage))
    return center, vectors / np.sqrt(values)


def _center_and_covariance(
    samples: NDArray[np.floating], y: NDArray[np.int64], n_classes: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean (d,) of all samples (n, d), and their covariance (d, d) within the classes y (n,)."""
    dim = samples.shape[1]
    means, total, scatter = np.zeros((n_classes, dim)), np.zeros(dim), np.zeros((dim, dim))
    for own, part in _parts(samples, y):
        np.add.at(means, own, part)
        total += part.sum(axis=0)
    means /= np.bincount(y)[:, None]
    for own, part in _parts(samples, y):
        part -= means[own]
        scatter += part.T @ part
    return total / len(samples), scatter / max(len(samples) - n_classes, 1)


def _parts(
    samples: NDArray[np.floating], classes: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Classes (b,) and copies in float64 (b, d) of a part of the samples at a time."""
    size = ROWS if len(samples) <= ROWS else PART
    for start in range(0, len(samples), size):
        part = slice(start, start + size)
        yield classes[part], samples[part].astype(np.float64)


def _shrunk(covariance: NDArray[np.float64], shrinkage: float) -> NDArray[np.float64]:
    """Covariance (d, d) with a share of a multiple of the identity."""
    from sklearn.covariance import shrunk_covariance  # slow to import

    found: NDArray[np.float64] = shrunk_covariance(covariance, shrinkage)
    return found
