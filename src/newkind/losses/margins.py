"""ORCA's adaptive margin: while the network is unsure of the unlabelled samples, it learns less from the labelled ones."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from newkind.losses.supervised import supervised_loss

__all__ = ["confidence_sums", "margin_loss"]


def confidence_sums(probabilities: Tensor) -> Tensor:
    """(M, K) -> (2,): the sum over rows of the largest probability, and M. They add up over batches; u = 1 - sum / M."""
    largest = probabilities.detach().amax(dim=-1).float()
    return F.pad(largest.sum().reshape(1), (0, 1), value=float(len(largest)))


def margin_loss(logits: Tensor, labels: Tensor, *, margin: Tensor | float, temperature: float) -> Tensor:
    """Cross-entropy with the own class's cosine raised by `margin`, which leaves less to learn. -> ()

    logits: (M, K) cosines; labels: (M,) in [0, K). For M = 0 the loss is a zero that keeps the graph.
    """
    raised = logits + margin * F.one_hot(labels, logits.shape[1]).to(logits.dtype)
    return supervised_loss(raised, labels, temperature=temperature)
