"""Remove and merge prototypes after training with more prototypes than there are categories.

New prototypes without images are removed, very small ones are dissolved, and near-copies of one category are merged.
Known classes are never changed.

Near-copies are recognised by doubt. An image's doubt between its best and its second prototype is twice the second's
share of the two probabilities: 0 if the best is certain, 1 if both are equally likely. The doubt between prototypes a
and b is the sum over the images that have the two as best and second, divided by the number of images of a and b.

If k prototypes are even copies of one category, an image has each of the k - 1 others as its second equally often, so the
doubt between any two of them is only 1 / (k - 1). A group of k prototypes is therefore one category if k - 1 times the
mean doubt between its two least related parts is at least `DOUBT`: for two prototypes this is the doubt itself, and even
copies are merged at the same doubt however many there are. The groups come from average linkage on the doubts, searched
from the largest group down.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import ClusterNode, linkage, to_tree

from newkind.training.inference import Predictions

__all__ = ["Merging", "plan_merging"]

SMALL = 0.1
"""A new category with fewer images than this share of the median category, or with a single image, is dissolved."""
DOUBT = 0.5
"""Least doubt at which new prototypes are merged: 0 for certain images, 1 for images between equally likely prototypes."""


@dataclass(frozen=True)
class Merging:
    """Plan of which prototypes make up each category.

    Parameters
    ----------
    groups : list of list of int
        Prototypes of each category, known classes first, each with its own prototype.
    sizes : list of int
        Number of unlabelled images of each prototype before merging.
    n_empty : int
        Number of new prototypes without images, which are removed.
    n_small : int
        Number of new prototypes with too few images. They are removed, and their images are assigned to the next best.
    n_duplicates : int
        Number of new prototypes that are merged into another one.
    """

    groups: list[list[int]]
    sizes: list[int]
    n_empty: int
    n_small: int
    n_duplicates: int

    def sentence(self) -> str:
        """Return the number of categories in use and why the others are not.

        Returns
        -------
        str
            One sentence.

        Examples
        --------
        >>> Merging(groups=[[0], [1]], sizes=[5, 4], n_empty=0, n_small=0, n_duplicates=0).sentence()
        'All 2 categories are in use.'
        >>> Merging(groups=[[0], [2, 3]], sizes=[5, 0, 4, 3], n_empty=1, n_small=0, n_duplicates=1).sentence()
        '2 of 4 categories are in use: 1 without images, 1 merged into a similar one.'
        """
        n, n_used = len(self.sizes), len(self.groups)
        if n_used == n:
            return f"All {n} categories are in use." if n > 1 else "The only category is in use."
        parts = [
            f"{count} {one if count == 1 else many}"
            for count, one, many in (
                (self.n_empty, "without images", "without images"),
                (
                    self.n_small,
                    "too small (its images are assigned to the next best category)",
                    "too small (their images are assigned to the next best category)",
                ),
                (self.n_duplicates, "merged into a similar one", "merged into similar ones"),
            )
            if count
        ]
        are = "is" if n_used == 1 else "are"
        return f"{n_used} of {n} categories {are} in use: {', '.join(parts)}."


def plan_merging(predictions: Predictions, is_free: NDArray[np.bool_], *, n_prototypes: int, n_known: int) -> Merging:
    """Decide which prototypes are kept, removed and merged, from the predictions of unlabelled images.

    Parameters
    ----------
    predictions : Predictions
        Predictions of all n images.
    is_free : array of bool, shape (n,)
        Whether each image is unlabelled. Labelled images do not count.
    n_prototypes : int
        Number of prototypes, known classes first.
    n_known : int
        Number of known classes. Their prototypes are never removed or merged.

    Returns
    -------
    Merging
        The plan; nothing is changed yet.
    """
    best = predictions.best[is_free]
    sizes = np.bincount(best, minlength=n_prototypes)
    least = max(SMALL * float(np.median(sizes[sizes > 0])), 2.0) if sizes.any() else 2.0
    new = np.arange(n_known, n_prototypes)
    is_empty, is_kept = sizes[new] == 0, sizes[new] >= least
    kept = new[is_kept]
    groups = group_duplicates(_doubt(predictions, is_free, sizes)[np.ix_(kept, kept)])
    return Merging(
        groups=[[k] for k in range(n_known)] + [[int(kept[i]) for i in group] for group in groups],
        sizes=[int(n) for n in sizes],
        n_empty=int(is_empty.sum()),
        n_small=int((~is_empty & ~is_kept).sum()),
        n_duplicates=len(kept) - len(groups),
    )


def _doubt(predictions: Predictions, is_free: NDArray[np.bool_], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Doubt between any two prototypes, (K, K), symmetric with values in [0, 1]; sizes: (K,)."""
    p, q = predictions.best_probability[is_free], predictions.second_probability[is_free]
    total = np.zeros((len(sizes), len(sizes)))
    np.add.at(total, (predictions.best[is_free], predictions.second[is_free]), 2 * q / np.maximum(p + q, 1e-12))
    doubt: NDArray[np.float64] = (total + total.T) / np.maximum(sizes[:, None] + sizes, 1)
    return doubt


def group_duplicates(doubt: NDArray[np.float64]) -> list[list[int]]:
    """Group K prototypes by their doubt (K, K); groups and their members are in ascending order."""
    n = len(doubt)
    if n < 2:
        return [[i] for i in range(n)]
    tree = to_tree(linkage(1 - doubt[np.triu_indices(n, k=1)], "average"))
    groups, pending = [], [tree]
    while pending:
        node: ClusterNode = pending.pop()
        # Average linkage rises towards the root, so the doubt between this node's parts is the lowest within it.
        if node.is_leaf() or (node.count - 1) * (1 - node.dist) >= DOUBT:
            groups.append(sorted(node.pre_order()))
        else:
            pending += [node.left, node.right]
    return sorted(groups)
