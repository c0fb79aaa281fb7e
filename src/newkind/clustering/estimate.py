"""The estimated number of categories, with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import ceil
from statistics import median
from typing import Any

__all__ = ["Estimate", "median_estimate"]

RELIABLE_QUALITY = 0.3
"""Below this F1 of held-out classes the estimate is called a rough guess."""


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
    way : {"pairs", "search", "guess"}
        How it was found: by pairs of held-out known classes, by the published search, or as a guess because there are too
        few labelled classes.
    quality : float
        Score at the estimate: the F1 above chance of pairs of held-out classes ("pairs"), or the accuracy on labelled
        samples ("search"); 0 for a guess.
    curve : tuple of (int, float), default=()
        Numbers of categories in ascending order, each with its score.

    Examples
    --------
    >>> Estimate(n_categories=40, low=35, high=46, n_known=20, way="pairs", quality=0.93).sentence()
    'About 40 categories (20 known), 90 % interval 35 to 46. Held-out check: F1 0.93.'
    """

    n_categories: int
    low: int
    high: int
    n_known: int
    way: str
    quality: float
    curve: tuple[tuple[int, float], ...] = ()

    def sentence(self) -> str:
        """Describe the estimate, how it was found, and how reliable it is.

        Returns
        -------
        str
            One to three sentences.
        """
        if self.way == "guess":
            return (
                "There are too few labelled images to estimate the number of categories (3 classes with at least 2 images "
                f"each are needed). Using {self.n_categories}; set `n_categories` if you know the number."
            )
        noun = "category" if self.n_categories == 1 else "categories"
        found = f"About {self.n_categories} {noun} ({self.n_known} known)"
        if self.way == "search":
            return f"{found}, by the published search. Accuracy on labelled samples: {100 * self.quality:.1f} %."
        text = f"{found}, 90 % interval {self.low} to {self.high}. Held-out check: F1 {self.quality:.2f}."
        if self.quality < RELIABLE_QUALITY:
            text += " The features hardly separate the known classes, so this is a rough guess."
        return text

    def generous(self) -> int:
        """Return a number of prototypes for methods that leave unused what they do not need.

        Returns
        -------
        int
            The upper bound, but at least 1.25 times the estimate.
        """
        return max(self.high, ceil(1.25 * self.n_categories))

    def to_json(self) -> dict[str, Any]:
        """Return all fields as a dictionary.

        Returns
        -------
        dict
            Field names and values.
        """
        return asdict(self)


def median_estimate(estimates: Sequence[Estimate]) -> Estimate:
    """Return the median of several estimates of the same images, such as one per view.

    Parameters
    ----------
    estimates : sequence of Estimate
        At least one estimate.

    Returns
    -------
    Estimate
        The estimate in the middle (the lower one of two), with the medians of all lower and all upper bounds.

    Examples
    --------
    >>> fields = {"n_known": 5, "way": "pairs", "quality": 0.8}
    >>> several = [Estimate(n_categories=k, low=k - 2, high=k + 2, **fields) for k in (12, 9, 10)]
    >>> found = median_estimate(several)
    >>> found.n_categories, found.low, found.high
    (10, 8, 12)
    """
    middle = sorted(estimates, key=lambda estimate: estimate.n_categories)[(len(estimates) - 1) // 2]
    low, high = (int(median(getattr(estimate, name) for estimate in estimates)) for name in ("low", "high"))
    return replace(middle, low=min(low, middle.n_categories), high=max(high, middle.n_categories))
