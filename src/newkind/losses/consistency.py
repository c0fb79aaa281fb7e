"""Consistency of views: the predictions for two views of an image should be equal, and the more so the longer one trains."""

from __future__ import annotations

from itertools import combinations
from math import exp

import torch
from torch import Tensor

__all__ = ["consistency_loss", "ramp_up"]


def consistency_loss(probabilities: Tensor, n_views: int) -> Tensor:
    """Mean squared difference of the probabilities, over pairs of views, samples and classes. -> ()

    probabilities: (n_views * B, K), view by view; the gradient reaches both views. For B = 0 the loss is a zero that
    keeps the graph.
    """
    by_view = probabilities.reshape(n_views, -1, probabilities.shape[1])  # (V, B, K)
    pairs = list(combinations(range(n_views), 2))
    total = torch.stack([(by_view[a] - by_view[b]).square().sum() for a, b in pairs]).sum()
    return total / max(len(pairs) * by_view[0].numel(), 1)


def ramp_up(epoch: int, *, n_epochs: int) -> float:
    """exp(-5 (1 - t/T)^2): from 0.0067 in epoch 0 to 1 in epoch T = n_epochs and ever after; T = 0 is 1 throughout."""
    if epoch >= n_epochs:
        return 1.0
    return exp(-5 * (1 - epoch / n_epochs) ** 2)
