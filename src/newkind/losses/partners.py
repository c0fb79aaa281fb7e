"""Who goes with whom in a batch: a random sample of the same class, or the nearest neighbour. No gradient."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["nearest_partners", "random_partners"]


def random_partners(labels: Tensor, generator: torch.Generator | None) -> Tensor:
    """(M,) classes -> (M,): for each row another one of its class, all equally likely; the row itself if there is none.

    generator: of the CPU; what is drawn depends on it and on M only.
    """
    n = len(labels)
    if n == 0:
        return labels.new_empty(0, dtype=torch.long)
    scores = torch.rand(n, n, generator=generator).to(labels.device)
    scores = scores.masked_fill(labels[:, None] != labels[None, :], -2.0)
    return scores.fill_diagonal_(-1.0).argmax(dim=1)


def nearest_partners(features: Tensor) -> Tensor:
    """(M, d) -> (M,): for each row the other one with the largest cosine; the row itself if there is none."""
    if len(features) == 0:
        return torch.empty(0, dtype=torch.long, device=features.device)
    with torch.autocast(features.device.type, enabled=False):  # neighbours are too close for half precision
        unit = F.normalize(features.detach().float(), dim=-1)
        return (unit @ unit.T).fill_diagonal_(-torch.inf).argmax(dim=1)
