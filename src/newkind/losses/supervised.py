"""The classification loss of labelled samples."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

__all__ = ["supervised_loss"]


def supervised_loss(logits: Tensor, labels: Tensor, *, temperature: float) -> Tensor:
    """Cross-entropy with the truth (Eq. 4, right). -> ()

    logits: (M, K) cosines; labels: (M,) in [0, K). For M = 0 the loss is a zero that keeps the graph.
    """
    if len(logits) == 0:
        return logits.sum() * 0
    return F.cross_entropy(logits / temperature, labels)
