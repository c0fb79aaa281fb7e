"""A partner for every row of a batch: a random row of the same class, or the nearest neighbour. No gradient."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["nearest_partners", "random_partners"]


def random_partners(labels: Tensor, generator: torch.Generator | None) -> Tensor:
    """Draw for each row another row of its class, all with the same probability.

    Parameters
    ----------
    labels : tensor of shape (n_rows,)
        Class of each row.
    generator : torch.Generator or None
        Generator on the CPU. What is drawn depends on it and on the number of rows only.

    Returns
    -------
    tensor of int64, shape (n_rows,)
        Number of the partner; the row itself if it is the only one of its class.

    Examples
    --------
    >>> random_partners(torch.tensor([5, 2, 5, 9]), None).tolist()
    [2, 1, 0, 3]
    """
    n = len(labels)
    if n == 0:
        return labels.new_empty(0, dtype=torch.long)
    scores = torch.rand(n, n, generator=generator).to(labels.device)
    scores = scores.masked_fill(labels[:, None] != labels[None, :], -2.0)
    return scores.fill_diagonal_(-1.0).argmax(dim=1)


def nearest_partners(features: Tensor) -> Tensor:
    """Find for each row the other row with the largest cosine.

    Parameters
    ----------
    features : tensor of shape (n_rows, n_features)
        Features of any length.

    Returns
    -------
    tensor of int64, shape (n_rows,)
        Number of the nearest row; the row itself if there is no other.

    Examples
    --------
    >>> nearest_partners(torch.tensor([[1.0, 0.0], [0.0, 1.0], [9.0, 1.0]])).tolist()
    [2, 2, 0]
    """
    if len(features) == 0:
        return torch.empty(0, dtype=torch.long, device=features.device)
    with torch.autocast(features.device.type, enabled=False):  # neighbours are too close for half precision
        unit = F.normalize(features.detach().float(), dim=-1)
        return (unit @ unit.T).fill_diagonal_(-torch.inf).argmax(dim=1)
