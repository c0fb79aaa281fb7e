"""Categories of groups: images of a group share the category with the most evidence."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["GroupEvidence"]

SMALLEST = 1e-6
"""Least probability of a category: without it, one image that is wrong and sure of it would outvote all others."""


class GroupEvidence:
    """Evidence of all images of each group, and the probabilities that follow from it.

    The evidence of a group for a category is the mean of the logarithms of its images' probabilities. Its category is the same
    as that of their product, which takes images as independent; but the images of a burst are not, and the mean keeps
    confidences on the scale of one image. A labelled image decides for its group.

    Parameters
    ----------
    groups : ndarray of int64, shape (n,)
        Group of each image; -1 for an image of its own.
    labels : Tensor of int64, shape (n,)
        Given labels, -1 for unlabelled. Where those of a group differ, which only decisions about a run can cause, none of
        them decides.

    Examples
    --------
    >>> evidence = GroupEvidence(np.array([0, 0, -1]), torch.tensor([-1, -1, -1]))
    >>> p = torch.tensor([[0.9, 0.1], [0.3, 0.7], [0.2, 0.8]])
    >>> evidence.add(p, slice(0, 3))
    >>> evidence.share(p, slice(0, 3)).argmax(dim=1).tolist()
    [0, 0, 1]
    """

    def __init__(self, groups: NDArray[np.int64], labels: Tensor) -> None:
        _, inverse, counts = np.unique(groups, return_inverse=True, return_counts=True)
        is_shared = (groups >= 0) & (counts[inverse] > 1)
        _, numbers = np.unique(groups[is_shared], return_inverse=True)
        self.number = torch.full((len(groups),), -1)
        self.number[torch.from_numpy(is_shared)] = torch.from_numpy(numbers.astype(np.int64))
        n_groups = int(self.number.max()) + 1 if len(groups) else 0
        self.label = torch.full((n_groups,), -1)
        given = (self.number >= 0) & (labels >= 0)
        self.label[self.number[given]] = labels[given]
        self.label[self.number[given][self.label[self.number[given]] != labels[given]]] = -1  # decisions contradict
        self._size = torch.bincount(self.number[self.number >= 0], minlength=n_groups)
        self._is_free = labels < 0
        self._sum: Tensor | None = None

    def add(self, probabilities: Tensor, rows: slice) -> None:
        """Add the probabilities (b, K) of the images in `rows`; every image once."""
        if self._sum is None:
            self._sum = torch.zeros(len(self.label), probabilities.shape[1])
        number = self.number[rows]
        member = number >= 0
        self._sum.index_add_(0, number[member], probabilities.cpu().float()[member].clamp_min(SMALLEST).log())

    def share(self, probabilities: Tensor, rows: slice) -> Tensor:
        """Probabilities (b, K) of the images in `rows` by the evidence of their groups.

        Images of their own keep theirs, and so do labelled ones, so that a label that does not fit can be seen.
        """
        number = self.number[rows]
        member = (number >= 0) & self._is_free[rows]
        if self._sum is None or not bool(member.any()):
            return probabilities
        chosen = number[member]
        shared = (self._sum[chosen] / self._size[chosen, None]).softmax(dim=1)
        label = self.label[chosen]
        decided = label >= 0
        shared[decided] = torch.nn.functional.one_hot(label[decided], shared.shape[1]).to(shared.dtype)
        found = probabilities.clone()
        found[member.to(found.device)] = shared.to(found)
        return found
