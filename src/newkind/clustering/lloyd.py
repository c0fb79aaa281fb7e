"""Lloyd's iteration: assign every free row to its nearest centre and move every centre to the mean of its rows.

It is exact but reuses the previous iteration. After some iterations only a few centres move, so a row is compared with those,
and with the others only if that leaves its nearest centre open. A centre whose rows stay the same is not computed again.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from newkind.clustering.rows import Rows

__all__ = ["Nearest", "Solution", "Sums", "inertia", "lloyd", "nearest", "sums_of"]

ROUNDING = 4 * torch.finfo(torch.float32).eps
"""A squared distance below this share of |x|² + |c|² is rounding error of a distance of 0."""
MANY = 0.75
"""If more than this share of the centres has moved, rows are compared with all."""


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over the members of each cluster.

    Parameters
    ----------
    features : tensor of float64, shape (K, d)
        Sum of the rows.
    counts : tensor of int64, shape (K,)
        Number of rows.
    """

    features: Tensor
    counts: Tensor

    def copy(self) -> Sums:
        """An independent copy."""
        return Sums(self.features.clone(), self.counts.clone())

    def add(self, x: Tensor, labels: Tensor, *, sign: int = 1) -> None:
        """Add rows to their clusters in place, or remove them.

        Parameters
        ----------
        x : tensor of shape (b, d)
            Rows.
        labels : tensor of int64, shape (b,)
            Their clusters.
        sign : {1, -1}, default=1
            1 to add, -1 to remove.
        """
        n_clusters = len(self.counts)
        if x.device.type == "cpu":
            part = torch.zeros(n_clusters, x.shape[1]).index_add_(0, labels, x)
        else:  # index_add_ is not deterministic on a GPU
            part = torch.nn.functional.one_hot(labels, n_clusters).to(x).T @ x
        self.features.add_(part, alpha=sign)
        self.counts.add_(torch.bincount(labels, minlength=n_clusters), alpha=sign)


@dataclass(frozen=True, eq=False)
class Nearest:
    """The nearest centre of each of n rows.

    Parameters
    ----------
    labels : tensor of int64, shape (n,)
        Number of the nearest centre c.
    scores : tensor of shape (n,)
        |x - c|² - |x|².
    """

    labels: Tensor
    scores: Tensor

    def distances(self, rows: Rows, centers: Tensor) -> Tensor:
        """Squared distances (n,) of the rows to the nearest of the centres (K, d); 0 where they are only rounding error."""
        noise = ROUNDING * (rows.squares + centers.square().sum(dim=1)[self.labels])
        distance = rows.squares + self.scores
        return distance.masked_fill_(distance < noise, 0)


@dataclass(frozen=True, eq=False)
class Solution:
    """Where Lloyd's iteration ended.

    Parameters
    ----------
    centers : tensor of shape (K, d)
        Cluster centres.
    labels : tensor of int64, shape (n,)
        Cluster of each free row.
    n_iter : int
        Number of iterations.
    """

    centers: Tensor
    labels: Tensor
    n_iter: int


def sums_of(rows: Rows, labels: Tensor, n_clusters: int) -> Sums:
    """Sum rows whose clusters are given.

    Parameters
    ----------
    rows : Rows
        The n rows.
    labels : tensor of int64, shape (n,)
        Their clusters.
    n_clusters : int
        Number of clusters.

    Returns
    -------
    Sums
        Sums and counts of all clusters.
    """
    sums = Sums(
        torch.zeros(n_clusters, rows.dim, dtype=torch.float64, device=rows.device),
        torch.zeros(n_clusters, dtype=torch.int64, device=rows.device),
    )
    for piece, x in rows.chunks(rows.dim):
        sums.add(x, labels[piece])
    return sums


def inertia(rows: Rows, centers: Tensor, labels: Tensor) -> float:
    """Sum of the squared distances of rows to their own centres, `labels` (n,) of (K, d), from the differences."""
    total = torch.zeros((), dtype=torch.float64, device=rows.device)
    for piece, x in rows.chunks(rows.dim):
        own = labels[piece]
        for start in range(0, len(x), 512):  # fits into a core's cache
            some = slice(start, start + 512)
            total += (x[some] - centers[own[some]]).square_().sum(dtype=torch.float64)
    return float(total)


def nearest(
    rows: Rows,
    centers: Tensor,
    *,
    before: Nearest | None = None,
    moved: Tensor | None = None,
    sums: Sums | None = None,
) -> Nearest:
    """Find the nearest centre of every row.

    Parameters
    ----------
    rows : Rows
        The n rows.
    centers : tensor of shape (K, d)
        The centres, shifted as the rows are.
    before : Nearest, optional
        The answer before some centres moved; the others must be unchanged.
    moved : tensor of bool, shape (K,), optional
        Which centres have moved since then.
    sums : Sums, optional
        Sums of the clusters, updated in place to the new answer.

    Returns
    -------
    Nearest
        The nearest centre of each row.
    """
    labels = torch.empty(len(rows), dtype=torch.int64, device=rows.device)
    scores = torch.empty(len(rows), device=rows.device)
    lengths, directions = centers.square().sum(dim=1), centers.T * -2
    few = None
    if before is not None and moved is not None and int(moved.sum()) <= MANY * len(centers):
        few = moved.nonzero().squeeze(1)
    for piece, x in rows.chunks(len(centers)):
        if before is None or few is None:
            labels[piece], scores[piece] = _best(x, lengths, directions)
        else:
            old = before.labels[piece], before.scores[piece]
            labels[piece], scores[piece] = _best_again(x, lengths, directions, *old, few)
        if sums is not None and before is None:
            sums.add(x, labels[piece])
        elif sums is not None and before is not None:
            changed = (labels[piece] != before.labels[piece]).nonzero().squeeze(1)
            if len(changed):
                sums.add(x[changed], before.labels[piece][changed], sign=-1)
                sums.add(x[changed], labels[piece][changed])
    return Nearest(labels, scores)


def _best(x: Tensor, lengths: Tensor, directions: Tensor) -> tuple[Tensor, Tensor]:
    """Number (b,) and score (b,) of the best centre; lengths: (K,), directions: (d, K)."""
    scores = torch.addmm(lengths, x, directions)  # (b, K)
    labels = _lowest(scores)
    return labels, scores.gather(1, labels[:, None]).squeeze(1)


def _lowest(scores: Tensor) -> Tensor:
    """First column (b,) with the lowest score of (b, K). On a CPU, NumPy's argmin is five times as fast as torch's."""
    return torch.from_numpy(scores.numpy().argmin(axis=1)) if scores.device.type == "cpu" else scores.argmin(dim=1)


def _best_again(
    x: Tensor, lengths: Tensor, directions: Tensor, labels: Tensor, scores: Tensor, few: Tensor
) -> tuple[Tensor, Tensor]:
    """As `_best`, from the answer before the centres `few` (M,) moved."""
    if not len(few):
        return labels, scores
    found, best = _best(x, lengths[few], directions[:, few])
    # No unmoved centre scores better than the previous best. So the best moved centre wins if it reaches that score. If it
    # does not, the previous best stays, unless it has moved itself: then all centres are compared.
    has_moved = torch.zeros(len(lengths), dtype=torch.bool, device=x.device).index_fill_(0, few, True)[labels]  # (b,)
    wins = torch.where(has_moved, best <= scores, best < scores)
    lost = (has_moved & ~wins).nonzero().squeeze(1)
    labels, scores = torch.where(wins, few[found], labels), torch.where(wins, best, scores)
    if len(lost):
        labels[lost], scores[lost] = _best(x[lost], lengths, directions)
    return labels, scores


def lloyd(free: Rows, fixed: Sums, centers: Tensor, *, max_iter: int, tolerance: float) -> Solution:
    """Run Lloyd's iteration from given centres.

    Parameters
    ----------
    free : Rows
        Rows that go to their nearest centre.
    fixed : Sums
        Sums of the rows that keep their cluster.
    centers : tensor of shape (K, d)
        Centres to start from, shifted as the rows are.
    max_iter : int
        Largest number of iterations.
    tolerance : float
        It ends when the squared shift of all centres together is at most this.

    Returns
    -------
    Solution
        Centres, labels of the free rows, and number of iterations.
    """
    before: Nearest | None = None
    moved, sums = None, fixed.copy()
    for n_iter in range(1, max_iter + 1):
        found = nearest(free, centers, before=before, moved=moved, sums=sums)
        if before is not None and torch.equal(found.labels, before.labels):
            return Solution(centers, found.labels, n_iter)
        _fill_empty(free, found, sums, centers)
        before = found
        # A cluster that is still empty keeps its centre.
        has_rows = (sums.counts > 0)[:, None]
        means = torch.where(has_rows, sums.features / sums.counts.clamp(min=1)[:, None], centers).float()
        moved = (means != centers).any(dim=1)
        shift = float((means - centers).square().sum(dtype=torch.float64))
        centers = means
        if shift <= tolerance:
            break
    return Solution(centers, nearest(free, centers, before=before, moved=moved).labels, n_iter)


def _fill_empty(free: Rows, found: Nearest, sums: Sums, centers: Tensor) -> None:
    """Move a row that is far from all centres to every empty cluster, if there is one, without emptying another cluster."""
    empty = (sums.counts == 0).nonzero().squeeze(1).tolist()
    if not empty or not len(free):
        return
    distance, places = found.distances(free, centers).topk(min(len(free), 8 * len(empty) + 64))
    rows = free.take(places)  # (m, d)
    for cluster in empty:
        distance = torch.where(sums.counts[found.labels[places]] > 1, distance, 0)
        far = int(distance.argmax())
        if not distance[far] > 0:
            return
        row, place = rows[far, None], places[far]
        sums.add(row, found.labels[place, None], sign=-1)
        found.labels[place] = cluster
        sums.add(row, found.labels[place, None])
        distance = torch.minimum(distance, (rows - row).square().sum(dim=1))
