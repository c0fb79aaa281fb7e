"""Random samples of rows, for fits whose cost would otherwise grow with the number of samples times that of categories."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["most_rows", "sample_rows"]

MOST_ROWS = 200_000
"""Largest number of rows of a fit."""
LEAST_LABELLED = 4
"""Number of labelled rows of each class that a sample has, if there are so many."""


def most_rows(n_categories: int, most_cells: int) -> int:
    """Largest number of rows of a fit whose memberships (rows times categories) are at most `most_cells`.

    Parameters
    ----------
    n_categories : int
        Number of categories.
    most_cells : int
        Largest number of memberships.

    Returns
    -------
    int
        At most `MOST_ROWS`.

    Examples
    --------
    >>> most_rows(1_000, 120_000_000), most_rows(10, 120_000_000)
    (120000, 200000)
    """
    return min(max(most_cells // max(n_categories, 1), 1), MOST_ROWS)


def sample_rows(labels: NDArray[np.int64], most: int, *, seed: int, least_free: int = 0) -> NDArray[np.int64] | None:
    """Draw rows at random, some labelled ones of every class, and some unlabelled ones.

    Parameters
    ----------
    labels : ndarray of int64, shape (n_samples,)
        Class of each sample, or -1 for unlabelled.
    most : int
        Number of rows that are drawn.
    seed : int
        Seed of the sample.
    least_free : int, default=0
        Number of unlabelled rows that the sample has, if there are so many.

    Returns
    -------
    ndarray of int64 or None
        Row numbers in ascending order: `most` of them, and beside these as many as are missing of four labelled rows of each class
        and of `least_free` unlabelled rows. None if there are no more than `most` rows.

    Examples
    --------
    >>> labels = np.repeat([-1, 0, 1], [90, 9, 1])
    >>> rows = sample_rows(labels, 20, seed=0)
    >>> 20 <= len(rows) <= 25, 99 in rows
    (True, True)
    >>> sample_rows(labels, 100, seed=0) is None
    True
    """
    if len(labels) <= most:
        return None
    order = np.random.default_rng((seed, 0x5A3)).permutation(len(labels))
    given = order[labels[order] >= 0]
    given = given[np.argsort(labels[given], kind="stable")]  # by class, at random within each
    classes, first = np.unique(labels[given], return_index=True)
    rank = np.arange(len(given)) - first[np.searchsorted(classes, labels[given])]
    free = order[labels[order] < 0][:least_free]
    return np.union1d(order[:most], np.concatenate([given[rank < LEAST_LABELLED], free]))
