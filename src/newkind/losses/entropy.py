"""Mean-entropy maximisation: the predictions of a batch together should use all classes."""

from __future__ import annotations

from math import log

import torch
from torch import Tensor

__all__ = ["mean_entropy_penalty"]


def mean_entropy_penalty(probabilities: Tensor) -> Tensor:
    """Compute log K minus the entropy of the mean prediction, the regulariser of Eq. 4.

    Parameters
    ----------
    probabilities : tensor of shape (n_rows, n_classes)
        Predictions of all views; each row sums to 1.

    Returns
    -------
    tensor of shape ()
        0 for a uniform mean, log K if a single class is predicted; for an empty batch a zero that keeps the graph.

    Examples
    --------
    >>> one_class = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    >>> [abs(round(mean_entropy_penalty(p).item(), 4)) for p in (torch.eye(2), one_class)]
    [0.0, 0.6931]
    """
    n_rows, n_classes = probabilities.shape
    if n_rows == 0:
        return probabilities.sum() * 0
    mean = probabilities.mean(dim=0)  # (K,)
    # Where a mean is 0, its term is 0 too; the bound keeps the gradient finite.
    log_mean = mean.clamp_min(torch.finfo(mean.dtype).tiny).log()
    return log(n_classes) + (mean * log_mean).sum()
