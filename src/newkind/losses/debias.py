"""DebiasPL: pseudo-labels without the network's own preference for some classes, and a margin against it."""

from __future__ import annotations

from itertools import permutations

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["pseudo_label_loss", "pseudo_labels", "running_mean"]


def running_mean(mean: Tensor, total: Tensor, count: Tensor, *, momentum: float) -> Tensor:
    """q <- m q + (1 - m) total / count; q itself where count is 0. mean, total (K,), count () -> (K,)"""
    moved = momentum * mean + (1 - momentum) * total / count.clamp_min(1)
    return torch.where(count > 0, moved, mean)


def pseudo_labels(logits: Tensor, mean: Tensor, *, strength: float, threshold: float) -> tuple[Tensor, Tensor]:
    """argmax softmax(z - tau log q), and whether its probability reaches the threshold. No gradient.

    logits: (M, K), already divided by their temperature; mean: (K,), q -> (M,) classes, (M,) which of them count.
    """
    debiased = logits.detach() - strength * _log(mean)
    top = debiased.softmax(dim=-1).max(dim=-1)
    return top.indices, top.values >= threshold


def pseudo_label_loss(
    logits: Tensor, labels: Tensor, sure: Tensor, mean: Tensor, n_views: int, *, strength: float
) -> Tensor:
    """Cross-entropy of z + tau log q with another view's pseudo-label, over all ordered pairs of views and samples. -> ()

    logits: (n_views * M, K), already divided by their temperature; labels, sure: (n_views * M,), view by view. A sample
    that is not sure costs nothing but counts in the mean, as in FixMatch. For M = 0 it is a zero that keeps the graph.
    """
    raised = (logits + strength * _log(mean)).reshape(n_views, -1, logits.shape[1])  # (V, M, K)
    labels, sure = labels.view(n_views, -1), sure.view(n_views, -1)  # (V, M)
    pairs = list(permutations(range(n_views), 2))
    costs = [F.cross_entropy(raised[s], labels[t], reduction="none") * sure[t] for t, s in pairs]  # (M,) each
    return torch.stack(costs).sum() / max(len(pairs) * labels.shape[1], 1)


def _log(mean: Tensor) -> Tensor:
    return mean.clamp_min(torch.finfo(mean.dtype).tiny).log()
