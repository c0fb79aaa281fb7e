"""Swapped prediction: each view predicts what another view of the same image was labelled."""

from __future__ import annotations

from itertools import permutations

import torch
from torch import Tensor

__all__ = ["swapped_prediction_loss"]


def swapped_prediction_loss(logits: Tensor, targets: Tensor, *, temperature: float) -> Tensor:
    """Cross-entropy of each view's prediction with another view's target, over all ordered pairs of views and samples. -> ()

    logits, targets: (V, B, K); no gradient flows through the targets. For B = 0 the loss is a zero that keeps the graph.
    """
    log_p, fixed = (logits / temperature).log_softmax(dim=-1), targets.detach()
    pairs = list(permutations(range(len(logits)), 2))
    total = torch.stack([-(fixed[teacher] * log_p[student]).sum() for teacher, student in pairs]).sum()
    return total / max(len(pairs) * logits.shape[1], 1)
