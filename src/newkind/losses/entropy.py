"""Mean-entropy maximisation: the predictions of a batch, taken together, should use all classes."""

from __future__ import annotations

from math import log

import torch
from torch import Tensor

__all__ = ["mean_entropy_penalty"]


def mean_entropy_penalty(probabilities: Tensor) -> Tensor:
    """log K - H(mean over rows), the regulariser of Eq. 4: 0 for a uniform mean, log K for a single class. -> ()

    probabilities: (M, K), rows that sum to 1, of all views. For M = 0 it is a zero that keeps the graph.
    """
    n_rows, n_classes = probabilities.shape
    if n_rows == 0:
        return probabilities.sum() * 0
    mean = probabilities.mean(dim=0)  # (K,)
    # Where a mean is 0 so is its term, and the bound keeps the gradient finite.
    log_mean = mean.clamp_min(torch.finfo(mean.dtype).tiny).log()
    return log(n_classes) + (mean * log_mean).sum()
