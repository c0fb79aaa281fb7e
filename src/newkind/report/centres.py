"""Centres of categories in feature space, and how typical an image is of its category."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["category_centres", "typicality", "unit_rows"]

CHUNK = 8192  # Rows of features that are read at once.


def category_centres(
    features: NDArray[np.float16], category: NDArray[np.int32], n_categories: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Compute the centres of categories, relative to the mean of all images.

    Parameters
    ----------
    features : ndarray of float16, shape (n, d)
        Features; scaled to length 1 first. May be larger than memory.
    category : ndarray of int32, shape (n,)
        Category of each image.
    n_categories : int
        Number of categories K.

    Returns
    -------
    centres : ndarray of float32, shape (K, d)
        Centres of length 1; zero for a category without images.
    mean : ndarray of float32, shape (d,)
        Mean of all images.
    """
    dim = features.shape[1]
    total = np.zeros(dim)
    sums = np.zeros((n_categories, dim))
    counts = np.bincount(category, minlength=n_categories)
    for start in range(0, len(features), CHUNK):
        rows = unit_rows(features[start : start + CHUNK])
        total += rows.sum(axis=0)
        np.add.at(sums, category[start : start + CHUNK], rows)
    mean = total / max(len(features), 1)
    centres = sums / np.maximum(counts, 1)[:, None] - np.where(counts > 0, 1.0, 0.0)[:, None] * mean
    return unit_rows(centres), mean.astype(np.float32)


def typicality(
    features: NDArray[np.float16],
    category: NDArray[np.int32],
    centres: NDArray[np.float32],
    mean: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Compute the cosine of each image's feature, relative to the mean, with the centre of its category.

    Parameters
    ----------
    features : ndarray of float16, shape (n, d)
        Features of the images.
    category : ndarray of int32, shape (n,)
        Category of each image.
    centres : ndarray of float32, shape (K, d)
        Centres of the categories, from `category_centres`.
    mean : ndarray of float32, shape (d,)
        Mean of all images, from `category_centres`.

    Returns
    -------
    ndarray of float32, shape (n,)
    """
    found = np.empty(len(features), dtype=np.float32)
    for start in range(0, len(features), CHUNK):
        rows = unit_rows(unit_rows(features[start : start + CHUNK]) - mean)
        found[start : start + CHUNK] = (rows * centres[category[start : start + CHUNK]]).sum(axis=1)
    return found


def unit_rows(rows: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """Scale rows to length 1; values that are not finite become 0.

    Parameters
    ----------
    rows : ndarray of float, shape (n, d)
        Rows of any precision.

    Returns
    -------
    ndarray of float32, shape (n, d)
    """
    clean = np.nan_to_num(np.asarray(rows, dtype=np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    unit: NDArray[np.float32] = clean / np.maximum(np.linalg.norm(clean, axis=1, keepdims=True), 1e-12)
    return unit
