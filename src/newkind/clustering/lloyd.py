"""Lloyd's iteration: every free row to its nearest centre, every centre to the mean of its rows, until neither changes.

Exact, but not from scratch each time: soon only a few centres move. A row is compared with those; with the others only if
that leaves its nearest centre in doubt. A centre whose rows stay the same is not computed again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from newkind.clustering.rows import Rows

__all__ = ["Assign", "Nearest", "Sums", "inertia", "lloyd", "nearest", "sums_of"]

ROUNDING = 4 * torch.finfo(torch.float32).eps
"""Of |x|² + |c|²: a squared distance below this is what rounding leaves of none at all."""
MANY = 0.75
"""Of the centres: if more have moved, rows are compared with all."""


@dataclass(frozen=True, eq=False)
class Sums:
    """What the members of each cluster add up to."""

    features: Tensor
    """(K, d) float64"""
    counts: Tensor
    """(K,) int64"""

    def copy(self) -> Sums:
        return Sums(self.features.clone(), self.counts.clone())

    def add(self, x: Tensor, labels: Tensor, *, sign: int = 1) -> None:
        """Rows x (b, d) come to their clusters (b,), or leave them with sign -1."""
        n_clusters = len(self.counts)
        if x.device.type == "cpu":
            part = torch.zeros(n_clusters, x.shape[1]).index_add_(0, labels, x)
        else:  # index_add_ adds in no fixed order on a GPU
            part = torch.nn.functional.one_hot(labels, n_clusters).to(x).T @ x
        self.features.add_(part, alpha=sign)
        self.counts.add_(torch.bincount(labels, minlength=n_clusters), alpha=sign)


@dataclass(frozen=True, eq=False)
class Nearest:
    """The rows' nearest centres."""

    labels: Tensor
    """(n,) int64"""
    scores: Tensor
    """(n,): |x - c|² - |x|²"""

    def distances(self, rows: Rows, centers: Tensor) -> Tensor:
        """(n,), squared; 0 where it is no more than rounding."""
        noise = ROUNDING * (rows.squares + centers.square().sum(dim=1)[self.labels])
        distance = rows.squares + self.scores
        return distance.masked_fill_(distance < noise, 0)


Assign = Callable[[Rows, Tensor, Tensor | None], Nearest]
"""(rows, centres (K, d), labels so far) -> which centre each row goes to."""


def sums_of(rows: Rows, labels: Tensor, n_clusters: int) -> Sums:
    """Of rows whose clusters (n,) are known."""
    sums = Sums(
        torch.zeros(n_clusters, rows.dim, dtype=torch.float64, device=rows.device),
        torch.zeros(n_clusters, dtype=torch.int64, device=rows.device),
    )
    for piece, x in rows.chunks(rows.dim):
        sums.add(x, labels[piece])
    return sums


def inertia(rows: Rows, centers: Tensor, labels: Tensor) -> float:
    """The sum of squared distances to the rows' own centres, from the differences themselves."""
    total = torch.zeros((), dtype=torch.float64, device=rows.device)
    for piece, x in rows.chunks(rows.dim):
        own = labels[piece]
        for start in range(0, len(x), 512):  # what a core keeps at hand
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
    """The nearest of the centres (K, d) for every row.

    before: what it was until the centres `moved` (K,) bool; the others are where they were. sums: made to follow the rows.
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
    """The number (b,) and score (b,) of the best centre. lengths: (K,), directions: (d, K)."""
    scores = torch.addmm(lengths, x, directions)  # (b, K)
    labels = _lowest(scores)
    return labels, scores.gather(1, labels[:, None]).squeeze(1)


def _lowest(scores: Tensor) -> Tensor:
    """(b, K) -> (b,): the first column with the least score. On a CPU, NumPy is five times as fast at it as torch."""
    return torch.from_numpy(scores.numpy().argmin(axis=1)) if scores.device.type == "cpu" else scores.argmin(dim=1)


def _best_again(
    x: Tensor, lengths: Tensor, directions: Tensor, labels: Tensor, scores: Tensor, few: Tensor
) -> tuple[Tensor, Tensor]:
    """As _best, from the answer before the centres `few` (M,) moved."""
    if not len(few):
        return labels, scores
    found, best = _best(x, lengths[few], directions[:, few])
    # Every centre that stayed scores no better than the best did before. So the best of the moved wins if it reaches
    # that; if it does not, the old one stays, unless that is one that moved: then any of the others may be next.
    has_moved = torch.zeros(len(lengths), dtype=torch.bool, device=x.device).index_fill_(0, few, True)[labels]  # (b,)
    wins = torch.where(has_moved, best <= scores, best < scores)
    lost = (has_moved & ~wins).nonzero().squeeze(1)
    labels, scores = torch.where(wins, few[found], labels), torch.where(wins, best, scores)
    if len(lost):
        labels[lost], scores[lost] = _best(x[lost], lengths, directions)
    return labels, scores


def lloyd(
    free: Rows, fixed: Sums, centers: Tensor, *, max_iter: int, tolerance: float, assign: Assign | None = None
) -> tuple[Tensor, Tensor, int]:
    """Centres (K, d), the free rows' labels (n,) and the number of iterations, from the centres to start with.

    fixed: of the rows that stay where they are. tolerance: it ends when the squared shift of all centres together is no
    larger. assign: takes the place of the nearest centre.
    """
    before: Nearest | None = None
    moved, sums = None, fixed.copy()
    for n_iter in range(1, max_iter + 1):
        if assign is None:
            found = nearest(free, centers, before=before, moved=moved, sums=sums)
        else:
            found = assign(free, centers, None if before is None else before.labels)
            sums = sums_of(free, found.labels, len(centers))
            sums.features.add_(fixed.features)
            sums.counts.add_(fixed.counts)
        if before is not None and torch.equal(found.labels, before.labels):
            return centers, found.labels, n_iter
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
    if assign is None:
        found = nearest(free, centers, before=before, moved=moved)
    else:
        found = assign(free, centers, None if before is None else before.labels)
    return centers, found.labels, n_iter


def _fill_empty(free: Rows, found: Nearest, sums: Sums, centers: Tensor) -> None:
    """Gives every empty cluster a row that is far from all centres, if there is one. No cluster is emptied for it."""
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
