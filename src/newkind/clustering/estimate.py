"""The estimated number of categories, with its interval."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

__all__ = ["Estimate"]

UNUSABLE_QUALITY = 0.3
"""Below this F1 of held-out classes nothing can be estimated."""
GOOD_QUALITY = 0.5
"""Below this F1 of held-out classes the estimate is rough."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Estimated number of categories, known and new together.

    Parameters
    ----------
    n_categories : int
        The estimate.
    low, high : int
        Bounds of the 90 % interval. The published search has none: both equal the estimate.
    n_known : int
        Number of known classes, which are part of `n_categories`.
    way : {"clusters", "search", "guess", "pairs"}
        How it was found: by clusters in units of held-out known classes ("clusters"), by the published search
        ("search"), or not at all, because there are too few labelled classes or the features do not separate them ("guess"). Files of
        earlier versions also contain "pairs", pairs of samples of held-out classes.
    quality : float
        Score at the estimate: the F1 above chance of held-out classes ("clusters", "guess", "pairs"), or the accuracy on labelled
        samples ("search"); 0 if there are too few labelled classes.
    curve : tuple of (int, float), default=()
        Numbers of categories in ascending order, each with its score. It is empty if there are too few labelled classes.
    known_share : float, default=0.0
        Share of all samples, labelled and unlabelled, that belong to known classes; 0 if it was not estimated.

    Examples
    --------
    >>> Estimate(n_categories=40, low=35, high=46, n_known=20, way="clusters", quality=0.93).sentence()
    'About 40 categories (20 known), 90 % interval 35 to 46. Held-out check: F1 0.93.'
    """

    n_categories: int
    low: int
    high: int
    n_known: int
    way: str
    quality: float
    curve: tuple[tuple[int, float], ...] = ()
    known_share: float = 0.0

    def sentence(self) -> str:
        """Describe the estimate, how it was found, and how reliable it is.

        Returns
        -------
        str
            One to three sentences.
        """
        if self.way == "guess":
            return f"{self._why_guessed()} {self._prior()} Set `n_categories` if you know the number."
        noun = "category" if self.n_categories == 1 else "categories"
        found = f"About {self.n_categories} {noun} ({self.n_known} known)"
        if self.way == "search":
            return f"{found}, by the published search. Accuracy on labelled samples: {100 * self.quality:.1f} %."
        text = f"{found}, 90 % interval {self.low} to {self.high}. Held-out check: F1 {self.quality:.2f}."
        if self.quality < GOOD_QUALITY:
            text += " The features separate the known classes only in part, so this is a rough estimate."
        return text

    def _why_guessed(self) -> str:
        if self.curve:
            return (
                f"The features do not separate the known classes (F1 {self.quality:.2f}), so the number of categories cannot be "
                "estimated."
            )
        return (
            "There are too few labelled images to estimate the number of categories (3 classes with at least 2 images each are "
            "needed)."
        )

    def _prior(self) -> str:
        using = f"Using {self.n_categories}"
        if self.n_categories == 2 * self.n_known:
            using += ", twice the known classes"
        return f"{using}; anything from {self.low} to {self.high} is plausible."

    def disagrees(self, n_categories: int) -> bool:
        """Whether a number of categories is outside of the interval.

        Parameters
        ----------
        n_categories : int
            Number of categories, known and new together.

        Returns
        -------
        bool
            Always False for a guess and for the published search, which have no interval to rely on.
        """
        return self.way not in ("guess", "search") and not self.low <= n_categories <= self.high

    def generous(self) -> int:
        """Return a number of prototypes for methods that leave unused what they do not need.

        Returns
        -------
        int
            The upper bound, but at least 1.25 times the estimate; for a guess, whose interval is very wide, 1.25 times.
        """
        spare = ceil(1.25 * self.n_categories)
        return spare if self.way == "guess" else max(self.high, spare)

    def to_json(self) -> dict[str, Any]:
        """Return all fields as a dictionary.

        Returns
        -------
        dict
            Field names and values.
        """
        return asdict(self)
