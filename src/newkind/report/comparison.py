"""Two runs side by side: which images moved, and which categories are each other's counterparts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from newkind.report.contents import RunContents
from newkind.report.headline import Headline, headline_of
from newkind.report.images import Pictures
from newkind.report.provenance import data_of, flatten

__all__ = ["Comparison", "Move", "Pair", "compare_runs", "counterparts"]

MANY_MOVES = 24
EXAMPLES = 8


@dataclass(frozen=True)
class Pair:
    """A category of this run and its counterpart in the other; one of them may be missing."""

    now: int | None
    before: int | None
    n_now: int
    n_before: int
    n_kept: int
    """Unlabelled images that are in both."""


@dataclass(frozen=True)
class Move:
    """Images that left one category for another."""

    before: int
    """In the other run."""
    now: int
    count: int
    lines: tuple[int, ...]
    """Examples, in this run's lines; the surest first."""


@dataclass(frozen=True, kw_only=True)
class Comparison:
    name: str
    """The other run."""
    other: RunContents
    headline: Headline
    n_common: int
    """Images that both runs sorted."""
    n_only_now: int
    n_only_before: int
    n_moved: int
    n_known_to_new: int
    n_new_to_known: int
    n_righted: int | None
    """With truth: images that were wrong in the other run and are right in this one."""
    n_wronged: int | None
    pairs: tuple[Pair, ...]
    moves: tuple[Move, ...]
    settings: tuple[tuple[str, str, str], ...]
    """Settings that differ: name, in this run, in the other."""


def compare_runs(contents: RunContents, other: RunContents, pictures: Pictures) -> Comparison:
    """What this run (`contents`) does differently from `other`, over the images that both have sorted."""
    line_of = {file: i for i, file in enumerate(other.files) if other.is_free[i]}
    lines = np.array(
        [i for i, file in enumerate(contents.files) if contents.is_free[i] and file in line_of], dtype=np.int64
    )
    theirs = np.array([line_of[contents.files[i]] for i in lines], dtype=np.int64)
    now, before = contents.category[lines], other.category[theirs]
    overlap = np.zeros((len(contents.categories), len(other.categories)), dtype=np.int64)
    np.add.at(overlap, (now, before), 1)
    partner = counterparts(overlap, _known_names(contents), _known_names(other))
    moved = partner[now] != before
    new_now = np.array([c.status == "new" for c in contents.categories])
    new_before = np.array([c.status == "new" for c in other.categories])
    righted, wronged = _changes(contents, other, pictures, lines, theirs)
    return Comparison(
        name=other.run.folder.resolve().name,
        other=other,
        headline=headline_of(other),
        n_common=len(lines),
        n_only_now=int(contents.is_free.sum()) - len(lines),
        n_only_before=int(other.is_free.sum()) - len(lines),
        n_moved=int(moved.sum()),
        n_known_to_new=int((moved & new_now[now] & ~new_before[before]).sum()),
        n_new_to_known=int((moved & ~new_now[now] & new_before[before]).sum()),
        n_righted=righted,
        n_wronged=wronged,
        pairs=_pairs(contents, overlap, partner),
        moves=_moves(contents, lines[moved], before[moved]),
        settings=_differences(contents, other),
    )


def _known_names(contents: RunContents) -> list[str | None]:
    return [category.name if category.status == "known" else None for category in contents.categories]


def counterparts(
    overlap: NDArray[np.int64], names: list[str | None], other_names: list[str | None]
) -> NDArray[np.int64]:
    """(K,): of each category its counterpart in the other run, or -1.

    Known categories by name; new ones (None), whose names mean nothing, so that as many images as possible stay
    together. overlap: (K, K'), images in a category of the one and of the other run.
    """
    theirs = {name: j for j, name in enumerate(other_names) if name is not None}
    partner = np.array([-1 if name is None else theirs.get(name, -1) for name in names], dtype=np.int64)
    rows = np.flatnonzero(partner < 0)
    columns = np.setdiff1d(np.arange(len(other_names)), partner)
    best_rows, best_columns = linear_sum_assignment(-overlap[np.ix_(rows, columns)])
    for i, j in zip(rows[best_rows], columns[best_columns], strict=True):
        if overlap[i, j]:
            partner[i] = j
    return partner


def _pairs(contents: RunContents, overlap: NDArray[np.int64], partner: NDArray[np.int64]) -> tuple[Pair, ...]:
    """The pairs that changed most first; empty categories are left out."""
    n_now, n_before = overlap.sum(axis=1), overlap.sum(axis=0)
    pairs = []
    for k in range(len(contents.categories)):
        j = int(partner[k])
        if n_now[k] or (j >= 0 and n_before[j]):
            kept = int(overlap[k, j]) if j >= 0 else 0
            pairs.append(Pair(k, j if j >= 0 else None, int(n_now[k]), int(n_before[j]) if j >= 0 else 0, kept))
    lost = np.setdiff1d(np.flatnonzero(n_before), partner)
    pairs += [Pair(None, int(j), 0, int(n_before[j]), 0) for j in lost]
    return tuple(sorted(pairs, key=lambda pair: -(pair.n_now + pair.n_before - 2 * pair.n_kept)))


def _moves(contents: RunContents, lines: NDArray[np.int64], before: NDArray[np.int32]) -> tuple[Move, ...]:
    now = contents.category[lines]
    kinds, inverse, counts = np.unique(np.stack([before, now], axis=1), axis=0, return_inverse=True, return_counts=True)
    moves = []
    for i in np.argsort(-counts, kind="stable")[:MANY_MOVES]:
        members = lines[inverse.reshape(-1) == i]
        surest = members[np.lexsort((members, -contents.confidence[members]))][:EXAMPLES]
        moves.append(Move(int(kinds[i, 0]), int(kinds[i, 1]), int(counts[i]), tuple(surest.tolist())))
    return tuple(moves)


def _changes(
    contents: RunContents, other: RunContents, pictures: Pictures, lines: NDArray[np.int64], theirs: NDArray[np.int64]
) -> tuple[int | None, int | None]:
    ours, before = _class_of_categories(contents, pictures), _class_of_categories(other, pictures)
    if ours is None or before is None or pictures.truth is None:
        return None, None
    true = pictures.truth[lines]
    right_now = (ours[contents.category[lines]] == true) & (true >= 0)
    right_before = (before[other.category[theirs]] == true) & (true >= 0)
    return int((right_now & ~right_before).sum()), int((right_before & ~right_now).sum())


def _class_of_categories(contents: RunContents, pictures: Pictures) -> NDArray[np.int64] | None:
    """(K,): the number of the true class that each category was matched to, -2 for none; None without scores."""
    rows = (contents.scores or {}).get("classes")
    if not isinstance(rows, list):
        return None
    number = {name: i for i, name in enumerate(pictures.class_names)}
    place = {category.prototype: k for k, category in enumerate(contents.categories)}
    found = np.full(len(contents.categories), -2, dtype=np.int64)
    for row in rows:
        if isinstance(row, dict) and row.get("cluster") in place and row.get("name") in number:
            found[place[row["cluster"]]] = number[row["name"]]
    return found


def _differences(contents: RunContents, other: RunContents) -> tuple[tuple[str, str, str], ...]:
    ours = dict(flatten({"data": data_of(contents), **contents.settings}))
    theirs = dict(flatten({"data": data_of(other), **other.settings}))
    return tuple(
        (key, ours.get(key, "–"), theirs.get(key, "–"))
        for key in dict.fromkeys([*ours, *theirs])
        if ours.get(key) != theirs.get(key)
    )
