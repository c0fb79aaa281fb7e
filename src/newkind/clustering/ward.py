"""Ward's tree over weighted points, which holds a clustering for every number of clusters.

Neither `sklearn.cluster.ward_tree` nor `scipy.cluster.hierarchy.linkage` accepts weights. They are needed here because a
point may stand for many samples (see `newkind.clustering.n_categories`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

__all__ = ["WardTree", "ward_tree"]


@dataclass(frozen=True)
class WardTree:
    """The n_points - 1 merges of Ward's method, cheapest first.

    Parameters
    ----------
    merges : ndarray of shape (n_points - 1, 2)
        For each merge, one point of each of the two clusters that are merged.
    heights : ndarray of shape (n_points - 1,)
        Increase of the sum of squared distances to the cluster means by each merge.
    """

    merges: NDArray[np.int64]
    heights: NDArray[np.float64]

    def cut(self, n_clusters: ArrayLike) -> list[NDArray[np.int64]]:
        """Return the clusters for each of several numbers of clusters.

        Parameters
        ----------
        n_clusters : array-like of int
            Numbers of clusters, each between 1 and the number of points.

        Returns
        -------
        list of ndarray of shape (n_points,)
            The cluster of each point, one array per number of clusters.
        """
        n = len(self.merges) + 1
        cuts = []
        for k in np.asarray(n_clusters).tolist():
            a, b = self.merges[: n - k].T
            graph = coo_matrix((np.ones(len(a), dtype=np.int8), (a, b)), shape=(n, n))
            cuts.append(connected_components(graph, directed=False)[1].astype(np.int64))
        return cuts


def ward_tree(points: ArrayLike, weights: ArrayLike) -> WardTree:
    """Build Ward's tree by nearest-neighbour chains, in O(n²) time and memory.

    Parameters
    ----------
    points : array-like of shape (n_points, n_features)
        Coordinates of the points.
    weights : array-like of shape (n_points,)
        Number of samples that each point stands for.

    Returns
    -------
    WardTree
        The merges and their heights.

    Examples
    --------
    >>> tree = ward_tree([[0.0], [1.0], [10.0]], [1, 1, 1])
    >>> tree.heights.round(3).tolist()
    [0.5, 60.167]
    >>> [cut.tolist() for cut in tree.cut([2, 1])]
    [[0, 0, 1], [0, 0, 0]]
    """
    x, size = np.asarray(points, dtype=np.float64), np.array(weights, dtype=np.float64)
    n = len(x)
    cost = _pair_costs(x, size)
    merges, heights = np.empty((max(n - 1, 0), 2), dtype=np.int64), np.empty(max(n - 1, 0))
    alive = np.ones(n, dtype=bool)
    chain: list[int] = []
    for step in range(n - 1):
        if not chain:
            chain = [int(alive.argmax())]
        while True:
            a = chain[-1]
            b = int(cost[a].argmin())
            if len(chain) > 1:
                if cost[a, chain[-2]] <= cost[a, b]:
                    b = chain[-2]
                if b == chain[-2]:
                    break
            chain.append(b)
        del chain[-2:]
        height = cost[a, b]
        merges[step], heights[step] = (a, b), height
        # Update by Lance and Williams for Ward's method; cluster b stays and a is removed.
        row = ((size[a] + size) * cost[a] + (size[b] + size) * cost[b] - size * height) / (size[a] + size[b] + size)
        row[~alive] = row[a] = row[b] = np.inf
        cost[b], cost[:, b] = row, row
        cost[a], cost[:, a], alive[a] = np.inf, np.inf, False
        size[b] += size[a]
    order = np.argsort(heights, kind="stable")
    return WardTree(merges[order], heights[order])


def _pair_costs(x: NDArray[np.float64], size: NDArray[np.float64]) -> NDArray[np.float32]:
    """Cost (n, n) of merging any two points (n, d) of weights (n,); infinite on the diagonal."""
    square = (x * x).sum(axis=1)
    cost = np.maximum(square[:, None] + square - 2 * x @ x.T, 0)
    cost *= size[:, None] * size / (size[:, None] + size)
    narrow: NDArray[np.float32] = cost.astype(np.float32)
    np.fill_diagonal(narrow, np.inf)
    return narrow
