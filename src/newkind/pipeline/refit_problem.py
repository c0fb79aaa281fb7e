"""What a refit solves: images, labels, prototypes and forbidden pairs, from the current answer of a run."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from newkind.errors import RunError
from newkind.methods.method import Method
from newkind.runs.answer import APPROVED, JUNK, LABELLED, Answer, CategoryState

__all__ = ["Problem"]

CHUNK = 4096


class Problem:
    """m images that are not junk, C categories that have images (known ones first), and K prototypes.

    Parameters
    ----------
    answer : Answer
        Current answer.
    features : ndarray of float16, shape (n, d)
        Features of all images.
    method : Method
        Present model, which says to which prototype of its category an image belongs.

    Attributes
    ----------
    states : list of CategoryState, of length C
        The categories.
    statuses : list of str, of length C
        Their statuses after the refit.
    files : list of str, of length m
        Names of the images.
    features : Tensor of shape (m, d)
        Their features.
    category, labels : Tensor of int64, shape (m,)
        Present category, and confirmed category; -1 for none.
    prototype : Tensor of int64, shape (m,)
        Present prototype, -1 for none.
    category_of : Tensor of int64, shape (K,)
        Category of each prototype, ascending.
    forbidden : Tensor of int64, shape (n_pairs, 2)
        Images without a label and the categories that they were rejected from.
    """

    def __init__(self, answer: Answer, features: NDArray[np.float16], method: Method) -> None:
        rows = np.flatnonzero(answer.status != JUNK)
        own = answer.category[rows]
        used = np.bincount(own[own >= 0], minlength=len(answer.categories))
        order = sorted(np.flatnonzero(used).tolist(), key=lambda k: not _is_known(answer.categories[k]))
        place = np.full(len(answer.categories) + 1, -1)
        place[order] = np.arange(len(order))
        self.states = [answer.categories[k] for k in order]
        self.statuses = ["known" if _is_known(state) else "new" for state in self.states]
        self.files = [answer.files[i] for i in rows]
        self.features = torch.from_numpy(features[rows].astype(np.float32))
        self.category = torch.from_numpy(place[own])
        is_given = np.isin(answer.status[rows], (LABELLED, APPROVED))
        if not is_given.any():
            raise RunError(
                "There is no labelled image to learn from.", fix="Approve a category or images first.", code="no-labels"
            )
        self.labels = torch.where(torch.from_numpy(is_given), self.category, -1)
        self.forbidden = self._rejections(answer, rows, place)
        self.category_of, self.prototype = self._prototypes(method)

    @property
    def prototypes(self) -> list[tuple[int, ...]]:
        """Prototypes of each category."""
        return [tuple(torch.nonzero(self.category_of == k)[:, 0].tolist()) for k in range(len(self.states))]

    def forbidden_prototypes(self) -> Tensor:
        """Images without a label and the prototypes that they do not belong to, shape (n_pairs, 2)."""
        own = self.prototypes
        pairs = [[i, prototype] for i, k in self.forbidden.tolist() for prototype in own[k]]
        return torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2)

    def _rejections(self, answer: Answer, rows: NDArray[np.int64], place: NDArray[np.int64]) -> Tensor:
        """Pairs of an image and a category; none of an image that was rejected from all categories."""
        at = {int(row): i for i, row in enumerate(rows)}
        pairs = []
        for row, names in answer.rejected.items():
            columns = {int(place[answer.position[name]]) for name in names if name in answer.position} - {-1}
            if row in at and self.labels[at[row]] < 0 and len(columns) < len(self.states):
                pairs += [[at[row], column] for column in sorted(columns)]
        return torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2)

    @torch.no_grad()
    def _prototypes(self, method: Method) -> tuple[Tensor, Tensor]:
        """Category (K,) of each prototype, and prototype (m,) of each image.

        A category that was merged keeps the prototypes of its parts, as far as they have images: one prototype between
        two groups that look different would be near to neither.
        """
        category_of: list[int] = []
        prototype = torch.full_like(self.category, -1)
        for k, state in enumerate(self.states):
            rows = torch.nonzero(self.category == k)[:, 0]
            nearest = torch.zeros_like(rows)
            if len(state.prototypes) > 1:
                parts = torch.split(self.features[rows], CHUNK)
                nearest = torch.cat([method.logits(x)[:, list(state.prototypes)].argmax(dim=1) for x in parts])
            _, number = torch.unique(nearest, return_inverse=True)
            prototype[rows] = len(category_of) + number
            category_of += [k] * (int(number.max()) + 1)
        return torch.tensor(category_of), prototype


def _is_known(state: CategoryState) -> bool:
    return state.status == "known" or state.approved or state.renamed
