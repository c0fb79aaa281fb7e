"""Merging similar patch tokens before they are stored.

The folded block is linear in the tokens apart from the softmax over them. A merged token is the mean of its tokens, and the
logarithm of their number is added to its score, so that the softmax average is exact if the tokens of a group are equal.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

__all__ = ["MergedTokens", "merge_tokens"]


class MergedTokens(NamedTuple):
    """Means of groups of tokens.

    Parameters
    ----------
    xhat : Tensor of shape (B, M, d)
        Means; the prefix tokens come first and are not merged.
    sizes : Tensor of shape (B, M)
        Number of tokens of each group.
    """

    xhat: Tensor
    sizes: Tensor


def merge_tokens(xhat: Tensor, *, n_prefix: int, n_patches: int) -> MergedTokens:
    """Merge patch tokens in pairs until `n_patches` are left.

    In each step, the groups are divided into two halves, each group of the first half is paired with the group of the second
    half that is nearest by Ward's criterion, and the nearest pairs are merged; a step merges at most half of the groups.

    Parameters
    ----------
    xhat : Tensor of shape (B, N, d)
        Normalised tokens.
    n_prefix : int
        Number of tokens at the beginning that are not patches.
    n_patches : int
        Number of groups of patches to keep, at least 1.

    Returns
    -------
    MergedTokens
        With `n_prefix + n_patches` tokens, or all N if there are no more.
    """
    prefix, groups = xhat[:, :n_prefix], xhat[:, n_prefix:]
    sizes = groups.new_ones(groups.shape[:2])  # (B, N - n_prefix)
    while groups.shape[1] > n_patches:
        groups, sizes = _merge_pairs(groups, sizes, n_merged=min(groups.shape[1] - n_patches, groups.shape[1] // 2))
    return MergedTokens(torch.cat([prefix, groups], dim=1), torch.cat([sizes.new_ones(prefix.shape[:2]), sizes], dim=1))


def _merge_pairs(groups: Tensor, sizes: Tensor, *, n_merged: int) -> MergedTokens:
    """Merge `n_merged` groups of every second position into others; groups (B, M, d), sizes (B, M)."""
    a, b, size_a, size_b = groups[:, 1::2], groups[:, ::2], sizes[:, 1::2], sizes[:, ::2]
    weight = size_a[:, :, None] * size_b[:, None] / (size_a[:, :, None] + size_b[:, None])  # (B, A, B')
    distance = torch.cdist(a, b, compute_mode="use_mm_for_euclid_dist")  # ONNX has no other mode
    nearest = (weight * distance.square()).min(dim=2)
    order = _stable_order(nearest.values)  # (B, A)
    merged, kept = order[:, :n_merged], order[:, n_merged:]
    targets = nearest.indices.gather(1, merged)  # (B, n_merged)
    sums = _add_rows(b * size_b[:, :, None], targets, _rows(a * size_a[:, :, None], merged))
    new_sizes = size_b.scatter_add(1, targets, size_a.gather(1, merged))
    return MergedTokens(
        torch.cat([sums / new_sizes[:, :, None], _rows(a, kept)], dim=1),
        torch.cat([new_sizes, size_a.gather(1, kept)], dim=1),
    )


def _stable_order(values: Tensor) -> Tensor:
    """Stable argsort (B, A) of values (B, A). ONNX has none, so a second sort orders equal values by their positions."""
    ordered, order = values.sort(dim=1)
    rank = nn.functional.pad(ordered[:, 1:] != ordered[:, :-1], (1, 0)).cumsum(dim=1)  # equal values have equal ranks
    return (rank * values.shape[1] + order).sort(dim=1).values % values.shape[1]


def _rows(values: Tensor, rows: Tensor) -> Tensor:
    """Rows (B, R) of each element of values (B, M, d)."""
    return values.flatten(0, 1).index_select(0, _flat(rows, values)).view(*rows.shape, values.shape[2])


def _add_rows(values: Tensor, rows: Tensor, added: Tensor) -> Tensor:
    """Values (B, M, d) after `added` (B, R, d) was added to the rows (B, R) of each element."""
    index = _flat(rows, values)[:, None].expand(-1, values.shape[2])
    return values.flatten(0, 1).scatter_add(0, index, added.flatten(0, 1)).view(values.shape)


def _flat(rows: Tensor, values: Tensor) -> Tensor:
    """Positions (B * R,) of rows (B, R) in flattened values: indices of whole rows are five times as fast as `gather`."""
    first = torch.arange(rows.shape[0], device=rows.device) * values.shape[1]
    return (rows + first[:, None]).flatten()
