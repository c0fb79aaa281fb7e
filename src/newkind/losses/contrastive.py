"""The contrastive loss: InfoNCE (Eq. 1) and SupCon (Eq. 2) are one function of who belongs together."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["contrastive_loss"]


def contrastive_loss(
    z: Tensor, ids: Tensor, *, temperature: float, views: Tensor | None = None, samples: Tensor | None = None
) -> Tensor:
    """-log of the softmax over an anchor's candidates, averaged over its positives, then over anchors. -> ()

    z: (M, d) rows of length 1, all views together. ids: (M,) the sample's number (Eq. 1) or its class (Eq. 2).
    The candidates of a row are all other rows, and its positives those with its id: SimCLR's form, as released.
    views: (M,) narrows the candidates to rows of other views, as in the paper's text.
    samples: (M,) narrows the positives to rows of other samples, the paper's N_i in Eq. 2.
    A row without a positive is no anchor; without any anchor the loss is a zero that keeps the graph.
    """
    others = torch.arange(len(z), device=z.device) if views is None else views
    candidates = _differ(others)  # (M, M)
    positives = candidates & ~_differ(ids)
    if samples is not None:
        positives &= _differ(samples)
    is_anchor = positives.any(dim=1)
    if not is_anchor.any():
        return z.sum() * 0
    candidates, positives = candidates[is_anchor], positives[is_anchor]  # (A, M)
    similarity = z[is_anchor] @ z.T / temperature
    log_denominator = similarity.masked_fill(~candidates, -torch.inf).logsumexp(dim=1)  # (A,)
    mean_positive = (similarity * positives).sum(dim=1) / positives.sum(dim=1)
    return (log_denominator - mean_positive).mean()


def _differ(x: Tensor) -> Tensor:
    """(M,) -> (M, M): where the values of row and column differ."""
    return x[:, None] != x[None, :]
