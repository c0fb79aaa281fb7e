"""Proposed sub-groups of a category."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from newkind.clustering.ward import ward_tree
from newkind.review.snapshot import Snapshot

__all__ = ["propose_groups"]

MOST_POINTS = 1500  # Images that Ward's tree is built of; the others join the nearest group.
MOST_PROPOSED = 6
Lines = NDArray[np.int64]


def propose_groups(snapshot: Snapshot, k: int, n: int | None = None) -> list[Lines]:
    """Sub-groups of a category by the similarity of its images.

    Parameters
    ----------
    snapshot : Snapshot
        The current answer.
    k : int
        Index of the category.
    n : int, optional
        Number of groups. Default: the number from 2 to 6 before the largest relative increase of the cost of a merge.

    Returns
    -------
    list of ndarray of int64
        Rows of each group, the largest group first, in each group the most typical first. One group if there are no
        features, or fewer images than groups.
    """
    lines = snapshot.members[k]
    if snapshot.space is None or len(lines) < max(n or 2, 2):
        return [lines]
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.permutation(len(lines))[:MOST_POINTS])
    rows = snapshot.space.rows(lines)
    tree = ward_tree(rows[chosen], np.ones(len(chosen)))
    group = tree.cut([n or _likely_number(tree.heights)])[0]
    centres = np.stack([rows[chosen][group == g].mean(axis=0) for g in range(group.max() + 1)])
    nearest = (rows @ centres.T - (centres**2).sum(axis=1) / 2).argmax(axis=1)
    nearest[chosen] = group
    fit = (rows * centres[nearest]).sum(axis=1)
    groups = [np.flatnonzero(nearest == g) for g in range(len(centres))]
    return [lines[g[np.argsort(-fit[g], kind="stable")]] for g in sorted(groups, key=len, reverse=True)]


def _likely_number(heights: NDArray[np.float64]) -> int:
    """Number of groups, from the increasing costs of the merges of a tree."""
    costs = np.maximum(heights[::-1][:MOST_PROPOSED], 1e-12)  # costs[i]: of the merge that leaves i + 1 groups
    return 2 if len(costs) < 2 else int((costs[:-1] / costs[1:]).argmax()) + 2
