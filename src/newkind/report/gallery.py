"""A chapter for every category: its most typical images, those at its border, and its neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from newkind.report.contents import RunContents
from newkind.report.images import Pictures

__all__ = ["Amounts", "Chapter", "Neighbour", "amounts_for", "centres_of", "chapters_of", "typicality"]

CHUNK = 8192
BINS = 10


@dataclass(frozen=True)
class Amounts:
    """How many images of a category are shown."""

    typical: int
    borderline: int
    labelled: int
    neighbours: int


def amounts_for(n_categories: int) -> Amounts:
    """The more categories, the fewer images of each."""
    for most, amounts in (
        (40, Amounts(12, 6, 6, 4)),
        (120, Amounts(12, 6, 3, 3)),
        (300, Amounts(6, 3, 3, 3)),
        (1200, Amounts(3, 1, 0, 2)),
    ):
        if n_categories <= most:
            return amounts
    return Amounts(1, 0, 0, 2)


@dataclass(frozen=True)
class Neighbour:
    """A category beside another."""

    number: int
    n_hesitating: int
    """Images of either that have the other as second guess."""
    similarity: float | None
    """Cosine of the two centres, about the mean of all images; None without features."""


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """One category."""

    number: int
    n_sorted: int
    """Unlabelled images."""
    n_labelled: int
    confidence: float
    """Mean over its unlabelled images."""
    histogram: tuple[int, ...]
    """Its unlabelled images by confidence, in ten bins."""
    typical: tuple[int, ...]
    """Lines, the most typical first."""
    borderline: tuple[int, ...]
    """Lines of its least certain images that are not among the typical ones."""
    labelled: tuple[int, ...]
    """Lines of labelled examples."""
    known_neighbours: tuple[Neighbour, ...]
    new_neighbours: tuple[Neighbour, ...]
    mixture: tuple[tuple[str, int], ...]
    """With truth: the true classes of its unlabelled images, the largest first."""
    matched: str | None
    """With truth: the class that it was matched to."""

    @property
    def lines(self) -> tuple[int, ...]:
        """All that are shown."""
        return self.typical + self.borderline + self.labelled


def chapters_of(contents: RunContents, pictures: Pictures, amounts: Amounts) -> list[Chapter]:
    """In the order in which they are shown."""
    centres, spread = None, None
    if contents.features is not None:
        centres, mean = centres_of(contents.features, contents.category, len(contents.categories))
        spread = typicality(contents.features, contents.category, centres, mean)
    hesitating = _hesitation(contents)
    matched = _matched_classes(contents)
    return [
        _chapter(contents, pictures, k, amounts, centres=centres, spread=spread, hesitating=hesitating, matched=matched)
        for k in contents.shown
    ]


def _chapter(
    contents: RunContents,
    pictures: Pictures,
    k: int,
    amounts: Amounts,
    *,
    centres: NDArray[np.float32] | None,
    spread: NDArray[np.float32] | None,
    hesitating: dict[tuple[int, int], int],
    matched: dict[int, str],
) -> Chapter:
    lines = contents.members[k]
    free, given = lines[contents.is_free[lines]], lines[~contents.is_free[lines]]
    confidence = contents.confidence[free]
    # Nearest to the centre among its surer half; without features, the surest.
    surer = confidence >= (np.median(confidence) if free.size else 0.0)
    fit = confidence if spread is None else spread[free] + 3.0 * surer
    order = free[np.lexsort((free, -fit))]
    typical = order[: amounts.typical]
    rest = np.setdiff1d(free, typical)
    borderline = rest[np.lexsort((rest, contents.confidence[rest]))][: amounts.borderline]
    examples = given if spread is None else given[np.lexsort((given, -spread[given]))]
    known, new = _neighbours(contents, k, centres, hesitating, amounts.neighbours)
    return Chapter(
        number=k,
        n_sorted=len(free),
        n_labelled=len(given),
        confidence=float(confidence.mean()) if free.size else 0.0,
        histogram=tuple(np.histogram(confidence, bins=BINS, range=(0, 1))[0].tolist()),
        typical=tuple(typical.tolist()),
        borderline=tuple(borderline.tolist()),
        labelled=tuple(examples[: amounts.labelled].tolist()),
        known_neighbours=known,
        new_neighbours=new,
        mixture=_mixture(pictures, free),
        matched=matched.get(contents.categories[k].prototype),
    )


def centres_of(
    features: NDArray[np.float16], category: NDArray[np.int32], n_categories: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Unit centres (K, d) of the categories' unit features about their common mean (d,); a pass over the file for each."""
    dim = features.shape[1]
    total = np.zeros(dim)
    sums = np.zeros((n_categories, dim))
    counts = np.bincount(category, minlength=n_categories)
    for start in range(0, len(features), CHUNK):
        rows = _unit(features[start : start + CHUNK])
        total += rows.sum(axis=0)
        np.add.at(sums, category[start : start + CHUNK], rows)
    mean = total / max(len(features), 1)
    centres = sums / np.maximum(counts, 1)[:, None] - np.where(counts > 0, 1.0, 0.0)[:, None] * mean
    return _unit(centres), mean.astype(np.float32)


def typicality(
    features: NDArray[np.float16],
    category: NDArray[np.int32],
    centres: NDArray[np.float32],
    mean: NDArray[np.float32],
) -> NDArray[np.float32]:
    """(n,): the cosine of each image's feature, about the mean, with the centre of its category."""
    found = np.empty(len(features), dtype=np.float32)
    for start in range(0, len(features), CHUNK):
        rows = _unit(_unit(features[start : start + CHUNK]) - mean)
        found[start : start + CHUNK] = (rows * centres[category[start : start + CHUNK]]).sum(axis=1)
    return found


def _unit(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    clean = np.nan_to_num(np.asarray(rows, dtype=np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    unit: NDArray[np.float32] = clean / np.maximum(np.linalg.norm(clean, axis=1, keepdims=True), 1e-12)
    return unit


def _hesitation(contents: RunContents) -> dict[tuple[int, int], int]:
    """(a, b), a < b: unlabelled images in one with the other as second guess, where that guess has a tenth at least."""
    lines = contents.is_free & (contents.second_confidence >= 0.1) & (contents.second != contents.category)
    pairs = np.stack([contents.category[lines], contents.second[lines]], axis=1)
    pairs.sort(axis=1)
    found, counts = np.unique(pairs, axis=0, return_counts=True)
    return {(int(a), int(b)): int(n) for (a, b), n in zip(found, counts, strict=True)}


def _neighbours(
    contents: RunContents,
    k: int,
    centres: NDArray[np.float32] | None,
    hesitating: dict[tuple[int, int], int],
    most: int,
) -> tuple[tuple[Neighbour, ...], tuple[Neighbour, ...]]:
    """The nearest known categories and the nearest new ones."""
    hesitation = np.array([hesitating.get((min(j, k), max(j, k)), 0) for j in contents.shown])
    similarity = None if centres is None else (centres @ centres[k])[contents.shown]
    order = np.argsort(-(hesitation if similarity is None else similarity), kind="stable")
    sides: dict[str, list[Neighbour]] = {"known": [], "new": []}
    for i in order.tolist():
        j = contents.shown[i]
        side = sides.get(contents.categories[j].status, [])
        if j != k and len(side) < most and (similarity is not None or hesitation[i]):
            near = None if similarity is None else round(float(similarity[i]), 3)
            side.append(Neighbour(number=j, n_hesitating=int(hesitation[i]), similarity=near))
    return tuple(sides["known"]), tuple(sides["new"])


def _mixture(pictures: Pictures, lines: NDArray[np.int64]) -> tuple[tuple[str, int], ...]:
    if pictures.truth is None:
        return ()
    true = pictures.truth[lines]
    counts = np.bincount(true[true >= 0], minlength=1)
    order = np.argsort(-counts, kind="stable")[:3]
    return tuple((pictures.class_names[int(c)], int(counts[c])) for c in order if counts[c])


def _matched_classes(contents: RunContents) -> dict[int, str]:
    """Prototype -> the true class that it was matched to; empty without truth."""
    rows = (contents.scores or {}).get("classes")
    if not isinstance(rows, list):
        return {}
    return {
        row["cluster"]: str(row.get("name"))
        for row in rows
        if isinstance(row, dict) and isinstance(row.get("cluster"), int)
    }
