"""The range of feature values that float32 can compute with: their squares neither overflow nor vanish."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind.errors import DataError

__all__ = ["LARGEST", "SMALLEST", "check_scale", "wrong_scale"]

LARGEST = 1e12
"""Sums of squares of larger features could exceed the range of float32."""
SMALLEST = 1e-12
"""Smallest magnitude of a row that is not zero. Squares of 1e-20 are zero in float32, and k-means then finds one cluster."""


def check_scale(rows: NDArray[np.floating[Any]], first: int = 0) -> None:
    """Raise DataError unless every row (n, d) is finite, and zero or of a magnitude that float32 can compute with.

    Parameters
    ----------
    rows : ndarray of float, shape (n, d)
        Rows of features.
    first : int, default=0
        Number of the first row, for the message.

    Raises
    ------
    DataError
        With the code `not-finite` or `feature-scale`, and the fact `row`.
    """
    with np.errstate(invalid="ignore"):
        largest = np.maximum(rows.max(axis=1), -rows.min(axis=1)).astype(np.float64)  # (n,); NaN and infinity stay
        is_fine = (largest == 0) | ((largest >= SMALLEST) & (largest < LARGEST))
    if is_fine.all():
        return
    i = int(is_fine.argmin())
    if not np.isfinite(rows[i]).all():
        raise DataError(
            f"Row {first + i} of the features has NaN or infinite values.",
            fix="Remove or correct that row.",
            code="not-finite",
            row=first + i,
        )
    raise wrong_scale(f"Row {first + i} of the features has a magnitude of {largest[i]:.1e}.", row=first + i)


def wrong_scale(what: str, **facts: Any) -> DataError:
    """Error for features that are too large or too small to compute with."""
    return DataError(
        f"{what} Magnitudes from {SMALLEST:.0e} to {LARGEST:.0e} can be used.",
        fix="Multiply all features by the same number.",
        code="feature-scale",
        **facts,
    )
