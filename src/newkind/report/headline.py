"""Main numbers of a run: images per kind of category, confidence, and accuracy where the true classes are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from newkind.report.calibration import calibration_text, novelty_text, read_share, sure_text
from newkind.report.contents import KNOWN, NEW, UNSURE, RunContents
from newkind.report.images import benchmark_of
from newkind.report.questionable import n_ambiguous
from newkind.runs.assignments import Category

__all__ = ["CERTAIN", "Headline", "headline_of"]

CERTAIN = 0.8  # An image counts as certain from this confidence on.


@dataclass(frozen=True, kw_only=True)
class Headline:
    """Numbers at the top of the page and in the terminal.

    Parameters
    ----------
    n_images, n_labelled : int
        All images, and the labelled ones among them.
    n_in_known, n_in_new, n_unsure : int
        Unlabelled images in known and in new categories, and those that are not confident enough to count for either.
    n_known : int
        Known categories.
    n_categories, n_used : int
        All categories, and those that contain unlabelled images.
    confidence, median : float
        Mean and median confidence of the unlabelled images.
    certain : float
        Share of unlabelled images with a confidence of at least `CERTAIN`.
    n_ambiguous : int
        Unlabelled images whose second category is nearly as probable as the first.
    accuracy, by_name : dict of str to float, or None
        `all`, `old` and `new` as far as they exist; None if the true classes are unknown. `by_name`: a known class
        counts only under its own name; also None for runs that do not have it.
    protocol : str
        How accuracy is measured.
    new_categories : tuple of Category
        New categories that contain images, sorted by decreasing size.
    new_interval : tuple of (int, int), or None
        90 % interval of the estimated number of new categories; None without an estimate.
    min_confidence : float, default=0.0
        Confidence below which images are unsure.
    n_outliers : int or None
        Images that fit no category; None if the method has no rule for it.
    calibration, novelty : str
        What is known about confidences, and about a threshold of novelty; empty for runs of earlier versions.
    sure : str
        Coverage and accuracy of the images that are not unsure, if true classes are known.
    """

    n_images: int
    n_labelled: int
    n_in_known: int
    n_in_new: int
    n_unsure: int
    n_known: int
    n_categories: int
    n_used: int
    confidence: float
    median: float
    certain: float
    n_ambiguous: int
    accuracy: dict[str, float] | None
    by_name: dict[str, float] | None
    protocol: str
    new_categories: tuple[Category, ...]
    new_interval: tuple[int, int] | None = None
    min_confidence: float = 0.0
    n_outliers: int | None = None
    calibration: str = ""
    novelty: str = ""
    sure: str = ""

    @property
    def n_new(self) -> int:
        """New categories that contain images."""
        return len(self.new_categories)

    @property
    def n_unlabelled(self) -> int:
        """Unlabelled images."""
        return self.n_in_known + self.n_in_new + self.n_unsure


def headline_of(contents: RunContents) -> Headline:
    """Compute the main numbers of a run."""
    free = contents.confidence[contents.is_free]
    scores = contents.scores or {}
    new = [c for c in contents.categories if c.status == "new" and c.n_images > 0]
    return Headline(
        n_images=len(contents),
        n_labelled=int((~contents.is_free).sum()),
        n_in_known=int((contents.status == KNOWN).sum()),
        n_in_new=int((contents.status == NEW).sum()),
        n_unsure=int((contents.status == UNSURE).sum()),
        n_known=sum(c.status == "known" for c in contents.categories),
        n_categories=len(contents.categories),
        n_used=len(np.unique(contents.category[contents.is_free])),
        confidence=float(free.mean()) if free.size else 0.0,
        median=float(np.median(free)) if free.size else 0.0,
        certain=float((free >= CERTAIN).mean()) if free.size else 0.0,
        n_ambiguous=n_ambiguous(contents),
        accuracy=_read_accuracy(scores.get("accuracy")),
        by_name=_read_accuracy(scores.get("by_name")),
        protocol=_protocol(contents),
        new_categories=tuple(sorted(new, key=lambda c: (-c.n_images, c.name))),
        new_interval=_read_interval(contents.estimate or {}),
        min_confidence=contents.min_confidence,
        n_outliers=None if contents.outlier is None else int(contents.outlier.sum()),
        calibration=calibration_text(contents.calibration),
        novelty=novelty_text(contents.calibration),
        sure=sure_text(scores.get("sure")),
    )


def _read_interval(estimate: dict[str, Any]) -> tuple[int, int] | None:
    """Interval of the number of new categories; None for the published search, which has none, and for damaged files."""
    low, high, n_known = (estimate.get(name) for name in ("low", "high", "n_known"))
    if (
        not (isinstance(low, int) and isinstance(high, int) and isinstance(n_known, int))
        or estimate.get("way") == "search"
    ):
        return None
    return max(low - n_known, 0), max(high - n_known, 0)


def _read_accuracy(found: Any) -> dict[str, float] | None:
    if not isinstance(found, dict):
        return None
    numbers = {key: read_share(found.get(key)) for key in ("all", "old", "new")}
    return {key: value for key, value in numbers.items() if value is not None} or None


def _protocol(contents: RunContents) -> str:
    """Name and summary of the published protocol by which accuracy is measured."""
    benchmark = benchmark_of(contents.config)
    split = f" on the published split of {benchmark.name}" if benchmark else ""
    return (
        f"measured by the protocol of generalized category discovery (Vaze et al., CVPR 2022){split}: one optimal "
        "matching of categories and true classes over all unlabelled images, at the end of the run. "
        "Old (known classes) and New (new classes) use the same matching."
    )
