"""The run in a few numbers: how many images went where, how sure, and how right if that is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from newkind.report.contents import KNOWN, NEW, RunContents
from newkind.report.images import benchmark_of
from newkind.report.questionable import n_between

__all__ = ["SURE", "Headline", "headline_of", "share"]

SURE = 0.8
"""An image counts as surely sorted from this confidence on."""


@dataclass(frozen=True, kw_only=True)
class Headline:
    """What is said first, on the page and in the terminal."""

    n_images: int
    n_labelled: int
    n_into_known: int
    """Unlabelled images."""
    n_into_new: int
    n_known: int
    """Known categories."""
    n_new: int
    """New categories that hold an image."""
    n_prototypes: int
    n_active: int
    """Categories that unlabelled images were sorted into."""
    confidence: float
    """Mean over unlabelled images."""
    median: float
    """Half of the unlabelled images have at least this confidence."""
    sure: float
    """Share of unlabelled images with a confidence of at least SURE."""
    n_doubtful: int
    """Unlabelled images between two categories."""
    accuracy: dict[str, float] | None
    """all, old and new (as far as they exist), if the truth is known."""
    protocol: str
    largest: tuple[tuple[str, int, float], ...]
    """New categories: name, images, mean confidence; the largest first."""

    @property
    def n_sorted(self) -> int:
        return self.n_into_known + self.n_into_new


def headline_of(contents: RunContents) -> Headline:
    """All of it from the run folder alone."""
    free = contents.confidence[contents.is_free]
    used = np.unique(contents.category[contents.is_free])
    new = sorted(
        (c for c in contents.categories if c.status == "new" and c.n_images > 0), key=lambda c: (-c.n_images, c.name)
    )
    return Headline(
        n_images=len(contents),
        n_labelled=int((~contents.is_free).sum()),
        n_into_known=int((contents.status == KNOWN).sum()),
        n_into_new=int((contents.status == NEW).sum()),
        n_known=sum(c.status == "known" for c in contents.categories),
        n_new=len(new),
        n_prototypes=len(contents.categories),
        n_active=len(used),
        confidence=float(free.mean()) if free.size else 0.0,
        median=float(np.median(free)) if free.size else 0.0,
        sure=float((free >= SURE).mean()) if free.size else 0.0,
        n_doubtful=n_between(contents),
        accuracy=_accuracy(contents.scores),
        protocol=_protocol(contents),
        largest=tuple((c.name, c.n_images, c.mean_confidence) for c in new),
    )


def _accuracy(scores: dict[str, Any] | None) -> dict[str, float] | None:
    found = (scores or {}).get("accuracy")
    if not isinstance(found, dict):
        return None
    numbers = {key: share(found.get(key)) for key in ("all", "old", "new")}
    return {key: value for key, value in numbers.items() if value is not None} or None


def share(value: object, *, least: float = 0.0) -> float | None:
    """A number between `least` and 1; None for anything else that a file may hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if least <= value <= 1 else None


def _protocol(contents: RunContents) -> str:
    """How accuracy is measured, by the name under which it was published."""
    found = benchmark_of(str(contents.config.get("data") or ""))
    split = f" on the published split of {found[0]}" if found else ""
    return (
        f"The protocol of generalized category discovery (Vaze et al., CVPR 2022){split}: one optimal matching of "
        "categories and true classes over all unlabelled images, after the last epoch; Old and New are read off that "
        "same matching."
    )
