"""k-means++: draw centres from the rows, with probability proportional to the squared distance to the nearest centre so far.

Arthur and Vassilvitskii 2007. The greedy form draws several candidates per centre and keeps the one that leaves the smallest
sum of distances. All restarts are seeded together, with one matrix product per centre for all of them.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from newkind.clustering.lloyd import ROUNDING, nearest
from newkind.clustering.rows import Rows, n_fitting

__all__ = ["plus_plus"]

GROUP_CELLS = 2**23
"""Number of distances computed at once, which limits how many restarts are seeded together."""


def plus_plus(
    rows: Rows, start: Tensor, n_drawn: int, *, n_restarts: int, greedy: bool, generator: torch.Generator
) -> Tensor:
    """Draw centres for several restarts.

    If there are too many rows to keep in memory, centres are drawn from a random sample of them.

    Parameters
    ----------
    rows : Rows
        Rows to draw from.
    start : tensor of shape (n_start, d)
        Centres that exist already, shifted as the rows are.
    n_drawn : int
        Number of centres to draw per restart.
    n_restarts : int
        Number of restarts.
    greedy : bool
        Draw several candidates per centre and keep the best.
    generator : torch.Generator
        Generator on the CPU.

    Returns
    -------
    tensor of shape (n_restarts, n_drawn, d)
        The drawn centres, shifted as the rows are.
    """
    n_candidates = 2 + int(math.log(len(start) + n_drawn)) if greedy else 1
    rows = _sample(rows, generator)
    distance = torch.full((len(rows),), torch.inf, device=rows.device)
    if len(start):
        distance = nearest(rows, start).distances(rows, start)
    # Drawn before the restarts are grouped, so that the size of the groups does not matter.
    draws = torch.rand(n_restarts, n_drawn, n_candidates, generator=generator, dtype=torch.float64).to(rows.device)
    n_together = max(1, GROUP_CELLS // (n_candidates * len(rows)))
    return torch.cat([_draw(rows, distance, group) for group in torch.split(draws, n_together)])


def _sample(rows: Rows, generator: torch.Generator) -> Rows:
    """All rows if they fit into memory, otherwise a random sample."""
    n_held = max(1, n_fitting(rows.dim))
    if rows.held is None and len(rows) > n_held:
        return rows.subset(torch.randperm(len(rows), generator=generator)[:n_held].sort().values)
    return rows


def _draw(rows: Rows, distance: Tensor, draws: Tensor) -> Tensor:
    """Centres of some restarts, (R, S, d); distance (n,) to the centres before, draws (R, S, L) in [0, 1)."""
    x = rows.values()
    n_restarts, n_drawn, n_candidates = draws.shape
    current = distance.expand(n_restarts, -1)  # (R, n)
    picked = torch.empty(n_restarts, n_drawn, dtype=torch.int64, device=x.device)
    restart = torch.arange(n_restarts, device=x.device)
    for step in range(n_drawn):
        chosen = _choose(current, draws[:, step])  # (R, L)
        lengths = rows.squares[chosen]  # (R, L)
        away = torch.addmm(rows.squares, x[chosen.view(-1)] * -2, x.T).view(n_restarts, n_candidates, -1)
        away = torch.minimum(away.add_(lengths.unsqueeze(2)), current.unsqueeze(1), out=away)  # (R, L, n)
        best = away.sum(dim=2).argmin(dim=1) if n_candidates > 1 else torch.zeros_like(restart)
        picked[:, step] = chosen[restart, best]
        current = away[restart, best]  # (R, n)
        noise = ROUNDING * (rows.squares + lengths[restart, best].unsqueeze(1))
        current.masked_fill_(current < noise, 0)
    return x[picked]


def _choose(weights: Tensor, draws: Tensor) -> Tensor:
    """Row numbers (R, L) with probabilities proportional to weights (R, n), or uniform if all are 0 or infinite.

    draws: (R, L) in [0, 1).
    """
    heights = weights.cumsum(dim=1, dtype=torch.float64)
    is_flat = (heights[:, -1] == 0) | heights[:, -1].isinf()
    if is_flat.any():
        heights[is_flat] = torch.arange(1, weights.shape[1] + 1, dtype=heights.dtype, device=heights.device)
    return torch.searchsorted(heights, draws * heights[:, -1:], right=True).clamp_(max=weights.shape[1] - 1)
