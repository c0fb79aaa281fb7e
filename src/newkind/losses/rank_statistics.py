"""Rank statistics: two samples are taken for one class if the same few dimensions of their features are the largest."""

from __future__ import annotations

from torch import Tensor

__all__ = ["same_dimensions", "top_dimensions"]


def top_dimensions(features: Tensor, *, top_k: int, by_magnitude: bool = False) -> Tensor:
    """Find the dimensions with the largest values of each row. No gradient.

    Parameters
    ----------
    features : tensor of shape (n_rows, n_features)
        Features.
    top_k : int
        Number of dimensions.
    by_magnitude : bool, default=False
        Compare absolute values.

    Returns
    -------
    tensor of int64, shape (n_rows, top_k)
        Dimensions in ascending order.

    Examples
    --------
    >>> import torch
    >>> top_dimensions(torch.tensor([[1.0, 3.0, 2.0, -9.0]]), top_k=2).tolist()
    [[1, 2]]
    """
    values = features.detach()
    ranked = values.abs() if by_magnitude else values
    return ranked.topk(top_k, dim=-1).indices.sort(dim=-1).values


def same_dimensions(dimensions: Tensor) -> Tensor:
    """Compare the dimensions of all pairs of rows.

    Parameters
    ----------
    dimensions : tensor of shape (n_rows, top_k)
        Dimensions in ascending order, from `top_dimensions`.

    Returns
    -------
    tensor of bool, shape (n_rows, n_rows)
        Whether two rows have the same set of dimensions.

    Examples
    --------
    >>> import torch
    >>> same_dimensions(torch.tensor([[0, 1], [0, 1], [1, 2]])).int().tolist()
    [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    """
    return (dimensions[:, None] == dimensions[None, :]).all(dim=-1)
