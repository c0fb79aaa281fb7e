"""The answer of a run: which category each image is in. It starts as the model's answer; decisions change it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from newkind.errors import RunError
from newkind.runs.assignment import Assignment, Category
from newkind.runs.decision import Decision

__all__ = ["APPROVED", "JUNK", "LABELLED", "UNSURE", "Answer", "CategoryState", "answer_of", "count_images"]

LABELLED, UNSURE, APPROVED, JUNK = "labelled", "unsure", "approved", "junk"
Texts = NDArray[np.str_]
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class CategoryState:
    """A category of the current answer.

    Parameters
    ----------
    id : str
        Stable identifier: the name that `discover` gave it, or a new one after a split.
    name : str
        Current name, different from all others.
    status : {"known", "new"}
        Whether it is a known class. A refit makes known classes of new categories that a person renamed or approved.
    approved : bool, default=False
        Whether a person approved it.
    given : bool, default=False
        Whether it was a class of the labelled images when the run was made.
    prototypes : tuple of int, default=()
        Its indices in the classifier of the current model.
    parent : str, default=""
        Id of the category that it was split from.
    """

    id: str
    name: str
    status: str
    approved: bool = False
    given: bool = False
    prototypes: tuple[int, ...] = ()
    parent: str = ""

    @property
    def renamed(self) -> bool:
        """Whether a person gave it a name."""
        return self.name != self.id


@dataclass(frozen=True, eq=False)
class Answer:
    """Categories of n images. It is never changed; `newkind.runs.replay.apply` returns another one.

    Parameters
    ----------
    files : tuple of str, length n
        Names of the images, in the order of assignments.csv and of features.npy.
    category : ndarray of int64, shape (n,)
        Index of each image's category in `categories`; -1 for none.
    status : ndarray of str, shape (n,)
        `labelled`, `known`, `new`, `unsure`, `approved` or `junk`.
    confidence : ndarray of float32, shape (n,)
        Probability of the category; 1 if a person confirmed it.
    second : ndarray of int64, shape (n,)
        Index of the second most likely category; -1 for none.
    second_confidence : ndarray of float32, shape (n,)
        Its probability.
    novelty : ndarray of float32, shape (n,)
        Probability of all new categories together; NaN where it was not computed.
    outlier : ndarray of bool, shape (n,), or None
        Whether each image fits no category; None if the method has no rule for it.
    categories : tuple of CategoryState
        Categories that exist.
    merged : dict of str to str, default={}
        Id of each category that was merged away, to the id of the category that has its images now.
    rejected : dict of int to frozenset of str, default={}
        Row of an image, to ids of the categories that it does not belong to.
    confirmed : frozenset of int, default=frozenset()
        Rows of images whose label a person confirmed.
    notes : tuple of Decision, default=()
        Notes in order.
    refit : str, default=""
        Name of the accepted refit whose model is used; empty for the model of `discover`.
    last : int, default=0
        Number of the last event that is part of it.
    """

    files: tuple[str, ...]
    category: Ints
    status: Texts
    confidence: Floats
    second: Ints
    second_confidence: Floats
    novelty: Floats
    outlier: NDArray[np.bool_] | None
    categories: tuple[CategoryState, ...]
    merged: dict[str, str] = field(default_factory=dict)
    rejected: dict[int, frozenset[str]] = field(default_factory=dict)
    confirmed: frozenset[int] = frozenset()
    notes: tuple[Decision, ...] = ()
    refit: str = ""
    last: int = 0

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.files)

    @cached_property
    def row(self) -> dict[str, int]:
        """Name of an image to its row."""
        return {name: i for i, name in enumerate(self.files)}

    @cached_property
    def position(self) -> dict[str, int]:
        """Id of a category, also of one that was merged away, to its index in `categories`."""
        found = {state.id: k for k, state in enumerate(self.categories)}
        return found | {old: found[new] for old, new in self.merged.items() if new in found and old not in found}

    def find(self, name: str) -> CategoryState:
        """Category by its id or by its name; `RunError` with the code `unknown-category` if there is none."""
        by_name = {state.name: k for k, state in enumerate(self.categories)}
        k = self.position.get(name, by_name.get(name))
        if k is None:
            close = difflib.get_close_matches(name, [*by_name, *self.position], n=1)
            raise RunError(
                f"There is no category {name}.",
                fix=f"Did you mean {close[0]}?" if close else "Use an id or a name of categories.json.",
                code="unknown-category",
                category=name,
            )
        return self.categories[k]

    def rows_of(self, files: Iterable[str]) -> Ints:
        """Rows of images by their names; `RunError` with the code `unknown-file` if there is no such image."""
        names = list(files)
        missing = [name for name in names if name not in self.row]
        if missing:
            raise RunError(
                f"{missing[0]} is not an image of this run.",
                fix="Use file names of assignments.csv.",
                code="unknown-file",
                file=missing[0],
            )
        return np.array([self.row[name] for name in names], dtype=np.int64)

    def members(self, category: str) -> Ints:
        """Rows (m,) of the images of a category, by its id, in order."""
        return np.flatnonzero(self.category == self.position[category])

    def assignments(self) -> list[Assignment]:
        """One assignment per image, with the names of categories."""
        return self._lines([state.name for state in self.categories])

    def assignments_by_id(self) -> list[Assignment]:
        """One assignment per image, with the ids of categories instead of their names."""
        return self._lines([state.id for state in self.categories])

    def _lines(self, names: list[str]) -> list[Assignment]:
        named = [*names, ""]  # -1 is the last one
        novelty = [None if value != value else round(value, 4) for value in self.novelty.tolist()]
        outlier = [None] * len(self) if self.outlier is None else self.outlier.tolist()
        columns = zip(
            self.files,
            [named[k] for k in self.category.tolist()],
            self.status.tolist(),
            [round(value, 4) for value in self.confidence.tolist()],
            [named[k] for k in self.second.tolist()],
            [round(value, 4) for value in self.second_confidence.tolist()],
            novelty,
            outlier,
            strict=True,
        )
        return [Assignment(*values) for values in columns]

    def list_categories(self) -> list[Category]:
        """All categories with the number of their images."""
        found = count_images(self)
        return [
            Category(
                name=state.name,
                status=state.status,
                prototype=state.prototypes[0] if state.prototypes else -1,
                n_images=int(found.n_images[k]),
                mean_confidence=round(float(found.mean_confidence[k]), 4),
                n_unsure=int(found.n_unsure[k]),
                id=state.id,
                approved=state.approved,
                prototypes=state.prototypes,
                given=state.given,
            )
            for k, state in enumerate(self.categories)
        ]


@dataclass(frozen=True, eq=False)
class ImageCounts:
    """Unlabelled images of K categories; arrays of shape (K,)."""

    n_images: Ints
    mean_confidence: NDArray[np.float64]
    n_unsure: Ints


def count_images(answer: Answer) -> ImageCounts:
    """Number and mean confidence of the unlabelled images of each category."""
    k = len(answer.categories)
    free = (answer.status != LABELLED) & (answer.category >= 0)
    own = answer.category[free]
    n = np.bincount(own, minlength=k)
    means = np.bincount(own, weights=answer.confidence[free], minlength=k) / np.maximum(n, 1)
    unsure = np.bincount(answer.category[free & (answer.status == UNSURE)], minlength=k)
    return ImageCounts(n, means, unsure)


def answer_of(assignments: Sequence[Assignment], categories: Sequence[Category]) -> Answer:
    """Answer of a model, from its assignments and categories by id.

    Parameters
    ----------
    assignments : sequence of Assignment, length n
        One per image.
    categories : sequence of Category
        All categories.

    Returns
    -------
    Answer

    Raises
    ------
    KeyError
        If an assignment names a category that is not among `categories`.
    """
    number = {category.id: k for k, category in enumerate(categories)} | {"": -1}
    outlier = [line.outlier for line in assignments]
    return Answer(
        files=tuple(line.file for line in assignments),
        category=np.array([number[line.category] for line in assignments], dtype=np.int64),
        status=np.array([line.status for line in assignments], dtype="<U10"),
        confidence=np.array([line.confidence for line in assignments], dtype=np.float32),
        second=np.array([number[line.second] for line in assignments], dtype=np.int64),
        second_confidence=np.array([line.second_confidence for line in assignments], dtype=np.float32),
        novelty=np.array([np.nan if line.novelty is None else line.novelty for line in assignments], dtype=np.float32),
        outlier=None if None in outlier else np.array(outlier, dtype=bool),
        categories=tuple(
            CategoryState(
                id=category.id,
                name=category.name,
                status=category.status,
                given=bool(category.given),
                prototypes=category.prototypes,
            )
            for category in categories
        ),
    )
