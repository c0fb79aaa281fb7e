"""What to decide next: likely merges, categories to approve, sheets and images to check, the most valuable first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from newkind.review.snapshot import Snapshot
from newkind.runs.answer import LABELLED
from newkind.runs.decision import Event

__all__ = ["KINDS_OF_IMAGES", "Progress", "Task", "doubtful_lines", "make_queue", "make_sheets", "progress_of"]

SIMILAR = 0.6  # Cosine of two centres above which a merge is likely even without images between the two.
LEAST_LIKENESS = 0.1
FIRST_MERGES, FIRST_DIFFERENT = 0.5, 4.5
"""Answers that are assumed before there are any: of the 2 % most alike pairs of 200 categories of birds, an eighth were the same,
and of 25 likely pairs of groceries and clothing, none."""
SETTLED = 0.02  # Value of an image that is right and becomes settled; an image that is corrected has the value 1.
MAX_MERGES = 40
AMBIGUOUS = 0.3  # Least probability of the second category of an ambiguous image.
CONFIDENT = 0.5  # A label is questioned if the model gives another category more than this.
SHEET = 48  # Most images per sheet.
FEW = 24  # A named category with at most so many undecided images is decided on sheets, together with others.
KINDS_OF_IMAGES = {
    "ambiguous": "Ambiguous images",
    "mislabelled": "Possible mislabels",
    "outliers": "Outliers",
    "unplaced": "Images without a category",
}
SECONDS_PER_TASK = 12.0  # Before there are decisions to measure.
LONGEST_PAUSE = 120.0
Lines = NDArray[np.int64]


@dataclass(frozen=True)
class Task:
    """One thing to decide.

    Parameters
    ----------
    kind : {"merge", "approve", "sheet", "images"}
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
    tasks = [*_merges(snapshot), *_approvals(snapshot), *_sheet(snapshot)]
    for about in KINDS_OF_IMAGES:
        n = len(doubtful_lines(snapshot, about))
        if n:  # one image per decision, about half of which change something
            tasks.append(Task("images", 0.5, about=about, n_images=n))
    return sorted(tasks, key=lambda task: -task.value)


def _merges(snapshot: Snapshot) -> list[Task]:
    """Pairs of categories that may be one, unless a person said that they are different, named both or approved both."""
    shown = np.array(snapshot.shown, dtype=np.int64)
    n_all = len(shown)
    if n_all < 2:
        return []
    size = np.array([len(snapshot.members[k]) for k in shown])
    named = np.array([snapshot.is_named(k) for k in shown])  # a person gave them different names
    settled = np.array([snapshot.is_settled(k) for k in shown])
    similarity = snapshot.similarities[np.ix_(shown, shown)]
    between = np.zeros((n_all, n_all))
    place = {k: i for i, k in enumerate(shown.tolist())}
    for (a, b), lines in snapshot.between.items():
        if a in place and b in place:
            between[place[a], place[b]] = between[place[b], place[a]] = len(lines)
    smaller = np.minimum.outer(size, size)
    share = between / smaller
    likeness = _likeness(similarity if snapshot.space is not None else None, share)
    likeness[np.logical_and.outer(named, named) | np.logical_and.outer(settled, settled)] = 0
    value = np.triu(_merge_rate(snapshot) * likeness * smaller, 1)
    value[likeness < LEAST_LIKENESS] = 0
    found: list[Task] = []
    for i, j in zip(*np.unravel_index(np.argsort(-value, axis=None, kind="stable"), value.shape), strict=True):
        if value[i, j] <= 0 or len(found) == MAX_MERGES:
            break
        a, b = int(shown[i]), int(shown[j])
        if tuple(sorted((snapshot.categories[a].id, snapshot.categories[b].id))) not in snapshot.different:
            n_open = snapshot.n_open[a] + snapshot.n_open[b]
            alike = float(similarity[i, j])
            found.append(Task("merge", float(value[i, j]), a, b, "", alike, int(between[i, j]), n_open))
    return found


def _merge_rate(snapshot: Snapshot) -> float:
    """Chance that two categories that are alike are one, from the answers so far."""
    merged, different = len(snapshot.answer.merged), len(snapshot.different)
    return (FIRST_MERGES + merged) / (FIRST_MERGES + FIRST_DIFFERENT + merged + different)


def _likeness(similarity: NDArray[np.float32] | None, share: NDArray[np.float64]) -> NDArray[np.float64]:
    """How alike pairs of categories are, from 0 to 1: their centres are similar, and images lie between the two.

    Parameters
    ----------
    similarity : ndarray or None
        Cosines of the centres; None without features.
    share : ndarray
        Share of the smaller category that lies between the two.
    """
    overlap: NDArray[np.float64] = np.minimum(3 * share, 1.0)
    if similarity is None:
        return overlap
    near: NDArray[np.float64] = np.maximum(overlap, (similarity - SIMILAR) / (1 - SIMILAR))
    return np.maximum(similarity, 0.0) ** 2 * near


def _approvals(snapshot: Snapshot) -> list[Task]:
    """Categories with undecided images, by the number of images that are expected to be wrong."""
    found = []
    for k in snapshot.shown:
        if not snapshot.is_settled(k) and not _is_on_sheets(snapshot, k):
            lines = snapshot.members[k]
            value = _value(snapshot, lines[~snapshot.is_decided[lines]])
            found.append(Task("approve", value, k, n_images=snapshot.n_open[k]))
    return found


def _sheet(snapshot: Snapshot) -> list[Task]:
    """The next sheet, if there are images for it."""
    sheets = make_sheets(snapshot)
    return [Task("sheet", _value(snapshot, sheets[0]), n_images=sum(map(len, sheets)))] if sheets else []


def _value(snapshot: Snapshot, lines: Lines) -> float:
    """Value of approving undecided images without the wrong ones, which may need a decision of their own to be placed."""
    wrong = len(lines) - float(snapshot.answer.confidence[lines].sum())
    return wrong / 2 + SETTLED * len(lines)


def _is_on_sheets(snapshot: Snapshot, k: int) -> bool:
    """Whether the undecided images of a category are decided on sheets: it has a name or is approved, and they are few."""
    is_sure = snapshot.is_named(k) or snapshot.categories[k].approved
    return is_sure and 0 < snapshot.n_open[k] <= FEW


def make_sheets(snapshot: Snapshot) -> list[Lines]:
    """Undecided rows of categories that have few of them, on sheets of whole categories, the least confident first.

    Parameters
    ----------
    snapshot : Snapshot
        The current answer.

    Returns
    -------
    list of ndarray of int64
        Rows of each sheet, one category after the other; at most `SHEET`.
    """
    confidence = snapshot.answer.confidence
    groups = []
    for k in snapshot.shown:
        if _is_on_sheets(snapshot, k):
            lines = snapshot.members[k][~snapshot.is_decided[snapshot.members[k]]]
            groups.append(lines[np.argsort(confidence[lines], kind="stable")])
    sheets: list[list[Lines]] = []
    for group in sorted(groups, key=lambda lines: float(confidence[lines].mean())):
        place = next((sheet for sheet in sheets if sum(map(len, sheet)) + len(group) <= SHEET), None)
        if place is None:
            sheets.append([group])
        else:
            place.append(group)
    return [np.concatenate(sheet) for sheet in sheets]


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
    if about == "unplaced":
        return np.flatnonzero(~snapshot.is_decided & (answer.category < 0))
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
