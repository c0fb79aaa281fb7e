"""Which of generously many categories are really used: small ones go, and duplicates become one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from newkind.training.inference import Predictions

__all__ = ["Merging", "plan_merging"]

SMALL = 0.1
"""A new category with fewer images than this share of the median category (or with a single one) is too small."""
DOUBT = 0.5
"""Two new categories are one if the network is, on average over their images, at least so undecided between the two.
0: every image is sure of its category; 1: both are equally likely for every image."""


@dataclass(frozen=True)
class Merging:
    """A plan: which prototypes make up each category."""

    groups: list[list[int]]
    """Known classes first, each with its own prototype."""
    sizes: list[int]
    """(K,): unlabelled images of each prototype."""
    n_empty: int
    n_small: int
    n_duplicates: int

    def sentence(self) -> str:
        """How many are used, and what became of the others."""
        parts = [
            f"{n} {what}"
            for n, what in (
                (self.n_empty, "without any image"),
                (self.n_small, "too small (their images go to the next best)"),
                (self.n_duplicates, "merged with their likes"),
            )
            if n
        ]
        rest = f": {', '.join(parts)}" if parts else ""
        return f"Of room for {len(self.sizes)} categories, {len(self.groups)} are used{rest}."


def plan_merging(predictions: Predictions, is_free: NDArray[np.bool_], *, n_prototypes: int, n_known: int) -> Merging:
    """From the predictions for unlabelled images. Known classes are never touched."""
    best, second = predictions.best[is_free], predictions.second[is_free]
    sizes = np.bincount(best, minlength=n_prototypes)
    least = max(SMALL * float(np.median(sizes[sizes > 0])), 2.0) if sizes.any() else 2.0
    new = np.arange(n_known, n_prototypes)
    empty, small = new[sizes[new] == 0], new[(sizes[new] > 0) & (sizes[new] < least)]
    kept = np.setdiff1d(new, np.concatenate([empty, small]))
    # Doubt between a and b: twice the second's share of both, summed over their images for which the two come first.
    p, q = predictions.best_probability[is_free], predictions.second_probability[is_free]
    doubt = np.zeros((n_prototypes, n_prototypes))
    np.add.at(doubt, (best, second), 2 * q / np.maximum(p + q, 1e-12))
    doubt = (doubt + doubt.T) / np.maximum(sizes[:, None] + sizes[None, :], 1)
    groups = [[int(k)] for k in kept]
    while len(groups) > 1:
        between = np.array([[doubt[np.ix_(a, b)].mean() if a is not b else 0.0 for b in groups] for a in groups])
        a, b = np.unravel_index(between.argmax(), between.shape)
        if between[a, b] < DOUBT:
            break
        groups[a] += groups.pop(b) if b > a else []
    known = [[k] for k in range(n_known)]
    return Merging(
        groups=known + groups,
        sizes=[int(n) for n in sizes],
        n_empty=len(empty),
        n_small=len(small),
        n_duplicates=len(kept) - len(groups),
    )
