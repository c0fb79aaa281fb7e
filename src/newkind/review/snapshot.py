"""The current answer at one moment, with what pages and orders need of it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from newkind.review.space import FeatureSpace
from newkind.runs.answer import APPROVED, JUNK, LABELLED, Answer, CategoryState

__all__ = ["DIFFERENT", "Neighbour", "Snapshot", "key_of"]

HESITATION = 0.1  # An image hesitates between two categories if the second has at least this probability.
DIFFERENT = "different from "
"""Beginning of the note that two categories are different, followed by the id of the other one."""
Lines = NDArray[np.int64]


def key_of(category: str) -> str:
    """The id of a category, if it is plain text; otherwise a digest of it, because names of folders may not be text."""
    if category.isprintable() and not category.startswith("~"):
        return category
    return "~" + hashlib.blake2b(category.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


@dataclass(frozen=True)
class Neighbour:
    """A category near another one.

    Parameters
    ----------
    k : int
        Index of the category.
    similarity : float
        Cosine of the two centres, relative to the mean of all images; 0 without features.
    n_between : int
        Images of either category that have the other one as second category.
    """

    k: int
    similarity: float
    n_between: int


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Answer of a run after some number of decisions.

    Parameters
    ----------
    answer : Answer
        The answer.
    space : FeatureSpace or None
        Features of the images; None if the run has none.
    """

    answer: Answer
    space: FeatureSpace | None

    @property
    def number(self) -> int:
        """Number of the last decision."""
        return self.answer.last

    @property
    def categories(self) -> Sequence[CategoryState]:
        """Categories that exist."""
        return self.answer.categories

    @cached_property
    def members(self) -> list[Lines]:
        """Rows of each category, in order."""
        order = np.argsort(self.answer.category, kind="stable")
        counts = np.bincount(self.answer.category + 1, minlength=len(self.categories) + 1)
        return np.split(order, np.cumsum(counts)[:-1])[1:]

    @cached_property
    def is_decided(self) -> NDArray[np.bool_]:
        """Whether a person decided on each image, by a label or by a decision; shape (n,)."""
        return np.isin(self.answer.status, (LABELLED, APPROVED, JUNK))

    @cached_property
    def shown(self) -> list[int]:
        """Categories that have images: new ones first, then known ones, each by decreasing size."""
        used = [k for k, lines in enumerate(self.members) if len(lines)]
        return sorted(used, key=lambda k: (self.categories[k].status != "new", -len(self.members[k]), k))

    @cached_property
    def n_open(self) -> list[int]:
        """Number of images of each category that nobody decided on."""
        return [int((~self.is_decided[lines]).sum()) for lines in self.members]

    def is_settled(self, k: int) -> bool:
        """Whether a person decided on every image of a category."""
        return self.n_open[k] == 0

    def is_done(self, k: int) -> bool:
        """Whether a category counts as decided: it was approved, also if a refit has added images since, or is settled."""
        return self.categories[k].approved or self.is_settled(k)

    def is_named(self, k: int) -> bool:
        """Whether a category has a name that a person gave, not a number."""
        return self.categories[k].given or self.categories[k].renamed

    @cached_property
    def ids(self) -> dict[str, str]:
        """Key of a category in addresses and requests, to its id; also of categories that were merged away."""
        return {key_of(category): category for category in self.answer.position}

    def key(self, k: int) -> str:
        """Key of a category in addresses and requests."""
        return key_of(self.categories[k].id)

    def position(self, key: str) -> int | None:
        """Index of a category by its key; None if there is no such category."""
        return self.answer.position.get(self.ids.get(key, ""))

    def centre(self, k: int) -> NDArray[np.float32] | None:
        """Centre of a category: of its confirmed images if there are some, otherwise of all."""
        if self.space is None:
            return None
        lines = self.members[k]
        confirmed = lines[self.is_decided[lines]]
        return self.space.centre(confirmed if len(confirmed) >= 5 else lines)

    def typicality(self, k: int) -> NDArray[np.float32]:
        """How typical each image of a category is, in the order of `members`; without features, its confidence."""
        centre = self.centre(k)
        if centre is None or self.space is None:
            return self.answer.confidence[self.members[k]]
        return self.space.similarity(self.members[k], centre)

    def by_typicality(self, k: int, *, reverse: bool = False) -> Lines:
        """Rows of a category, the most typical first; with `reverse`, the least typical first."""
        order = np.argsort(-self.typicality(k), kind="stable")
        return self.members[k][order[::-1] if reverse else order]

    def faces(self, k: int, n: int) -> list[int]:
        """Rows of the n most typical images."""
        return [int(line) for line in self.by_typicality(k)[:n]]

    @cached_property
    def face(self) -> list[int]:
        """Row of one typical image of each category; -1 for a category without images."""
        return [self.faces(k, 1)[0] if len(lines) else -1 for k, lines in enumerate(self.members)]

    def examples(self, k: int, n: int) -> list[int]:
        """Rows of the n most typical images of a category that a person decided on; of all its images if there is none."""
        lines = self.by_typicality(k)
        decided = lines[self.is_decided[lines]]
        return [int(line) for line in (decided if len(decided) else lines)[:n]]

    @cached_property
    def between(self) -> dict[tuple[int, int], Lines]:
        """Undecided rows per pair (a, b), a < b, that are in one category and have the other one as second one."""
        answer = self.answer
        lines = np.flatnonzero(
            ~self.is_decided & (answer.category >= 0) & (answer.second >= 0) & (answer.second_confidence >= HESITATION)
        )
        pairs = np.sort(np.stack([answer.category[lines], answer.second[lines]], axis=1), axis=1)
        found: dict[tuple[int, int], list[int]] = {}
        for (a, b), line in zip(pairs.tolist(), lines.tolist(), strict=True):
            if a != b:
                found.setdefault((a, b), []).append(line)
        return {pair: np.array(rows, dtype=np.int64) for pair, rows in found.items()}

    @cached_property
    def centres(self) -> NDArray[np.float32]:
        """Centres of all categories, shape (K, d); zero without features."""
        if self.space is None or not self.categories:
            return np.zeros((len(self.categories), 1), dtype=np.float32)
        # Centres of all images: those of confirmed ones would change with every decision.
        return np.stack([self.space.centre(lines) for lines in self.members])

    def nearest(self, line: int) -> list[int]:
        """Categories that have images, the one with the most similar centre first; none that the image was rejected from."""
        if self.space is None:
            return []
        similarity = self.centres @ self.space.rows(np.array([line]))[0]
        rejected = self.answer.rejected.get(line, frozenset())
        allowed = [k for k in self.shown if self.categories[k].id not in rejected]
        return sorted(allowed, key=lambda k: -float(similarity[k]))

    @cached_property
    def similarities(self) -> NDArray[np.float32]:
        """Cosines of the centres of all categories, shape (K, K); zero without features."""
        return np.asarray(self.centres @ self.centres.T, dtype=np.float32)

    def neighbours(self, k: int, n: int) -> list[Neighbour]:
        """The n categories that are most similar to one."""
        found = [
            Neighbour(j, float(self.similarities[k, j]), len(self.between.get((min(j, k), max(j, k)), ())))
            for j in self.shown
            if j != k
        ]
        return sorted(found, key=lambda each: (-each.similarity, -each.n_between, each.k))[:n]

    @cached_property
    def different(self) -> frozenset[tuple[str, str]]:
        """Pairs of ids, in order, of categories that a person said are different."""
        pairs = (
            sorted((note.category, note.text.removeprefix(DIFFERENT)))
            for note in self.answer.notes
            if note.category and note.text.startswith(DIFFERENT)
        )
        return frozenset((a, b) for a, b in pairs)
