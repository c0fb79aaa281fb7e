"""What to decide next: likely merges, categories to approve and images to check, the most valuable first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from newkind.review.snapshot import Snapshot
from newkind.runs.answer import LABELLED
from newkind.runs.decision import Event

__all__ = ["KINDS_OF_IMAGES", "Progress", "Task", "doubtful_lines", "make_queue", "progress_of"]

SIMILAR = 0.6  # Cosine of two centres above which a merge is likely even without images between the two.
LEAST_LIKENESS = 0.1
FIRST_MERGES, FIRST_DIFFERENT = 0.5, 4.5
"""Answers that are assumed before there are any: of the 2 % most alike pairs of 200 categories of birds, an eighth were the same,
and of 25 likely pairs of groceries and clothing, none."""
SETTLED = 0.02  # Value of an image that is right and becomes settled; an image that is corrected has the value 1.
MAX_MERGES = 40
AMBIGUOUS = 0.3  # Least probability of the second category of an ambiguous image.
CONFIDENT = 0.5  # A label is questioned if the model gives another category more than this.
KINDS_OF_IMAGES = {"ambiguous": "Ambiguous images", "mislabelled": "Possible mislabels", "outliers": "Outliers"}
SECONDS_PER_TASK = 12.0  # Before there are decisions to measure.
LONGEST_PAUSE = 120.0
Lines = NDArray[np.int64]


@dataclass(frozen=True)
class Task:
    """One thing to decide.

    Parameters
    ----------
    kind : {"merge", "approve", "images"}
        What to decide.
    value : float
        Number of images that one decision is expected to settle.
    k, other : int, default=-1
        Indices of the categories.
    about : str, default=""
        Key of `KINDS_OF_IMAGES`.
    similarity : float, default=0.0
        Cosine of the two centres.
    n_between : int, default=0
        Images between the two categories.
    n_images : int, default=0
        Number of images that are undecided.
    """

    kind: str
    value: float
    k: int = -1
    other: int = -1
    about: str = ""
    similarity: float = 0.0
    n_between: int = 0
    n_images: int = 0


@dataclass(frozen=True)
class Progress:
    """How much is decided.

    Parameters
    ----------
    n_decided, n_categories : int
        Categories that are approved or have no undecided images, and all that have images.
    n_images_decided, n_images : int
        Images that a person decided on or labelled, and all.
    minutes_left : int
        Estimated time for the remaining tasks; 0 if nothing is left.
    """

    n_decided: int
    n_categories: int
    n_images_decided: int
    n_images: int
    minutes_left: int


def make_queue(snapshot: Snapshot) -> list[Task]:
    """All tasks, the most valuable first."""
    tasks = [*_merges(snapshot), *_approvals(snapshot)]
    for about in KINDS_OF_IMAGES:
        n = len(doubtful_lines(snapshot, about))
        if n:  # one image per decision, about half of which change something
            tasks.append(Task("images", 0.5, about=about, n_images=n))
    return sorted(tasks, key=lambda task: -task.value)


def _merges(snapshot: Snapshot) -> list[Task]:
    """Pairs of categories that may be one, unless a person said that they are different or approved both."""
    found = []
    shown, rate = snapshot.shown, _merge_rate(snapshot)
    for i, a in enumerate(shown):
        for b in shown[i + 1 :]:
            first, second = snapshot.categories[a], snapshot.categories[b]
            given = first.given and second.given  # two classes that a person labelled
            approved = snapshot.is_settled(a) and snapshot.is_settled(b)
            if given or approved or tuple(sorted((first.id, second.id))) in snapshot.different:
                continue
            smaller = min(len(snapshot.members[a]), len(snapshot.members[b]))
            n_between = len(snapshot.between.get((min(a, b), max(a, b)), ()))
            similarity = float(snapshot.similarities[a, b])
            likeness = _likeness(None if snapshot.space is None else similarity, n_between / smaller)
            if likeness >= LEAST_LIKENESS:
                n_open = snapshot.n_open[a] + snapshot.n_open[b]
                found.append(Task("merge", rate * likeness * smaller, a, b, "", similarity, n_between, n_open))
    return sorted(found, key=lambda task: -task.value)[:MAX_MERGES]


def _merge_rate(snapshot: Snapshot) -> float:
    """Chance that two categories that are alike are one, from the answers so far."""
    merged, different = len(snapshot.answer.merged), len(snapshot.different)
    return (FIRST_MERGES + merged) / (FIRST_MERGES + FIRST_DIFFERENT + merged + different)


def _likeness(similarity: float | None, share: float) -> float:
    """How alike two categories are, from 0 to 1: their centres are similar, and images lie between the two.

    Parameters
    ----------
    similarity : float or None
        Cosine of the centres; None without features.
    share : float
        Share of the smaller category that lies between the two.
    """
    overlap = min(3 * share, 1.0)
    if similarity is None:
        return overlap
    return max(similarity, 0.0) ** 2 * max(overlap, (similarity - SIMILAR) / (1 - SIMILAR))


def _approvals(snapshot: Snapshot) -> list[Task]:
    """Categories with undecided images, by the number of images that are expected to be wrong."""
    found = []
    for k in snapshot.shown:
        if not snapshot.is_settled(k):
            lines = snapshot.members[k]
            n = snapshot.n_open[k]
            wrong = n - float(snapshot.answer.confidence[lines][~snapshot.is_decided[lines]].sum())
            # About two decisions: wrong images are moved, and the others are approved.
            found.append(Task("approve", wrong / 2 + SETTLED * n, k, n_images=n))
    return found


def doubtful_lines(snapshot: Snapshot, about: str) -> Lines:
    """Rows of one kind of images to check, the most doubtful first.

    Parameters
    ----------
    snapshot : Snapshot
        The current answer.
    about : str
        Key of `KINDS_OF_IMAGES`.

    Returns
    -------
    ndarray of int64
    """
    answer = snapshot.answer
    has_both = (answer.category >= 0) & (answer.second >= 0) & (answer.category != answer.second)
    if about == "ambiguous":
        lines = np.flatnonzero(~snapshot.is_decided & has_both & (answer.second_confidence >= AMBIGUOUS))
        return lines[np.argsort(answer.confidence[lines] - answer.second_confidence[lines], kind="stable")]
    if about == "mislabelled":
        other = answer.second_confidence > np.maximum(answer.confidence, CONFIDENT)
        lines = np.flatnonzero((answer.status == LABELLED) & has_both & other)
        return lines[np.argsort(answer.confidence[lines] - answer.second_confidence[lines], kind="stable")]
    outlier = np.zeros(len(answer), dtype=bool) if answer.outlier is None else answer.outlier
    lines = np.flatnonzero(outlier & ~snapshot.is_decided)
    return lines[np.argsort(answer.confidence[lines], kind="stable")]


def progress_of(snapshot: Snapshot, events: Sequence[Event]) -> Progress:
    """Count what is decided, and estimate the time that is left from the times of earlier decisions."""
    shown = snapshot.shown
    n_decided = sum(map(snapshot.is_done, shown))
    left = len(shown) - n_decided
    seconds = left * _seconds_per_decision(events)
    return Progress(
        n_decided=n_decided,
        n_categories=len(shown),
        n_images_decided=int(snapshot.is_decided.sum()),
        n_images=len(snapshot.answer),
        minutes_left=max(round(seconds / 60), 1) if left else 0,
    )


def _seconds_per_decision(events: Sequence[Event]) -> float:
    """Median time between decisions, without pauses."""
    times = [datetime.fromisoformat(event.time).timestamp() for event in events[-200:]]
    gaps = np.diff(times)
    gaps = gaps[(gaps > 0.5) & (gaps < LONGEST_PAUSE)]
    return float(np.median(gaps)) if len(gaps) >= 5 else SECONDS_PER_TASK
