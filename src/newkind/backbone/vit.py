"""A timm ViT, cut in two: a frozen trunk and the last n blocks that are tuned."""

from __future__ import annotations

from typing import Any, NamedTuple

import timm
import torch
from torch import Tensor, nn

from newkind.backbone.folded import FoldedBlock, normalise_tokens, why_not_foldable
from newkind.backbone.tokens import Tokens, join_tokens
from newkind.errors import BackboneError

__all__ = ["SplitBackbone", "Trunk", "TunedBlocks", "build_vit", "split"]


CPU_CHUNK = 8
"""Views at a time on a CPU: their activations stay in its caches and malloc keeps the memory, while 64 views at once
lose a fifth of the speed to page faults (measured, see benchmarks/trunk.py)."""


class SplitBackbone(NamedTuple):
    trunk: Trunk
    tuned: TunedBlocks


def build_vit(name: str, *, image_size: int) -> Any:
    """The named timm ViT with random weights, ready to be loaded and split, for square images of `image_size`."""
    if not timm.is_model(name):
        close = timm.list_models(f"*{name.split('.')[0].split('_')[0]}*dino*")[:5]
        raise BackboneError(
            f"timm has no model called '{name}'.",
            fix=f"Names look like {', '.join(close) or 'vit_base_patch16_224.dino'}.",
        )
    try:
        model = timm.create_model(name, pretrained=False, num_classes=0, img_size=image_size)
    except (TypeError, AssertionError, RuntimeError) as error:
        raise BackboneError(f"{name} cannot be built for images of {image_size} pixels ({error}).") from None
    if reason := why_not_splittable(model, image_size):
        raise BackboneError(
            f"{name} cannot be used: {reason}.", fix="Choose a plain ViT, such as a DINO or DINOv2 one."
        )
    return model.eval()


def why_not_splittable(model: Any, image_size: int) -> str:
    """The reason why this model has no frozen trunk and foldable last block; empty if it has."""
    for part in ("patch_embed", "_pos_embed", "blocks", "norm"):
        if not hasattr(model, part):
            return f"it has no '{part}', so it is not a plain vision transformer"
    if getattr(model, "cls_token", None) is None:
        return "it has no class token"
    if not isinstance(model.norm, nn.LayerNorm):
        return "it has no final LayerNorm on the class token"
    if getattr(model, "rope_mixed", False):
        return "its rotary positions differ from block to block"
    patch = model.patch_embed.patch_size[0]
    if image_size % patch:
        return f"images of {image_size} pixels cannot be cut into patches of {patch}"
    return why_not_foldable(model.blocks[-1])


def split(model: Any, *, n_tuned: int = 1) -> SplitBackbone:
    """Cuts `model` before its last `n_tuned` blocks (the model itself becomes the trunk and must not be used again)."""
    n_blocks = len(model.blocks)
    if not 1 <= n_tuned < n_blocks:
        raise BackboneError(f"Between 1 and {n_blocks - 1} of the {n_blocks} blocks can be tuned; got {n_tuned}.")
    rope = _rotary_positions(model)
    tuned = TunedBlocks(list(model.blocks[-n_tuned:]), model.norm, dim=model.embed_dim, rope=rope)
    eps = model.blocks[-n_tuned].norm1.eps
    model.blocks, model.norm = nn.Sequential(*model.blocks[:-n_tuned]), nn.Identity()
    return SplitBackbone(Trunk(model, eps=eps, keep_moments=n_tuned > 1, rope=rope), tuned)


def _rotary_positions(model: Any) -> Tensor | None:
    if getattr(model, "rope", None) is None:
        return None
    embedding: Tensor = model.rope.get_embed(shape=model.patch_embed.grid_size).detach()
    return embedding


class Trunk(nn.Module):
    """The frozen part: normalised images (B, 3, H, W) -> the tokens that enter the first tuned block."""

    def __init__(self, model: Any, *, eps: float, keep_moments: bool, rope: Tensor | None) -> None:
        super().__init__()
        self.n_tokens: int = model.patch_embed.num_patches + model.num_prefix_tokens
        self.dim: int = model.embed_dim
        self.eps = eps
        self.keep_moments = keep_moments
        self.model: Any = model
        self.rope: Tensor | None
        self.register_buffer("rope", rope, persistent=False)
        self.requires_grad_(False).eval()

    def train(self, mode: bool = True) -> Trunk:  # noqa: ARG002
        """A frozen trunk never trains."""
        return super().train(False)

    @torch.no_grad()
    def forward(self, images: Tensor) -> Tokens:
        """images (B, 3, H, W) -> Tokens of B views. A CPU takes them CPU_CHUNK at a time."""
        size = CPU_CHUNK if images.device.type == "cpu" else len(images)
        return join_tokens([self._forward(chunk) for chunk in torch.split(images, size)])

    def _forward(self, images: Tensor) -> Tokens:
        model = self.model
        x = model._pos_embed(model.patch_embed(images))
        x = model.norm_pre(x[0] if isinstance(x, tuple) else x)  # EVA-style models give the rotary positions too
        for block in model.blocks:
            x = block(x) if self.rope is None else block(x, rope=self.rope)
        moments = None
        if self.keep_moments:
            variance, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=0)
            moments = torch.cat([mean, (variance + self.eps).sqrt()], dim=-1)  # (B, N, 2)
        return Tokens(normalise_tokens(x, self.eps), x[:, 0].clone(), moments)


class TunedBlocks(nn.Module):
    """The last n blocks: the first n - 1 in full, the last one folded to the class token. Tokens -> (B, d).

    The final norm comes with them and stays frozen, as in the published runs.
    """

    def __init__(self, blocks: list[nn.Module], norm: nn.Module, *, dim: int, rope: Tensor | None) -> None:
        super().__init__()
        self.dim = dim
        self.full = nn.ModuleList(blocks[:-1])
        self.last = FoldedBlock(blocks[-1], norm, rope=rope)
        self.requires_grad_(True)
        self.last.norm.requires_grad_(False)

    def forward(self, tokens: Tokens) -> Tensor:
        """The class feature after the final norm, (B, d)."""
        if not len(self.full):
            return self.last(tokens.xhat, tokens.cls)  # type: ignore[no-any-return]
        x = tokens.raw()
        for block in self.full:
            x = block(x) if self.last.rope is None else block(x, rope=self.last.rope)
        return self.last(normalise_tokens(x, self.last.block.norm1.eps), x[:, 0])  # type: ignore[no-any-return]
