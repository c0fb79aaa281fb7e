"""Clusters of limited size: rows bid for places, and a full cluster becomes dearer until the rest looks elsewhere.

Bertsekas' auction for the transportation problem, Annals of Operations Research 14, 1988: the cost ends within N times the
smallest raise of the least possible one.
"""

from __future__ import annotations

import torch
from torch import Tensor

from newkind.clustering.lloyd import Assign, Nearest
from newkind.clustering.rows import CHUNK_CELLS, Rows
from newkind.errors import DataError

__all__ = ["auction", "capped"]

MAX_BYTES = 4 * 2**30
"""Of all rows' scores for all centres, which an auction needs at once."""
RAISE = 1e-2
"""The smallest raise of a bid, as a part of the mean squared distance: costs end within this part of the least ones."""
PATIENCE = 2000
"""Rounds after which raises are doubled; without end, two clusters could outbid each other by next to nothing."""


def capped(room: Tensor) -> Assign:
    """Assigns rows to near centres so that cluster k gets at most room[k] (K,) of them, all together nearly optimally."""

    def assign(rows: Rows, centers: Tensor, labels: Tensor | None) -> Nearest:
        scores = _all_scores(rows, centers)
        mean_distance = float((scores.amin(dim=1) + rows.squares).mean().clamp(min=0)) if len(rows) else 0.0
        found = auction(scores, room, smallest_raise=RAISE * mean_distance)
        new = scores.gather(1, found[:, None]).squeeze(1)
        if labels is not None:
            old = scores.gather(1, labels[:, None]).squeeze(1)
            # What is nearly optimal may still be worse than what was there before.
            if float(old.sum(dtype=torch.float64)) <= float(new.sum(dtype=torch.float64)):
                return Nearest(labels, old)
        return Nearest(found, new)

    return assign


def _all_scores(rows: Rows, centers: Tensor) -> Tensor:
    """(n, K): |x - c|² - |x|²."""
    n_bytes = 4 * len(rows) * len(centers)
    if n_bytes > MAX_BYTES:
        raise DataError(
            f"A cap on the clusters' size needs all distances at once: {n_bytes / 2**30:.1f} GiB for {len(rows)} samples "
            f"and {len(centers)} clusters, of which {MAX_BYTES / 2**30:.1f} may be used.",
            fix="Leave the cap off, or cluster a part of the samples.",
        )
    scores = torch.empty(len(rows), len(centers), device=rows.device)
    lengths, directions = centers.square().sum(dim=1), centers.T * -2
    for piece, x in rows.chunks(len(centers)):
        torch.addmm(lengths, x, directions, out=scores[piece])
    return scores


def auction(costs: Tensor, room: Tensor, *, smallest_raise: float) -> Tensor:
    """For each row of costs (n, K) a column, (n,), none taken more than room[k] times, at nearly the least sum.

    room: (K,) int64, at least n together. The sum exceeds the least one by n * smallest_raise at most, unless there were
    more than PATIENCE rounds.
    """
    n, n_columns = costs.shape
    # Below this, float32 does not tell prices apart.
    smallest_raise = max(smallest_raise, 1e-6 * float(costs.abs().max()) if n else 0.0, 1e-30)
    prices = torch.zeros(n_columns, device=costs.device).masked_fill_(room == 0, torch.inf)
    labels = torch.full((n,), -1, device=costs.device)
    bids = torch.zeros(n, device=costs.device)
    outbid = torch.arange(n, device=costs.device)
    n_rounds = 0
    while len(outbid):
        n_rounds += 1
        if n_rounds % PATIENCE == 0:
            smallest_raise *= 2
        labels[outbid], bids[outbid] = _bid(costs, outbid, prices, smallest_raise)
        is_wanted = torch.zeros(n_columns, dtype=torch.bool, device=costs.device)
        is_wanted[labels[outbid]] = True
        rivals = is_wanted[labels].nonzero().squeeze(1)
        outbid = _settle(labels, bids, prices, room, rivals)
        labels[outbid] = 0  # any, until they have bid again
    return labels


def _bid(costs: Tensor, who: Tensor, prices: Tensor, smallest_raise: float) -> tuple[Tensor, Tensor]:
    """The cheapest column of each row in `who` (m,), and what the row would pay before the second is as cheap."""
    labels, bids = torch.empty_like(who), torch.empty(len(who), device=costs.device)
    n_rows = max(1, CHUNK_CELLS // len(prices))
    for start in range(0, len(who), n_rows):
        piece = slice(start, start + n_rows)
        total = costs[who[piece]] + prices  # (b, K)
        column = total.argmin(dim=1, keepdim=True)
        cheapest = total.gather(1, column)
        second = total.scatter_(1, column, torch.inf).amin(dim=1, keepdim=True)
        labels[piece] = column.squeeze(1)
        bids[piece] = (prices[column] + (second - cheapest) + smallest_raise).squeeze(1)
    return labels, bids


def _settle(labels: Tensor, bids: Tensor, prices: Tensor, room: Tensor, rivals: Tensor) -> Tensor:
    """The columns of the rows `rivals` (m,) keep their highest bidders; returns those who have to go. Sets the prices."""
    order = bids[rivals].argsort(descending=True, stable=True)
    rivals = rivals[order]
    rivals = rivals[labels[rivals].argsort(stable=True)]  # by column, the highest bids first
    column = labels[rivals]
    counts = torch.bincount(column, minlength=len(prices))
    rank = torch.arange(len(rivals), device=rivals.device) - (counts.cumsum(0) - counts)[column]
    is_last = rank == room[column] - 1  # of those who stay in a full column
    prices[column[is_last]] = bids[rivals[is_last]]
    return rivals[rank >= room[column]]
