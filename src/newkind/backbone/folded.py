"""The last transformer block and the final norm, computed for the class token only.

With x (N, d) the tokens that enter the block and xhat their LayerNorm without its affine part (gamma, beta),
the score of the class token's query q_h and the key of token n is

    q_h . W_k,h (gamma * xhat_n + beta) + const  =  xhat_n . [gamma * (W_k,h^T q_h)] + const,

and softmax over n is invariant to what is the same for every token; the context is W_v,h (gamma * sum_n a_n xhat_n + beta).
So no key or value is computed for the other N - 1 tokens. This is exact, not an approximation.
Where a backbone transforms keys in a way that is not linear (q/k-norm) or differs by token (rotary positions), keys are
computed and only the values are folded.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from newkind.errors import BackboneError

__all__ = ["FoldedBlock", "normalise_tokens", "why_not_foldable"]


class _Projections(NamedTuple):
    """Weights (attn_dim, d) and biases (attn_dim,) of query, key and value."""

    w_q: Tensor
    w_k: Tensor
    w_v: Tensor
    b_q: Tensor | None
    b_k: Tensor | None
    b_v: Tensor | None


def normalise_tokens(x: Tensor, eps: float) -> Tensor:
    """LayerNorm without its affine part.

    Parameters
    ----------
    x : Tensor of shape (B, N, d)
        Tokens.
    eps : float
        Epsilon of the LayerNorm.

    Returns
    -------
    Tensor of shape (B, N, d)
    """
    return F.layer_norm(x, x.shape[-1:], eps=eps)


def why_not_foldable(block: nn.Module) -> str:
    """Reason why a block cannot be folded.

    Parameters
    ----------
    block : torch.nn.Module
        Transformer block of timm.

    Returns
    -------
    str
        Empty if it can be folded.
    """
    for name in ("norm1", "norm2", "attn", "mlp"):
        if not hasattr(block, name):
            return f"its last block has no '{name}', so it is not a plain pre-norm block"
    attn: Any = block.attn
    if not isinstance(block.norm1, nn.LayerNorm):
        return f"its norm is {type(block.norm1).__name__}, not LayerNorm"
    if not all(hasattr(attn, name) for name in ("num_heads", "qkv", "proj", "scale")):
        return f"its attention ({type(attn).__name__}) is not plain self-attention"
    if getattr(attn, "attn_drop", None) is not None and attn.attn_drop.p > 0:
        return "it uses dropout on the attention weights"
    known = {"Attention", "EvaAttention"}
    if type(attn).__name__ not in known:
        return f"its attention is {type(attn).__name__}; {' and '.join(sorted(known))} can be folded"
    return ""


class FoldedBlock(nn.Module):
    """A timm block and the final norm as a function of normalised tokens and the class token.

    Its parameters are those of the block and the norm.

    Parameters
    ----------
    block : torch.nn.Module
        Transformer block of timm.
    norm : torch.nn.Module
        Final norm.
    rope : Tensor, optional
        Rotary position embedding of the patches.

    Raises
    ------
    BackboneError
        With code `unsupported-backbone` if the block cannot be folded.
    """

    def __init__(self, block: nn.Module, norm: nn.Module, *, rope: Tensor | None = None) -> None:
        super().__init__()
        if reason := why_not_foldable(block):
            raise BackboneError(f"This backbone cannot be used: {reason}.", code="unsupported-backbone", reason=reason)
        self.block: Any = block
        self.norm = norm
        self.rope: Tensor | None
        self.register_buffer("rope", rope, persistent=False)

    def forward(self, xhat: Tensor, cls: Tensor, sizes: Tensor | None = None) -> Tensor:
        """Compute the class feature after the final norm.

        Parameters
        ----------
        xhat : Tensor of shape (B, N, d)
            Normalised tokens; the class token is the first.
        cls : Tensor of shape (B, d)
            Class token before the normalisation.
        sizes : Tensor of shape (B, N), optional
            Number of tokens that each token is the mean of. Default: one.

        Returns
        -------
        Tensor of shape (B, d)
        """
        block = self.block
        attended = block.drop_path1(_scaled(block, 1, self._attend(xhat, sizes)))
        cls = cls + attended
        cls = cls + block.drop_path2(_scaled(block, 2, block.mlp(block.norm2(cls))))
        return self.norm(cls)  # type: ignore[no-any-return]

    def _attend(self, xhat: Tensor, sizes: Tensor | None) -> Tensor:
        """Output of the attention for the class token, (B, d), from xhat (B, N, d)."""
        attn, gamma, beta = self.block.attn, self.block.norm1.weight, self.block.norm1.bias
        weights, heads = _projections(attn), attn.num_heads
        y0 = gamma * xhat[:, 0] + beta  # (B, d)
        q = F.linear(y0, weights.w_q, weights.b_q)  # (B, attn_dim)
        q = attn.q_norm(q.view(q.shape[0], heads, q.shape[1] // heads))  # (B, H, d_h)
        if isinstance(attn.k_norm, nn.Identity) and self.rope is None:
            w_k = weights.w_k.view(heads, -1, xhat.shape[-1])  # (H, d_h, d)
            folded = torch.einsum("bhe,hed->bhd", q * attn.scale, w_k) * gamma  # (B, H, d)
            scores = folded @ xhat.transpose(1, 2)  # (B, H, N)
        else:
            scores = self._scores_from_keys(xhat, q * attn.scale, weights)
        if sizes is not None:  # as if each token were there so many times
            scores = scores + sizes.log()[:, None].to(scores)
        context = scores.softmax(dim=-1).to(xhat.dtype) @ xhat  # (B, H, d)
        w_v = weights.w_v.view(heads, -1, xhat.shape[-1])  # (H, d_h, d)
        out = torch.einsum("bhd,hed->bhe", gamma * context + beta, w_v).flatten(1)  # (B, attn_dim)
        out = attn.norm(out if weights.b_v is None else out + weights.b_v)
        if attn.gate is not None:
            out = out * attn.gate(y0).sigmoid()
        return attn.proj_drop(attn.proj(out))  # type: ignore[no-any-return]

    def _scores_from_keys(self, xhat: Tensor, q: Tensor, weights: _Projections) -> Tensor:
        """Attention scores (B, H, N) of queries q (B, H, d_h), from explicit keys."""
        attn, norm = self.block.attn, self.block.norm1
        keys = F.linear(norm.weight * xhat + norm.bias, weights.w_k, weights.b_k)  # (B, N, attn_dim)
        keys = attn.k_norm(keys.view(*keys.shape[:2], *q.shape[1:]).transpose(1, 2))  # (B, H, N, d_h)
        if self.rope is not None:
            from timm.layers import apply_rot_embed_cat  # slow to import

            prefix = attn.num_prefix_tokens  # class and register tokens have no position
            rotated = apply_rot_embed_cat(keys[:, :, prefix:], self.rope, half=attn.rotate_half)
            keys = torch.cat([keys[:, :, :prefix], rotated], dim=2).type_as(keys)
        return (keys @ q.unsqueeze(-1)).squeeze(-1)  # (B, H, N)


def _projections(attn: Any) -> _Projections:
    """Weights of query, key and value, whether the attention keeps them fused or apart."""
    if attn.qkv is None:
        q, k, v = attn.q_proj, attn.k_proj, attn.v_proj
        return _Projections(q.weight, k.weight, v.weight, q.bias, k.bias, v.bias)
    w_q, w_k, w_v = attn.qkv.weight.chunk(3)
    if attn.qkv.bias is not None:
        return _Projections(w_q, w_k, w_v, *attn.qkv.bias.chunk(3))
    return _Projections(w_q, w_k, w_v, *(getattr(attn, name, None) for name in ("q_bias", "k_bias", "v_bias")))


def _scaled(block: Any, which: int, branch: Tensor) -> Tensor:
    """Branch (B, d) times LayerScale, if the block has it (a module in a ViT, a parameter in EVA-style blocks)."""
    scale: Tensor | None = getattr(block, f"gamma_{which}", None)
    if scale is not None:
        return branch * scale
    layer = getattr(block, f"ls{which}", None)
    scaled: Tensor = branch if layer is None else layer(branch)
    return scaled
