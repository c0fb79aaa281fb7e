"""Self-labels that use all classes equally: Sinkhorn-Knopp on the predictions of a batch."""

from __future__ import annotations

from itertools import permutations
from math import log

import torch
from torch import Tensor

__all__ = ["self_label_loss", "sinkhorn"]


@torch.no_grad()
def sinkhorn(logits: Tensor, *, temperature: float = 0.05, n_iterations: int = 3) -> Tensor:
    """(M, K) -> (M, K): exp(logits / temperature) scaled towards columns of mass M / K and rows of mass 1.

    The rows are scaled last, so each sums to 1 exactly; the columns only come near with the iterations. In log space,
    so that nothing overflows. No gradient.
    """
    q = logits.float() / temperature
    n_rows, n_columns = q.shape
    if n_rows == 0:
        return q
    for _ in range(n_iterations):
        q = q - q.logsumexp(dim=0, keepdim=True) + log(n_rows / n_columns)
        q = q - q.logsumexp(dim=1, keepdim=True)
    return (q if n_iterations else q.log_softmax(dim=1)).exp().to(logits.dtype)


def self_label_loss(
    logits: Tensor,
    n_views: int,
    *,
    student_temperature: float,
    sinkhorn_temperature: float = 0.05,
    n_iterations: int = 3,
    labels: Tensor | None = None,
) -> Tensor:
    """Cross-entropy of each view's prediction with another view's self-label, over all ordered pairs of views. -> ()

    logits: (n_views * B, K) cosines, view by view; each view gets its own Sinkhorn over its B samples.
    labels: (B,), -1 for unlabelled: a labelled sample's target is its class (UNO); None takes self-labels for all.
    """
    by_view = logits.reshape(n_views, -1, logits.shape[1])  # (V, B, K)
    targets = torch.stack(
        [sinkhorn(view, temperature=sinkhorn_temperature, n_iterations=n_iterations) for view in by_view.detach()]
    )
    if labels is not None and (labels >= 0).any():
        is_labelled = labels >= 0
        given = torch.nn.functional.one_hot(labels[is_labelled], logits.shape[1]).to(targets.dtype)
        targets[:, is_labelled] = given
    log_p = (by_view / student_temperature).log_softmax(dim=-1)
    pairs = list(permutations(range(n_views), 2))
    total = torch.stack([-(targets[teacher] * log_p[student]).sum() for teacher, student in pairs]).sum()
    return total / (len(pairs) * max(by_view.shape[1], 1))
