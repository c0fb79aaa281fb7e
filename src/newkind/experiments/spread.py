"""Mean and standard deviation of a score over several runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, stdev

__all__ = ["Spread", "spread_of"]


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation of one number.

    Parameters
    ----------
    mean : float
        Mean.
    std : float or None
        Sample standard deviation (n - 1); None for a single value.
    values : tuple of float
        The values.
    """

    mean: float
    std: float | None
    values: tuple[float, ...]

    def __str__(self) -> str:
        return self.shown()

    def shown(self, digits: int = 1) -> str:
        """Mean and standard deviation as text.

        Parameters
        ----------
        digits : int, default=1
            Number of decimals.

        Returns
        -------
        str
            Such as "60.3 ± 0.4", or "60.3" for a single value.
        """
        mean = f"{self.mean:.{digits}f}"
        return mean if self.std is None else f"{mean} ± {self.std:.{digits}f}"


def spread_of(values: Iterable[float | None], *, times: float = 1.0) -> Spread | None:
    """Mean and standard deviation of the values that exist.

    Parameters
    ----------
    values : iterable of float or None
        Values; None is left out.
    times : float, default=1.0
        Factor, such as 100 for percent.

    Returns
    -------
    Spread or None
        None if there is no value.

    Examples
    --------
    >>> str(spread_of([0.5, 0.7, None], times=100))
    '60.0 ± 14.1'
    """
    known = tuple(times * value for value in values if value is not None)
    if not known:
        return None
    return Spread(fmean(known), stdev(known) if len(known) > 1 else None, known)
