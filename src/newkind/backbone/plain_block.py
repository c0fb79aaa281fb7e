"""Whether a transformer block is that of a plain ViT, whose computation can be written in another way."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

__all__ = ["why_not_plain"]


def why_not_plain(block: Any, rope: Tensor | None) -> str:
    """Reason why a block is not one that bf16 and int8 are written for; empty if it is.

    Parameters
    ----------
    block : torch.nn.Module
        Transformer block of timm.
    rope : Tensor or None
        Rotary position embedding of the patches.
    """
    if rope is not None:
        return "it has rotary positions"
    if type(block).__name__ != "Block":
        return f"its blocks ({type(block).__name__}) are not those of a plain ViT"
    if type(block.attn).__name__ != "Attention" or type(block.mlp).__name__ != "Mlp":
        return f"its attention ({type(block.attn).__name__}) or MLP ({type(block.mlp).__name__}) is not plain"
    if not all(isinstance(norm, nn.LayerNorm) for norm in (block.norm1, block.norm2)):
        return "its norm is not LayerNorm"
    if not all(isinstance(part, nn.Identity) for part in (block.attn.q_norm, block.attn.k_norm, block.attn.norm)):
        return "its attention has norms of its own"
    if getattr(block.attn, "gate", None) is not None or not isinstance(block.mlp.norm, nn.Identity):
        return "its blocks have gates or norms of their own"
    if type(block.mlp.act).__name__ != "GELU" or getattr(block.mlp.act, "approximate", "none") != "none":
        return "its activation is not the exact GELU"
    return ""
