"""Consistency of views: the predictions of two views of an image should be equal."""

from __future__ import annotations

from itertools import combinations
from math import exp

import torch
from torch import Tensor

from newkind.losses.views import split_views

__all__ = ["consistency_loss", "ramp_up"]


def consistency_loss(probabilities: Tensor, n_views: int) -> Tensor:
    """Mean squared difference of the probabilities of two views, over pairs of views, samples and classes.

    Parameters
    ----------
    probabilities : tensor of shape (n_views * n_samples, n_classes)
        Probabilities, all samples of one view after the other. The gradient reaches both views of a pair.
    n_views : int
        Number of views, at least 2.

    Returns
    -------
    tensor of shape ()
        Mean of the squared differences; for an empty batch a zero that keeps the graph.

    Examples
    --------
    >>> consistency_loss(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), n_views=2)
    tensor(1.)
    """
    by_view = split_views(probabilities, n_views)  # (V, B, K)
    pairs = list(combinations(range(n_views), 2))
    total = torch.stack([(by_view[a] - by_view[b]).square().sum() for a, b in pairs]).sum()
    return total / max(len(pairs) * by_view[0].numel(), 1)


def ramp_up(epoch: int, *, n_epochs: int) -> float:
    """Weight that grows over the first epochs: exp(-5 (1 - epoch / n_epochs)²).

    Parameters
    ----------
    epoch : int
        The epoch, from 0.
    n_epochs : int
        Epoch from which the weight is 1.

    Returns
    -------
    float
        From 0.0067 in epoch 0 to 1 in epoch `n_epochs` and later; always 1 if `n_epochs` is 0.

    Examples
    --------
    >>> [round(ramp_up(epoch, n_epochs=4), 3) for epoch in range(6)]
    [0.007, 0.06, 0.287, 0.732, 1.0, 1.0]
    """
    if epoch >= n_epochs:
        return 1.0
    return exp(-5 * (1 - epoch / n_epochs) ** 2)
