"""Effort of a discovery: how many views of an image are averaged, and whether there is training.

All numbers of the three efforts are in `EFFORTS`. This module imports neither torch nor NumPy, as `config`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from newkind.config import EffortName

__all__ = ["EFFORTS", "PUBLISHED_EPOCHS", "PUBLISHED_VIEWS", "Amount", "Effort"]

PUBLISHED_EPOCHS = 200
PUBLISHED_VIEWS = 8
"""Epochs, and random views per image, of methods that cannot do without training."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """What an effort means for a method that can do without training.

    Parameters
    ----------
    averaged : int
        Number of random views per image whose features are averaged with the evaluation view.
    views : int
        Number of random views per image that are stored. A training draws from all of them.
    slow : int, optional
        As `averaged` and `views`, where a view takes long. Default: the same.
    epochs : int
        Number of epochs; 0 for no training.
    """

    averaged: int
    views: int
    epochs: int
    slow: int | None = None

    def where_views_are_slow(self) -> Effort:
        """The effort on a CPU that computes in fp32."""
        return self if self.slow is None else replace(self, averaged=self.slow, views=self.slow)


EFFORTS: dict[EffortName, Effort] = {
    "quick": Effort(averaged=0, views=0, epochs=0),
    "standard": Effort(averaged=4, views=4, epochs=0, slow=2),
    "thorough": Effort(averaged=4, views=4, epochs=40),
}
"""Two random views were better than one view by 1.4 points of accuracy by name on average over nine cases of three sets, and a mirror image was no
better than a random view. Four are 1.2 points better than two on one set, and equal to them on average, so that they are worth their time
where it is short (benchmarks/results/effort.md)."""


@dataclass(frozen=True, kw_only=True)
class Amount:
    """What a user asks for of effort; None for the default.

    Parameters
    ----------
    effort : {"quick", "standard", "thorough"}, optional
        Default: standard, or thorough with epochs or online, or for a method that needs training.
    epochs : int, optional
        Number of epochs; 0 for no training. With more than 0, the effort is thorough. Default: that of the effort.
    views : int, optional
        Number of random views per image. Default: that of the effort.
    """

    effort: EffortName | None = None
    epochs: int | None = None
    views: int | None = None
