"""Geometry of the confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["MatrixLayout", "matrix_layout"]


@dataclass(frozen=True, kw_only=True)
class MatrixLayout:
    """Geometry of a matrix with a title on each axis, in SVG units.

    Parameters
    ----------
    unit, gap : float
        Side of a cell, and the gap between cells that is part of it.
    left, below : float
        Room for names and titles beside and below the matrix.
    width, height : float
        Size of the matrix.
    faintest : float
        Opacity of the smallest share.
    """

    unit: float
    gap: float
    left: float
    below: float
    width: float
    height: float
    faintest: float

    @property
    def total_width(self) -> float:
        """Width with names and title."""
        return self.left + self.width + 8

    @property
    def total_height(self) -> float:
        """Height with names and title."""
        return self.height + self.below

    @property
    def shown_width(self) -> int:
        """Width on a large screen, in pixels."""
        return round(min(1.35 * self.total_width, 760))

    def opacity(self, share: float) -> float:
        """Opacity of a cell."""
        return round(min(self.faintest + (1 - self.faintest) * share, 1.0), 2)


def matrix_layout(rows: Sequence[str], columns: Sequence[str], *, is_named: bool) -> MatrixLayout:
    """Lay out a matrix with a title on each axis.

    Parameters
    ----------
    rows, columns : sequence of str
        Names of rows, cut to 20 characters, and of columns, which are tilted and cut to 16.
    is_named : bool
        Whether there is room for names.

    Returns
    -------
    MatrixLayout
    """
    unit = 22.0 if is_named else max(700 / len(columns), 3.0)
    longest_row = min(max(map(len, rows)), 20) if is_named else 0
    longest_column = min(max(map(len, columns)), 16) if is_named else 0
    return MatrixLayout(
        unit=unit,
        gap=1.0 if is_named else 0.0,
        left=round(34 + 6.8 * longest_row, 1),
        below=36.0 + 6 * longest_column,
        width=unit * len(columns),
        height=unit * len(rows),
        faintest=0.12 if is_named else 0.3,
    )
