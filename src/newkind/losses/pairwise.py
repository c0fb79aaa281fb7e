"""Losses on pairs of samples: P = p . p' is how likely the two have one class, and it should be 1 or 0."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["pair_loss", "partner_loss"]

EPSILON = 1e-7
"""Added inside the logarithm, as AutoNovel does, so that a pair with P = 0 costs a finite amount."""


def pair_loss(p: Tensor, other: Tensor, same: Tensor) -> Tensor:
    """Binary cross-entropy of P_ij = p_i . p'_j with s_ij, over all M * M pairs, i = j among them. -> ()

    p, other: (M, K) probabilities of the same samples in two views; same: (M, M), true where s_ij = 1.
    For M = 0 the loss is a zero that keeps the graph.
    """
    if len(p) == 0:
        return (p.sum() + other.sum()) * 0
    with torch.autocast(p.device.type, enabled=False):  # 1 - P has no digits left in half precision
        together = p @ other.T  # (M, M)
    # Rounding may take P a hair over 1.
    return -(torch.where(same, together, 1 - together).clamp_min(0) + EPSILON).log().mean()


def partner_loss(log_p: Tensor, log_partner: Tensor) -> Tensor:
    """-log(p_i . p'_i), averaged over the M rows. -> ()

    log_p, log_partner: (M, K) log-probabilities of each sample and of the one that should have its class. In log space,
    so that it is exact where P is tiny. For M = 0 the loss is a zero that keeps the graph.
    """
    if len(log_p) == 0:
        return (log_p.sum() + log_partner.sum()) * 0
    return -(log_p + log_partner).logsumexp(dim=-1).mean()
