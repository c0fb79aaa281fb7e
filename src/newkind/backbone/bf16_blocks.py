"""Transformer blocks with matrix products in bf16 on a CPU, three times as fast as in fp32 where the processor has bf16.

Norms, softmax inputs and the sum of all blocks stay in fp32. Attention is written as two matrix products: torch's fused attention on a CPU
takes twice as long in bf16. Their scores are rounded to bf16, so the mean key is subtracted from all keys first. Softmax does not see it, since
it adds the same number to all scores of a query, but scores become small, and their rounding errors with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from newkind.backbone.plain_block import why_not_plain

__all__ = ["Bf16Blocks"]

SCORES = 1 << 25
"""Largest number of attention scores that are computed at once."""


class _Linear(NamedTuple):
    """Weight (n_outputs, n_inputs) and bias (n_outputs,) in bf16."""

    weight: Tensor
    bias: Tensor | None


class _Block(NamedTuple):
    """Norms and linear layers of a block; the scale of the queries and both LayerScales are part of the layers."""

    norm1: nn.LayerNorm
    qkv: _Linear
    projection: _Linear
    norm2: nn.LayerNorm
    up: _Linear
    down: _Linear


class Bf16Blocks:
    """Blocks in bf16, as a function of tokens. It is not a module: nothing in it can be trained or moved.

    Parameters
    ----------
    blocks : sequence of torch.nn.Module
        Plain transformer blocks of timm, in order, for which `why_not_plain` is empty. Weights of linear layers are copied.
    """

    def __init__(self, blocks: Sequence[Any]) -> None:
        self._blocks = [_converted(block) for block in blocks]
        self._n_heads = [int(block.attn.num_heads) for block in blocks]

    @classmethod
    def if_plain(cls, blocks: Sequence[Any], *, rope: Tensor | None, device: torch.device) -> Bf16Blocks | None:
        """Blocks in bf16 for a CPU; None for an accelerator, and for blocks that are not plain."""
        if device.type != "cpu" or any(why_not_plain(block, rope) for block in blocks):
            return None
        return cls(blocks)

    def __call__(self, x: Tensor) -> Tensor:
        """Compute all blocks.

        Parameters
        ----------
        x : Tensor of shape (B, N, d)
            Tokens before the first block, on the CPU.

        Returns
        -------
        Tensor of shape (B, N, d)
            Tokens after the last block, in fp32.
        """
        for block, n_heads in zip(self._blocks, self._n_heads, strict=True):
            x = x + F.linear(_attention(F.linear(block.norm1(x).bfloat16(), *block.qkv), n_heads), *block.projection)
            hidden = F.gelu(F.linear(block.norm2(x).bfloat16(), *block.up))
            x = x + F.linear(hidden, *block.down)
        return x


def _attention(qkv: Tensor, n_heads: int) -> Tensor:
    """Queries, keys and values (B, N, 3 * H * dh) to contexts (B, N, H * dh)."""
    b, n = qkv.shape[:2]
    dim = qkv.shape[2] // (3 * n_heads)
    q, k, v = qkv.view(b, n, 3, n_heads, dim).permute(2, 0, 3, 1, 4)  # (B, H, N, dh)
    k = k - k.mean(dim=2, keepdim=True)
    size = max(SCORES // (n_heads * n * n), 1)
    parts = zip(*(torch.split(each, size) for each in (q, k, v)), strict=True)
    contexts = [(q @ k.transpose(-1, -2)).softmax(dim=-1) @ v for q, k, v in parts]
    return torch.cat(contexts).transpose(1, 2).reshape(b, n, n_heads * dim)


@torch.no_grad()
def _converted(block: Any) -> _Block:
    """A block of timm with its scales inside of its linear layers."""
    queries = torch.ones(block.attn.qkv.out_features, dtype=torch.float64)
    queries[: len(queries) // 3] = block.attn.scale
    return _Block(
        block.norm1,
        _linear(block.attn.qkv, queries),
        _linear(block.attn.proj, getattr(getattr(block, "ls1", None), "gamma", None)),
        block.norm2,
        _linear(block.mlp.fc1, None),
        _linear(block.mlp.fc2, getattr(getattr(block, "ls2", None), "gamma", None)),
    )


def _linear(layer: nn.Linear, scale: Tensor | None) -> _Linear:
    """A linear layer in bf16, its outputs times a scale (n_outputs,)."""
    weight, bias = layer.weight.double(), None if layer.bias is None else layer.bias.double()
    if scale is not None:
        factor = scale.to(weight)
        weight, bias = weight * factor[:, None], None if bias is None else bias * factor
    return _Linear(weight.bfloat16(), None if bias is None else bias.bfloat16())
