"""The classification loss of labelled samples."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

__all__ = ["supervised_loss"]


def supervised_loss(logits: Tensor, labels: Tensor, *, temperature: float) -> Tensor:
    """Cross-entropy with the true classes (Eq. 4, right).

    Parameters
    ----------
    logits : tensor of shape (n_rows, n_classes)
        Cosines.
    labels : tensor of int64, shape (n_rows,)
        True classes.
    temperature : float
        Temperature of the softmax.

    Returns
    -------
    tensor of shape ()
        Mean cross-entropy; for an empty batch a zero that keeps the graph.

    Examples
    --------
    >>> import torch
    >>> round(supervised_loss(torch.tensor([[0.5, 0.5]]), torch.tensor([0]), temperature=0.1).item(), 4)
    0.6931
    """
    if len(logits) == 0:
        return logits.sum() * 0
    return F.cross_entropy(logits / temperature, labels)
