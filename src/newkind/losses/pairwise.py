"""Losses on pairs of samples: P = p . p' is the probability that both have one class, and it should be 1 or 0."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["pair_loss", "partner_loss"]

EPSILON = 1e-7
"""Added inside the logarithm, as in AutoNovel, so that a pair with P = 0 has a finite loss."""


def pair_loss(p: Tensor, other: Tensor, same: Tensor) -> Tensor:
    """Binary cross-entropy of P_ij = p_i . p'_j with s_ij, a mean over all pairs (i, j), including i = j.

    Parameters
    ----------
    p : tensor of shape (n_samples, n_classes)
        Probabilities of the samples in one view.
    other : tensor of shape (n_samples, n_classes)
        Probabilities of the same samples in another view.
    same : tensor of bool, shape (n_samples, n_samples)
        Whether two samples are taken for the same class.

    Returns
    -------
    tensor of shape ()
        Mean over the pairs; for an empty batch a zero that keeps the graph.

    Examples
    --------
    >>> p = torch.tensor([[0.5, 0.5]])
    >>> round(pair_loss(p, p, torch.tensor([[True]])).item(), 4)  # -log(0.5)
    0.6931
    """
    if len(p) == 0:
        return (p.sum() + other.sum()) * 0
    with torch.autocast(p.device.type, enabled=False):  # 1 - P has no digits left in half precision
        together = p @ other.T  # (M, M)
    # Rounding may make P slightly larger than 1.
    return -(torch.where(same, together, 1 - together).clamp_min(0) + EPSILON).log().mean()


def partner_loss(log_p: Tensor, log_partner: Tensor) -> Tensor:
    """Mean of -log(p_i . p'_i) over samples and their partners.

    It is computed from logarithms, so that it is exact where P is tiny.

    Parameters
    ----------
    log_p : tensor of shape (n_samples, n_classes)
        Log-probabilities of each sample.
    log_partner : tensor of shape (n_samples, n_classes)
        Log-probabilities of the partner that should have the same class.

    Returns
    -------
    tensor of shape ()
        Mean over the samples; for an empty batch a zero that keeps the graph.

    Examples
    --------
    >>> log_p = torch.tensor([[0.5, 0.5]]).log()
    >>> round(partner_loss(log_p, log_p).item(), 4)
    0.6931
    """
    if len(log_p) == 0:
        return (log_p.sum() + log_partner.sum()) * 0
    return -(log_p + log_partner).logsumexp(dim=-1).mean()
