"""Which categories of one answer correspond to which of another one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

__all__ = ["corresponding_categories"]


def corresponding_categories(
    overlap: NDArray[np.int64], names: list[str | None], other_names: list[str | None]
) -> NDArray[np.int64]:
    """Match the categories of two answers about the same images.

    Known categories correspond by name. New ones have arbitrary names: they are matched so that as many images as possible
    stay together.

    Parameters
    ----------
    overlap : ndarray of int64, shape (K, K')
        Number of images in a category of the one and of the other answer.
    names, other_names : list of str or None
        Names of the known categories of each answer; None for a new one.

    Returns
    -------
    ndarray of int64, shape (K,)
        Index of the corresponding category in the other answer, or -1.
    """
    numbers = {name: j for j, name in enumerate(other_names) if name is not None}
    partner = np.array([-1 if name is None else numbers.get(name, -1) for name in names], dtype=np.int64)
    rows = np.flatnonzero(partner < 0)
    columns = np.setdiff1d(np.arange(len(other_names)), partner)
    best_rows, best_columns = linear_sum_assignment(-overlap[np.ix_(rows, columns)])
    for i, j in zip(rows[best_rows], columns[best_columns], strict=True):
        if overlap[i, j]:
            partner[i] = j
    return partner
