"""Self-distillation: each view learns the sharper prediction of another view of the same image."""

from __future__ import annotations

from itertools import permutations

import torch
from torch import Tensor

__all__ = ["self_distillation_loss"]


def self_distillation_loss(
    logits: Tensor, n_views: int, *, student_temperature: float, teacher_temperature: float
) -> Tensor:
    """Cross-entropy of p (Eq. 3) with another view's q' (Eq. 4), over all ordered pairs of views and samples. -> ()

    logits: (n_views * B, K) cosines, view by view. The teacher is the same network in the same step, and no
    gradient flows through it. For B = 0 the loss is a zero that keeps the graph.
    """
    if n_views < 2:
        raise ValueError(f"n_views is {n_views}; another view to learn from needs at least 2.")
    by_view = logits.reshape(n_views, -1, logits.shape[1])  # (V, B, K)
    targets = (by_view.detach() / teacher_temperature).softmax(dim=-1)
    log_p = (by_view / student_temperature).log_softmax(dim=-1)
    pairs = list(permutations(range(n_views), 2))
    total = torch.stack([-(targets[teacher] * log_p[student]).sum() for teacher, student in pairs]).sum()
    return total / (len(pairs) * max(by_view.shape[1], 1))
