"""Known classes reclaim samples from new categories, after a mixture is fitted.

Every sample vouches for its own category: the mean of two samples is near to both. A part of a known class that once became a new category
therefore stays one. Here each unlabelled sample of a new category is compared with that category *without itself*. If a known class is nearer
than that by a margin, the sample moves there, and the directions of the two categories follow. All other directions stay as they are. In
large categories one sample makes no difference, so nothing moves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from newkind.clustering.membership import FreeRows, UnitRows, labelled_sums, membership_sums, rows_at_once
from newkind.clustering.mixture import Mixture

__all__ = ["reclaim_known"]

MARGIN = 0.015
"""Difference of the two cosines. Of 0 to 0.03, the one with the best accuracy by name on labelled images, half of whose classes were treated
as new; the truth of other problems was in sight (docs/modern.md)."""


@dataclass(frozen=True, eq=False)
class _Moves:
    """Samples to move; all tensors have the shape (n_moves,)."""

    row: Tensor  # among the unlabelled samples
    own: Tensor  # new category to leave
    target: Tensor  # known class to join
    gain: Tensor  # difference of the two cosines
    weight: Tensor  # membership in the category to leave, which goes to the class


@torch.no_grad()
def reclaim_known(z: UnitRows, mixture: Mixture, *, labels: Tensor, n_known: int, temperature: float = 0.05) -> Mixture:
    """Move samples of new categories that are nearer to a known class than to the others of their category.

    Parameters
    ----------
    z : tensor or UnitRows of shape (n_samples, n_features)
        Features of unit length.
    mixture : Mixture
        The fitted mixture, known classes first.
    labels : tensor of int64, shape (n_samples,)
        Class of each sample, or -1 for unlabelled.
    n_known : int
        Number of known classes.
    temperature : float, default=0.05
        Temperature of the memberships.

    Returns
    -------
    Mixture
        With the directions afterwards; offsets and fit are those of the given mixture. No category loses its last sample.

    Examples
    --------
    A new category has three samples, of which the first is nearer to the known class than to the two others:

    >>> z = F.normalize(torch.tensor([[1.0, 0.0], [1.0, 0.8], [0.0, 1.0], [0.1, 1.0]]), dim=1)
    >>> labels = torch.tensor([0, -1, -1, -1])
    >>> before = Mixture(F.normalize(torch.stack([z[0], z[1:].sum(dim=0)]), dim=1), torch.zeros(2), 0.0)
    >>> after = reclaim_known(z, before, labels=labels, n_known=1)
    >>> [(z @ found.directions.T).argmax(dim=1).tolist() for found in (before, after)]
    [[0, 1, 1, 1], [0, 0, 1, 1]]
    """
    c, b = mixture.directions, mixture.offsets
    if not 0 < n_known < len(c) or bool((labels >= 0).all()):
        return mixture
    rows, nothing = FreeRows(z, labels < 0), labels.new_zeros(0, 2)
    sums = labelled_sums(z, labels, c)[0] + membership_sums(rows, c, b, temperature, nothing)[0]
    parts, sizes, at_once = [], torch.zeros(len(c), dtype=torch.int64, device=c.device), rows_at_once(len(c))
    for start in range(0, rows.n_rows, at_once):
        x = rows.part(start, at_once)
        moves, members = _find_moves(x, mixture, sums, n_known, temperature)
        parts.append(replace(moves, row=moves.row + start))
        sizes += members
    moves = _without_last(parts, sizes)
    x = moves.weight[:, None] * rows.at(moves.row)
    sums.index_add_(0, moves.own, -x).index_add_(0, moves.target, x)
    touched = torch.zeros(len(c), dtype=torch.bool, device=c.device)
    touched[torch.cat([moves.own, moves.target])] = True
    directions = c.clone()
    directions[touched] = F.normalize(sums[touched], dim=1)
    return replace(mixture, directions=directions)


def _find_moves(x: Tensor, mixture: Mixture, sums: Tensor, n_known: int, temperature: float) -> tuple[_Moves, Tensor]:
    """Rows of x (b, d) that are nearer to a known class, and the number (K,) of rows in each category."""
    cosines = x @ mixture.directions.T
    own = cosines.argmax(dim=1)
    logits = cosines / temperature + mixture.offsets
    weight = logits.gather(1, own[:, None])[:, 0].sub(logits.logsumexp(dim=1)).exp()
    others = F.normalize(sums[own] - weight[:, None] * x, dim=1)
    known = cosines[:, :n_known].max(dim=1)
    gain = known.values - (x * others).sum(dim=1)
    row = ((own >= n_known) & (gain > MARGIN)).nonzero().squeeze(1)
    moves = _Moves(row, own[row], known.indices[row], gain[row], weight[row])
    return moves, torch.bincount(own, minlength=len(sums))


def _without_last(parts: list[_Moves], sizes: Tensor) -> _Moves:
    """All moves but those by which a category of so many samples (K,) would lose its last one; the largest gains come first."""
    names = list(_Moves.__dataclass_fields__)
    moves = {name: torch.cat([getattr(part, name) for part in parts]) for name in names}
    order = moves["gain"].argsort(descending=True, stable=True)
    order = order[moves["own"][order].argsort(stable=True)]
    own = moves["own"][order]
    rank = torch.arange(len(own), device=own.device) - torch.searchsorted(own, own)
    kept = order[rank < sizes[own] - 1]
    return _Moves(**{name: moves[name][kept] for name in names})
