"""Self-labels that use all classes equally: Sinkhorn-Knopp on the predictions of a batch."""

from __future__ import annotations

from math import log

import torch
from torch import Tensor
from torch.nn import functional as F

from newkind.losses.swapped import swapped_prediction_loss
from newkind.losses.views import split_views

__all__ = ["self_label_loss", "sinkhorn"]


@torch.no_grad()
def sinkhorn(logits: Tensor, *, temperature: float = 0.05, n_iterations: int = 3) -> Tensor:
    """Scale exp(logits / temperature) towards columns of equal mass and rows of mass 1. No gradient.

    The rows are scaled last, so each sums to 1; the columns approach n_rows / n_columns with the iterations. It is computed
    with logarithms, so nothing overflows.

    Parameters
    ----------
    logits : tensor of shape (n_rows, n_columns)
        Cosines of samples (rows) and classes (columns).
    temperature : float, default=0.05
        Temperature of the logits.
    n_iterations : int, default=3
        Number of iterations; 0 gives a softmax.

    Returns
    -------
    tensor of shape (n_rows, n_columns)
        Self-labels.

    Examples
    --------
    All samples prefer class 0, so a softmax would never use class 1:

    >>> sinkhorn(torch.tensor([[1.0, 0.0], [1.0, 0.0]])).round(decimals=3).tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    q = logits.to(torch.promote_types(logits.dtype, torch.float32)) / temperature
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
    over: str = "unlabelled",
) -> Tensor:
    """Cross-entropy of each view's prediction with the self-label of another view, over all ordered pairs of views.

    Parameters
    ----------
    logits : tensor of shape (n_views * n_samples, n_classes)
        Cosines, all samples of one view after the other. The self-labels of a view come from its own Sinkhorn iterations.
    n_views : int
        Number of views, at least 2.
    student_temperature : float
        Temperature of the predictions.
    sinkhorn_temperature : float, default=0.05
        Temperature of the self-labels.
    n_iterations : int, default=3
        Number of Sinkhorn iterations.
    labels : tensor of int64, shape (n_samples,), optional
        Class of each sample, or -1 for unlabelled. The target of a labelled sample is its class, as in UNO. Default:
        self-labels for all.
    over : {"unlabelled", "all"}, default="unlabelled"
        Samples over which the Sinkhorn iterations share out the classes, if there are labels: the unlabelled ones, as in
        UNO, or all.

    Returns
    -------
    tensor of shape ()
        Mean cross-entropy with the self-labels; for an empty batch a zero that keeps the graph.

    Examples
    --------
    >>> logits = torch.eye(2).repeat(2, 1)  # two samples of two classes in two views that agree
    >>> abs(round(self_label_loss(logits, 2, student_temperature=0.1).item(), 3))
    0.0
    """
    by_view = split_views(logits, n_views)  # (V, B, K)
    labels = torch.full_like(by_view[0, :, 0], -1).long() if labels is None else labels
    free = labels < 0  # (B,)
    part = free if over == "unlabelled" else torch.ones_like(free)
    targets = F.one_hot(labels.clamp_min(0), logits.shape[1]).to(logits.dtype).repeat(n_views, 1, 1)  # (V, B, K)
    for target, view in zip(targets, by_view.detach(), strict=True):
        own = sinkhorn(view[part], temperature=sinkhorn_temperature, n_iterations=n_iterations)
        target[free] = own[free[part]]
    return swapped_prediction_loss(by_view, targets, temperature=student_temperature)
