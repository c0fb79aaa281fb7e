"""Lists of images for a grid: which images, in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from newkind.review.snapshot import Snapshot

__all__ = ["ORDERS", "SHOWN", "Query", "list_lines"]

ORDERS = {
    "typical": "Most typical first",
    "extremes": "Least typical first",
    "uncertain": "Least confident first",
    "similar": "Similar to the selection",
    "name": "By file name",
}
SHOWN = {"all": "All images", "open": "Undecided", "approved": "Approved", "labelled": "Labelled", "unsure": "Unsure"}
MAX_NEAR = 200
Lines = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Query:
    """Which images to list.

    Parameters
    ----------
    category : int or None, default=None
        Index of a category; None for images of all categories.
    text : str, default=""
        Part of the file name, in any case.
    shown : str, default="all"
        Key of `SHOWN`.
    order : str, default="typical"
        Key of `ORDERS`.
    near : tuple of int, default=()
        Rows of the images that others are compared with, for the order "similar".
    column, value : str, default=""
        Column of the data table and the value that it must have.
    """

    category: int | None = None
    text: str = ""
    shown: str = "all"
    order: str = "typical"
    near: tuple[int, ...] = ()
    column: str = ""
    value: str = ""


def list_lines(snapshot: Snapshot, query: Query, columns: Mapping[str, Sequence[str]]) -> Lines:
    """Rows of the images that a query asks for, in its order.

    Parameters
    ----------
    snapshot : Snapshot
        The current answer.
    query : Query
        What to list.
    columns : mapping of str to sequence of str
        Values of the columns of the data table, one per row.

    Returns
    -------
    ndarray of int64
    """
    answer = snapshot.answer
    lines = np.arange(len(answer)) if query.category is None else snapshot.members[query.category]
    if query.shown == "open":
        lines = lines[~snapshot.is_decided[lines]]
    elif query.shown != "all":
        lines = lines[answer.status[lines] == query.shown]
    if query.column:
        values = columns[query.column]
        lines = lines[[values[line] == query.value for line in lines.tolist()]]
    if query.text:
        text = query.text.lower()
        lines = lines[[text in answer.files[line].lower() for line in lines.tolist()]]
    return _ordered(snapshot, lines, query)


def _ordered(snapshot: Snapshot, lines: Lines, query: Query) -> Lines:
    answer, space = snapshot.answer, snapshot.space
    if query.order == "name":
        return np.array(sorted(lines.tolist(), key=lambda line: answer.files[line]), dtype=np.int64)
    if query.order == "uncertain" or not len(lines):
        return lines[np.argsort(answer.confidence[lines], kind="stable")]
    if query.order == "similar" and query.near and space is not None:
        centre = space.centre(np.array(query.near[:MAX_NEAR], dtype=np.int64))
        return lines[np.argsort(-space.similarity(lines, centre), kind="stable")]
    if query.category is not None:
        typical = np.zeros(len(answer), dtype=np.float32)
        typical[snapshot.members[query.category]] = snapshot.typicality(query.category)
    else:
        typical = answer.confidence
    order = np.argsort(-typical[lines], kind="stable")
    return lines[order[::-1] if query.order == "extremes" else order]
