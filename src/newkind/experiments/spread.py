"""Mean and standard deviation over seeds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, stdev

__all__ = ["Spread", "spread_of"]


@dataclass(frozen=True)
class Spread:
    """Of one number over several runs."""

    mean: float
    std: float | None
    """The sample standard deviation (n - 1); None for a single run."""
    values: tuple[float, ...]

    def __str__(self) -> str:
        return self.shown()

    def shown(self, digits: int = 1) -> str:
        """60.3 ± 0.4, or 60.3 for a single run."""
        mean = f"{self.mean:.{digits}f}"
        return mean if self.std is None else f"{mean} ± {self.std:.{digits}f}"


def spread_of(values: Iterable[float | None], *, times: float = 1.0) -> Spread | None:
    """Of those values that exist, each multiplied by `times` (100 for percent); None if there is none."""
    known = tuple(times * value for value in values if value is not None)
    if not known:
        return None
    return Spread(fmean(known), stdev(known) if len(known) > 1 else None, known)
