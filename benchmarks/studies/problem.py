"""Labels and truth of a study's images."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["LabelledProblem"]


@dataclass(kw_only=True)
class LabelledProblem:
    """Labels and truth of n images, known classes first; subclasses add the features that `AllImages` has.

    Parameters
    ----------
    labels : Tensor of shape (n,)
        Class indices, -1 for unlabelled.
    truth : ndarray of int, shape (n,)
        True classes.
    seed : int, default=0
        Seed of random choices.
    """

    labels: Tensor
    truth: NDArray[np.integer[Any]]
    seed: int = 0
    n_known: int = field(init=False)

    def __post_init__(self) -> None:
        self.n_known = int(self.labels.max()) + 1

    @property
    def n_categories(self) -> int:
        """True number of categories."""
        return int(self.truth.max()) + 1
