"""ORCA's adaptive margin: while the network is uncertain about unlabelled samples, it learns less from labelled ones."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as F

from newkind.losses.supervised import supervised_loss

__all__ = ["confidence_sums", "margin_loss"]


def confidence_sums(probabilities: Tensor) -> Tensor:
    """Sum of the largest probabilities and number of rows, which can be added over batches. No gradient.

    The uncertainty of all batches is 1 - sum / number.

    Parameters
    ----------
    probabilities : tensor of shape (n_rows, n_classes)
        Predictions.

    Returns
    -------
    tensor of shape (2,)
        The sum and the number.

    Examples
    --------
    >>> import torch
    >>> confidence_sums(torch.tensor([[0.75, 0.25], [0.5, 0.5]])).tolist()
    [1.25, 2.0]
    """
    largest = probabilities.detach().amax(dim=-1).float()
    return F.pad(largest.sum().reshape(1), (0, 1), value=float(len(largest)))


def margin_loss(logits: Tensor, labels: Tensor, *, margin: Tensor | float, temperature: float) -> Tensor:
    """Cross-entropy with the cosine of the true class raised by a margin, which leaves less to learn.

    Parameters
    ----------
    logits : tensor of shape (n_rows, n_classes)
        Cosines.
    labels : tensor of int64, shape (n_rows,)
        True classes.
    margin : tensor of shape () or float
        What is added to the cosine of the true class.
    temperature : float
        Temperature of the softmax.

    Returns
    -------
    tensor of shape ()
        Mean cross-entropy with the margin; for an empty batch a zero that keeps the graph.

    Examples
    --------
    >>> import torch
    >>> logits, labels = torch.tensor([[0.5, 0.5]]), torch.tensor([0])
    >>> [round(margin_loss(logits, labels, margin=m, temperature=0.1).item(), 3) for m in (0.0, 0.3)]
    [0.693, 0.049]
    """
    raised = logits + margin * F.one_hot(labels, logits.shape[1]).to(logits.dtype)
    return supervised_loss(raised, labels, temperature=temperature)
