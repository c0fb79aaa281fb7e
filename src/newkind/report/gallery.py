"""Details of each category: typical and borderline images, labelled examples, nearest categories."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from newkind.report.centres import category_centres, typicality
from newkind.report.contents import RunContents
from newkind.report.images import RunImages

__all__ = [
    "CategoryDetails",
    "GallerySizes",
    "Neighbour",
    "category_details",
    "gallery_sizes",
]

BINS = 10
HESITATION = 0.1  # An image hesitates between two categories if the second has at least this probability.


@dataclass(frozen=True)
class GallerySizes:
    """Number of images of each category that the page shows at once, and of neighbours.

    Parameters
    ----------
    typical, borderline, labelled : int
        Number of images of each sort.
    neighbours : int
        Number of nearest known and of nearest new categories.
    """

    typical: int
    borderline: int
    labelled: int
    neighbours: int


def gallery_sizes(n_categories: int) -> GallerySizes:
    """Choose how many images of each category are shown at once: the more categories, the fewer.

    Parameters
    ----------
    n_categories : int
        Number of categories on the page.

    Returns
    -------
    GallerySizes
    """
    for most, sizes in (
        (40, GallerySizes(12, 6, 6, 4)),
        (120, GallerySizes(12, 6, 3, 3)),
        (300, GallerySizes(6, 3, 3, 3)),
        (1200, GallerySizes(3, 1, 0, 2)),
    ):
        if n_categories <= most:
            return sizes
    return GallerySizes(1, 0, 0, 2)


@dataclass(frozen=True)
class Neighbour:
    """A category near another one.

    Parameters
    ----------
    number : int
        Index of the category.
    n_hesitating : int
        Images of either category that have the other one as second category.
    similarity : float or None
        Cosine of the two centres, relative to the mean of all images; None without features.
    """

    number: int
    n_hesitating: int
    similarity: float | None


@dataclass(frozen=True, kw_only=True)
class CategoryDetails:
    """One category of the page.

    Parameters
    ----------
    number : int
        Index of the category.
    n_unlabelled, n_labelled : int
        Number of its images.
    confidence : float
        Mean confidence of its unlabelled images.
    histogram : tuple of int
        Number of its unlabelled images in ten bins of confidence.
    typical : tuple of int
        Rows of unlabelled images, the most typical first.
    borderline : tuple of int
        Rows of its least certain images that are not in `typical`.
    labelled : tuple of int
        Rows of labelled examples.
    known_neighbours, new_neighbours : tuple of Neighbour
        Nearest categories, the nearest first.
    composition : tuple of (str, int)
        The three most frequent true classes of its unlabelled images; empty if they are unknown.
    matched : str or None
        True class that the category is matched to.
    """

    number: int
    n_unlabelled: int
    n_labelled: int
    confidence: float
    histogram: tuple[int, ...]
    typical: tuple[int, ...]
    borderline: tuple[int, ...]
    labelled: tuple[int, ...]
    known_neighbours: tuple[Neighbour, ...]
    new_neighbours: tuple[Neighbour, ...]
    composition: tuple[tuple[str, int], ...]
    matched: str | None

    @property
    def examples(self) -> tuple[int, ...]:
        """Rows of example images, the best first."""
        return self.typical or self.labelled or self.borderline


def category_details(contents: RunContents, images: RunImages, sizes: GallerySizes) -> list[CategoryDetails]:
    """Compute the details of every category that contains images.

    Parameters
    ----------
    contents : RunContents
        The run.
    images : RunImages
        Its images, for the true classes.
    sizes : GallerySizes
        Number of images per category.

    Returns
    -------
    list of CategoryDetails
        In the order of the page.
    """
    gallery = _Gallery(contents, images, sizes)
    return [gallery.details(k) for k in contents.shown]


@dataclass(frozen=True)
class _Gallery:
    """What the details of all categories are computed from."""

    contents: RunContents
    images: RunImages
    sizes: GallerySizes

    @cached_property
    def centres(self) -> NDArray[np.float32] | None:
        """Centres of the categories, shape (K, d); None without features."""
        return None if self._centres_and_mean is None else self._centres_and_mean[0]

    @cached_property
    def typicality(self) -> NDArray[np.float32] | None:
        """Similarity of each image to the centre of its category, shape (n,); None without features."""
        features = self.contents.features
        if features is None or self._centres_and_mean is None:
            return None
        return typicality(features, self.contents.category, *self._centres_and_mean)

    @cached_property
    def _centres_and_mean(self) -> tuple[NDArray[np.float32], NDArray[np.float32]] | None:
        contents = self.contents
        if contents.features is None:
            return None
        return category_centres(contents.features, contents.category, len(contents.categories))

    @cached_property
    def hesitation(self) -> dict[tuple[int, int], int]:
        return _hesitation(self.contents)

    @cached_property
    def matched(self) -> dict[int, str]:
        return _matched_classes(self.contents)

    def details(self, k: int) -> CategoryDetails:
        contents, sizes = self.contents, self.sizes
        lines = contents.members[k]
        free, given = lines[contents.is_free[lines]], lines[~contents.is_free[lines]]
        confidence = contents.confidence[free]
        typical = self._typical(free)
        rest = np.setdiff1d(free, typical)
        borderline = rest[np.lexsort((rest, contents.confidence[rest]))][: sizes.borderline]
        examples = given if self.typicality is None else given[np.lexsort((given, -self.typicality[given]))]
        return CategoryDetails(
            number=k,
            n_unlabelled=len(free),
            n_labelled=len(given),
            confidence=float(confidence.mean()) if free.size else 0.0,
            histogram=tuple(np.histogram(confidence, bins=BINS, range=(0, 1))[0].tolist()),
            typical=tuple(typical.tolist()),
            borderline=tuple(borderline.tolist()),
            labelled=tuple(examples[: sizes.labelled].tolist()),
            known_neighbours=self._neighbours(k, "known"),
            new_neighbours=self._neighbours(k, "new"),
            composition=_composition(self.images, free),
            matched=self.matched.get(contents.categories[k].prototype),
        )

    def _typical(self, free: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the images nearest to the centre among the more confident half; without features, the most confident."""
        confidence = self.contents.confidence[free]
        more_confident = confidence >= (np.median(confidence) if free.size else 0.0)
        fit = confidence if self.typicality is None else self.typicality[free] + 3.0 * more_confident
        return free[np.lexsort((free, -fit))][: self.sizes.typical]

    def _neighbours(self, k: int, status: str) -> tuple[Neighbour, ...]:
        """Return the nearest categories of one status: by features, or without them by hesitating images."""
        contents = self.contents
        others = [j for j in contents.shown if j != k and contents.categories[j].status == status]
        hesitating = np.array([self.hesitation.get((min(j, k), max(j, k)), 0) for j in others], dtype=np.int64)
        if self.centres is None:
            order = [i for i in np.argsort(-hesitating, kind="stable").tolist() if hesitating[i]]
            return tuple(Neighbour(others[i], int(hesitating[i]), None) for i in order[: self.sizes.neighbours])
        similarity = self.centres[others] @ self.centres[k]
        order = np.argsort(-similarity, kind="stable").tolist()
        return tuple(
            Neighbour(others[i], int(hesitating[i]), round(float(similarity[i]), 3))
            for i in order[: self.sizes.neighbours]
        )


def _hesitation(contents: RunContents) -> dict[tuple[int, int], int]:
    """Count unlabelled images per pair (a, b), a < b, that are in one category and have the other as second one."""
    lines = contents.is_free & (contents.second_confidence >= HESITATION) & (contents.second != contents.category)
    pairs = np.stack([contents.category[lines], contents.second[lines]], axis=1)
    pairs.sort(axis=1)
    found, counts = np.unique(pairs, axis=0, return_counts=True)
    return {(int(a), int(b)): int(n) for (a, b), n in zip(found, counts, strict=True)}


def _composition(images: RunImages, lines: NDArray[np.int64]) -> tuple[tuple[str, int], ...]:
    if images.truth is None:
        return ()
    true = images.truth[lines]
    counts = np.bincount(true[true >= 0], minlength=1)
    order = np.argsort(-counts, kind="stable")[:3]
    return tuple((images.class_names[int(c)], int(counts[c])) for c in order if counts[c])


def _matched_classes(contents: RunContents) -> dict[int, str]:
    """Map each prototype to the true class that it is matched to; empty if true classes are unknown."""
    rows = (contents.scores or {}).get("classes")
    if not isinstance(rows, list):
        return {}
    return {
        row["cluster"]: str(row.get("name"))
        for row in rows
        if isinstance(row, dict) and isinstance(row.get("cluster"), int)
    }
