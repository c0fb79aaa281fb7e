"""Ward's tree over weighted points: every number of clusters at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["WardTree", "ward_tree"]


@dataclass(frozen=True)
class WardTree:
    """M - 1 merges, cheapest first."""

    merges: NDArray[np.int64]
    """(M - 1, 2): a point of each of the two clusters that are joined."""
    heights: NDArray[np.float64]
    """(M - 1,): by how much each merge raises the sum of squares."""

    def cut(self, sizes: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """For each wanted number of clusters, falling, the cluster of every point, (M,)."""
        n = len(self.merges) + 1
        parent = np.arange(n)
        cuts, done = [], 0
        for size in sizes:
            for a, b in self.merges[done : n - size]:
                parent[_root(parent, a)] = _root(parent, b)
            done = max(done, n - int(size))
            roots = parent
            while (deeper := roots[roots]).tolist() != roots.tolist():
                roots = deeper
            cuts.append(np.unique(roots, return_inverse=True)[1].astype(np.int64))
        return cuts


def _root(parent: NDArray[np.int64], i: int) -> int:
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = int(parent[i])
    return i


def ward_tree(points: NDArray[np.floating], weights: NDArray[np.floating]) -> WardTree:
    """points (M, d), weights (M,): how many samples each stands for. Nearest-neighbour chains, O(M^2) time and memory."""
    x, size = points.astype(np.float64), weights.astype(np.float64).copy()
    n = len(x)
    square = (x * x).sum(axis=1)
    cost = np.maximum(square[:, None] + square - 2 * x @ x.T, 0)
    cost = (cost * (size[:, None] * size / (size[:, None] + size))).astype(np.float32)  # (M, M)
    np.fill_diagonal(cost, np.inf)
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
        # Lance and Williams' update for Ward; cluster b stays, a goes.
        row = ((size[a] + size) * cost[a] + (size[b] + size) * cost[b] - size * height) / (size[a] + size[b] + size)
        row[~alive] = row[a] = row[b] = np.inf
        cost[b], cost[:, b] = row, row
        cost[a], cost[:, a], alive[a] = np.inf, np.inf, False
        size[b] += size[a]
    order = np.argsort(heights, kind="stable")
    return WardTree(merges[order], heights[order])
