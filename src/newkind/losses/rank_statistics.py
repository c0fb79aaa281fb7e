"""Rank statistics: two samples are taken for one class if the same few dimensions of their features stand out."""

from __future__ import annotations

from torch import Tensor

__all__ = ["same_dimensions", "top_dimensions"]


def top_dimensions(features: Tensor, *, top_k: int, by_magnitude: bool = False) -> Tensor:
    """(M, d) -> (M, top_k): the dimensions with the largest values (or absolute values), in ascending order. No gradient."""
    values = features.detach()
    ranked = values.abs() if by_magnitude else values
    return ranked.topk(top_k, dim=-1).indices.sort(dim=-1).values


def same_dimensions(dimensions: Tensor) -> Tensor:
    """(M, k) sorted -> (M, M): s_ij, true where the two sets are equal, whatever the order of values within them."""
    return (dimensions[:, None] == dimensions[None, :]).all(dim=-1)
