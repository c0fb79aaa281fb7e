"""Comparison of two runs: images in different categories, and categories that correspond to each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from newkind.evaluation.correspondence import corresponding_categories
from newkind.report.contents import RunContents
from newkind.report.headline import Headline, headline_of
from newkind.report.image_pairs import pair_by_content, pair_images
from newkind.report.images import RunImages
from newkind.report.provenance import data_name, flatten

__all__ = ["CategoryPair", "Comparison", "Move", "compare_runs"]

MAX_MOVES = 24
EXAMPLES = 8


@dataclass(frozen=True)
class CategoryPair:
    """A category of this run and the corresponding one of the other run; either may be missing (None).

    `n_here` and `n_there` count the compared images in each, `n_both` those in both.
    """

    here: int | None
    there: int | None
    n_here: int
    n_there: int
    n_both: int


@dataclass(frozen=True)
class Move:
    """Images in category `there` of the other run and in category `here` of this one.

    `lines` are rows of examples in this run, the most confident first.
    """

    there: int
    here: int
    count: int
    lines: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Contents of the section that compares this run with another one.

    Parameters
    ----------
    name : str
        Name of the other run.
    other : RunContents
        The other run.
    headline : Headline
        Its main numbers.
    n_paired : int
        Images that are in both runs, labelled or not.
    n_by_ending : int
        Of these, images that were recognised by the ending of their path only.
    by_content : bool
        Whether images were recognised by their content; otherwise by their paths, because a run has no digests.
    n_common : int
        Images that are unlabelled in both runs: those that are compared.
    n_only_here, n_only_there : int
        Other unlabelled images of each run.
    n_moved, n_known_to_new, n_new_to_known : int
        Compared images in a category that does not correspond to the earlier one.
    n_corrected, n_spoiled : int or None
        With true classes: images that are correct only in this run, and only in the other one.
    pairs : tuple of CategoryPair
        Corresponding categories, those that differ most first.
    moves : tuple of Move
        Largest groups of moved images.
    settings : tuple of (str, str, str)
        Settings that differ: name, value here, value there.
    """

    name: str
    other: RunContents
    headline: Headline
    n_paired: int
    n_by_ending: int
    by_content: bool
    n_common: int
    n_only_here: int
    n_only_there: int
    n_moved: int
    n_known_to_new: int
    n_new_to_known: int
    n_corrected: int | None
    n_spoiled: int | None
    pairs: tuple[CategoryPair, ...]
    moves: tuple[Move, ...]
    settings: tuple[tuple[str, str, str], ...]


def compare_runs(contents: RunContents, other: RunContents, images: RunImages) -> Comparison:
    """Compare a run with another one over the images that are unlabelled in both.

    Parameters
    ----------
    contents : RunContents
        This run.
    other : RunContents
        The other run.
    images : RunImages
        Images of this run, for the true classes.

    Returns
    -------
    Comparison
    """
    if contents.digests is None or other.digests is None:
        paired = pair_images(contents.files, other.files)
    else:
        paired = pair_by_content(contents.files, contents.digests, other.files, other.digests)
    free = contents.is_free[paired.here] & other.is_free[paired.there]
    rows, other_rows = paired.here[free], paired.there[free]
    now, before = contents.category[rows], other.category[other_rows]
    overlap = np.zeros((len(contents.categories), len(other.categories)), dtype=np.int64)
    np.add.at(overlap, (now, before), 1)
    partner = corresponding_categories(overlap, _known_names(contents), _known_names(other))
    moved = partner[now] != before
    new_here, new_there = (np.array([c.status == "new" for c in run.categories]) for run in (contents, other))
    changes = _changes(contents, other, images, rows, other_rows)
    return Comparison(
        name=other.run.folder.resolve().name,
        other=other,
        headline=headline_of(other),
        n_paired=len(paired),
        n_by_ending=paired.n_by_ending,
        by_content=paired.by_content,
        n_common=len(rows),
        n_only_here=int(contents.is_free.sum()) - len(rows),
        n_only_there=int(other.is_free.sum()) - len(rows),
        n_moved=int(moved.sum()),
        n_known_to_new=int((moved & new_here[now] & ~new_there[before]).sum()),
        n_new_to_known=int((moved & ~new_here[now] & new_there[before]).sum()),
        n_corrected=None if changes is None else changes[0],
        n_spoiled=None if changes is None else changes[1],
        pairs=_category_pairs(overlap, partner),
        moves=_moves(contents, rows[moved], before[moved]),
        settings=_differing_settings(contents, other),
    )


def _known_names(contents: RunContents) -> list[str | None]:
    return [(category.id or category.name) if category.status == "known" else None for category in contents.categories]


def _category_pairs(overlap: NDArray[np.int64], partner: NDArray[np.int64]) -> tuple[CategoryPair, ...]:
    """Pairs that differ most first; pairs without images are left out."""
    n_here, n_there = overlap.sum(axis=1), overlap.sum(axis=0)
    pairs = []
    for k, j in enumerate(partner.tolist()):
        if j >= 0 and (n_here[k] or n_there[j]):
            pairs.append(CategoryPair(k, j, int(n_here[k]), int(n_there[j]), int(overlap[k, j])))
        elif n_here[k]:
            pairs.append(CategoryPair(k, None, int(n_here[k]), 0, 0))
    unpaired = np.setdiff1d(np.flatnonzero(n_there), partner)
    pairs += [CategoryPair(None, int(j), 0, int(n_there[j]), 0) for j in unpaired]
    return tuple(sorted(pairs, key=lambda pair: 2 * pair.n_both - pair.n_here - pair.n_there))


def _moves(contents: RunContents, rows: NDArray[np.int64], before: NDArray[np.int32]) -> tuple[Move, ...]:
    """Moved images grouped by both categories, the largest groups first. rows, before: (m,)."""
    kinds, inverse, counts = np.unique(
        np.stack([before, contents.category[rows]], axis=1), axis=0, return_inverse=True, return_counts=True
    )
    moves = []
    for i in np.argsort(-counts, kind="stable")[:MAX_MOVES]:
        members = rows[inverse.reshape(-1) == i]
        examples = members[np.lexsort((members, -contents.confidence[members]))][:EXAMPLES]
        moves.append(Move(int(kinds[i, 0]), int(kinds[i, 1]), int(counts[i]), tuple(examples.tolist())))
    return tuple(moves)


def _changes(
    contents: RunContents,
    other: RunContents,
    images: RunImages,
    rows: NDArray[np.int64],
    other_rows: NDArray[np.int64],
) -> tuple[int, int] | None:
    """Count the images that are correct only in this run and only in the other one; None without true classes."""
    here, there = _class_of_categories(contents, images), _class_of_categories(other, images)
    if here is None or there is None or images.truth is None:
        return None
    true = images.truth[rows]
    correct_here = (here[contents.category[rows]] == true) & (true >= 0)
    correct_there = (there[other.category[other_rows]] == true) & (true >= 0)
    return int((correct_here & ~correct_there).sum()), int((correct_there & ~correct_here).sum())


def _class_of_categories(contents: RunContents, images: RunImages) -> NDArray[np.int64] | None:
    """Index of the true class that each category is matched to, -2 for none, shape (K,); None without scores."""
    rows = (contents.scores or {}).get("classes")
    if not isinstance(rows, list):
        return None
    number = {name: i for i, name in enumerate(images.class_names)}
    place = {category.prototype: k for k, category in enumerate(contents.categories)}
    found = np.full(len(contents.categories), -2, dtype=np.int64)
    for row in rows:
        if isinstance(row, dict) and row.get("cluster") in place and row.get("name") in number:
            found[place[row["cluster"]]] = number[row["name"]]
    return found


def _differing_settings(contents: RunContents, other: RunContents) -> tuple[tuple[str, str, str], ...]:
    here, there = (dict(flatten({"data": data_name(run), **run.settings})) for run in (contents, other))
    return tuple(
        (key, here.get(key, "–"), there.get(key, "–"))
        for key in dict.fromkeys([*here, *there])
        if here.get(key) != there.get(key)
    )
