"""A timm ViT, split into a frozen trunk and the last n blocks, which are tuned."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from newkind.backbone.bf16_blocks import Bf16Blocks
from newkind.backbone.folded import FoldedBlock, normalise_tokens, why_not_foldable
from newkind.backbone.int8_blocks import Int8Blocks
from newkind.backbone.merging import merge_tokens
from newkind.backbone.tokens import Tokens, join_tokens
from newkind.config import Precision
from newkind.errors import BackboneError, ConfigError

__all__ = ["FeatureTrunk", "SplitBackbone", "Trunk", "TunedBlocks", "build_vit", "split"]

CPU_CHUNK = 8
"""Views per forward pass on a CPU. Their activations stay in the CPU caches and malloc keeps the memory; 64 views at once lose
a fifth of the speed to page faults (measured, see benchmarks/trunk.py)."""
BF16_CHUNK = 16
"""The same in bf16, whose activations have half the size: a tenth faster than 8 at 112 pixels, the same at 224."""


class SplitBackbone(NamedTuple):
    """The two parts of a ViT.

    Parameters
    ----------
    trunk : Trunk
        Frozen part.
    tuned : TunedBlocks
        Last blocks.
    """

    trunk: Trunk
    tuned: TunedBlocks


def build_vit(name: str, *, image_size: int) -> Any:
    """Build a timm ViT with random weights, which can be loaded and split.

    Parameters
    ----------
    name : str
        Name of a plain ViT in timm.
    image_size : int
        Side of the square images in pixels, a multiple of the patch size.

    Returns
    -------
    torch.nn.Module
        The model in evaluation mode, without a classifier.

    Raises
    ------
    BackboneError
        With code `unknown-backbone`, `image-size` (facts `image_size`, `patch_size` and `fitting`, the nearest sizes that fit)
        or `unsupported-backbone` (fact `reason`).
    """
    import timm  # slow to import, and not needed for ready features

    if not timm.is_model(name):
        close = timm.list_models(f"*{name.split('.')[0].split('_')[0]}*dino*")[:5]
        raise BackboneError(
            f"timm has no model called '{name}'.",
            fix=f"Names look like {', '.join(close) or 'vit_base_patch16_224.dino'}.",
            code="unknown-backbone",
            name=name,
        )
    try:
        model = timm.create_model(name, pretrained=False, num_classes=0, img_size=image_size)
    except (TypeError, AssertionError, RuntimeError) as error:
        raise _unsupported(name, f"timm cannot build it for images of {image_size} pixels ({error})") from None
    if reason := _why_not_splittable(model):
        raise _unsupported(name, reason)
    _check_image_size(name, image_size, model.patch_embed.patch_size[0])
    return model.eval()


def _unsupported(name: str, reason: str) -> BackboneError:
    """Error for a backbone that has no frozen trunk and foldable last block."""
    return BackboneError(
        f"{name} cannot be used: {reason}.",
        fix="Choose a plain ViT, such as a DINO or DINOv2 model.",
        code="unsupported-backbone",
        name=name,
        reason=reason,
    )


def _check_image_size(name: str, image_size: int, patch_size: int) -> None:
    """Raise an error that names the nearest multiples of the patch size."""
    if image_size % patch_size == 0:
        return
    below = image_size // patch_size * patch_size
    fitting = (below, below + patch_size) if below else (patch_size, 2 * patch_size)
    raise BackboneError(
        f"`image_size` must be a multiple of {patch_size}, the patch size of {name}, got {image_size}.",
        fix=f"The nearest sizes that fit are {fitting[0]} and {fitting[1]}.",
        code="image-size",
        image_size=image_size,
        patch_size=patch_size,
        fitting=fitting,
    )


def _why_not_splittable(model: Any) -> str:
    """Reason why this model has no frozen trunk and foldable last block; empty if it has."""
    for part in ("patch_embed", "_pos_embed", "blocks", "norm"):
        if not hasattr(model, part):
            return f"it has no '{part}', so it is not a plain vision transformer"
    if getattr(model, "cls_token", None) is None:
        return "it has no class token"
    if not isinstance(model.norm, nn.LayerNorm):
        return "it has no final LayerNorm on the class token"
    if getattr(model, "rope_mixed", False):
        return "its rotary positions differ from block to block"
    return why_not_foldable(model.blocks[-1])


def split(model: Any, *, n_tuned: int = 1) -> SplitBackbone:
    """Split a ViT before its last `n_tuned` blocks.

    Parameters
    ----------
    model : torch.nn.Module
        Model from `build_vit`. It becomes the trunk and must not be used afterwards.
    n_tuned : int, default=1
        Number of blocks that are tuned.

    Returns
    -------
    SplitBackbone

    Raises
    ------
    BackboneError
        With code `tuned-blocks` if the model has no more than `n_tuned` blocks.
    """
    n_blocks = len(model.blocks)
    if not 1 <= n_tuned < n_blocks:
        raise BackboneError(
            f"`tuned_blocks` must be between 0 and {n_blocks - 1} for a backbone of {n_blocks} blocks, got {n_tuned}.",
            code="tuned-blocks",
            n_tuned=n_tuned,
            n_blocks=n_blocks,
        )
    rope = _rotary_positions(model)
    tuned = TunedBlocks(list(model.blocks[-n_tuned:]), model.norm, dim=model.embed_dim, rope=rope)
    eps = model.blocks[-n_tuned].norm1.eps
    model.blocks, model.norm = nn.Sequential(*model.blocks[:-n_tuned]), nn.Identity()
    return SplitBackbone(Trunk(model, eps=eps, keep_moments=n_tuned > 1, rope=rope), tuned)


def _rotary_positions(model: Any) -> Tensor | None:
    """Rotary position embedding of the patches; None if the model has none."""
    if getattr(model, "rope", None) is None:
        return None
    embedding: Tensor = model.rope.get_embed(shape=model.patch_embed.grid_size).detach()
    return embedding


class Trunk(nn.Module):
    """Frozen part of a ViT: normalised images to the tokens that enter the first tuned block.

    Parameters
    ----------
    model : torch.nn.Module
        ViT without its tuned blocks.
    eps : float
        Epsilon of the first tuned block's LayerNorm.
    keep_moments : bool
        Whether tokens carry their moments, which more than one tuned block needs.
    rope : Tensor, optional
        Rotary position embedding of the patches.

    Attributes
    ----------
    n_tokens : int
        Number of tokens per view, N.
    dim : int
        Dimension of a token, d.
    precision : {"fp32", "bf16", "int8"}
        Precision of the frozen blocks; see `use_precision`.
    n_patches : int
        Number of patch tokens per view after merging; 0 if they are not merged.
    """

    def __init__(self, model: Any, *, eps: float, keep_moments: bool, rope: Tensor | None) -> None:
        super().__init__()
        self.n_tokens: int = model.patch_embed.num_patches + model.num_prefix_tokens
        self.dim: int = model.embed_dim
        self.eps = eps
        self.keep_moments = keep_moments
        self.n_patches = 0
        self.precision: Precision = "fp32"
        self.cheap: Bf16Blocks | Int8Blocks | None = None
        self.model: Any = model
        self.rope: Tensor | None
        self.register_buffer("rope", rope, persistent=False)
        self.requires_grad_(False).eval()

    def use_precision(self, precision: Precision, *, device: torch.device) -> None:
        """Choose the precision of the frozen blocks. Patch embedding and what follows the blocks stay in fp32.

        Parameters
        ----------
        precision : {"fp32", "bf16", "int8"}
            bf16 is `Bf16Blocks` for a plain ViT on a CPU, otherwise torch's mixed precision. int8 is computed by onnxruntime, on
            a CPU.
        device : torch.device
            Device that the trunk is moved to.

        Raises
        ------
        BackboneError, ConfigError
            As `Int8Blocks`.
        """
        self.precision, self.cheap = precision, None
        if precision == "int8":
            self.cheap = Int8Blocks(self.model.blocks, rope=self.rope)
        elif precision == "bf16":
            self.cheap = Bf16Blocks.if_plain(self.model.blocks, rope=self.rope, device=device)

    def merge_patches(self, n_patches: int) -> None:
        """Merge similar patch tokens after the blocks, so that tokens need less disk space.

        Parameters
        ----------
        n_patches : int
            Number of patch tokens per view to keep; 0, or no fewer than there are, for all.

        Raises
        ------
        ConfigError
            With code `conflict` if more than one block is tuned: all but the last need every token.
        BackboneError
            With code `unsupported-merging` for rotary positions, which a merged token does not have.
        """
        n_prefix = self.model.num_prefix_tokens
        if not 0 < n_patches < self.n_tokens - n_prefix:
            return
        if self.keep_moments:
            raise ConfigError(
                "Tokens can only be merged before the last block.",
                fix="Leave out `patch_tokens`, or tune one block.",
                code="conflict",
                setting="patch_tokens",
            )
        if self.rope is not None:
            raise BackboneError(
                "Tokens of a backbone with rotary positions cannot be merged.",
                fix="Leave out `patch_tokens`.",
                code="unsupported-merging",
            )
        self.n_patches, self.n_tokens = n_patches, n_prefix + n_patches

    def train(self, mode: bool = True) -> Trunk:  # noqa: ARG002
        """Stay in evaluation mode.

        Parameters
        ----------
        mode : bool, default=True
            Ignored: a frozen trunk is never trained.

        Returns
        -------
        Trunk
            Itself.
        """
        return super().train(False)

    @torch.no_grad()
    def forward(self, images: Tensor) -> Tokens:
        """Compute tokens; a CPU computes a few views at a time.

        Parameters
        ----------
        images : Tensor of shape (B, 3, S, S)
            Normalised views.

        Returns
        -------
        Tokens of B views
        """
        size = BF16_CHUNK if isinstance(self.cheap, Bf16Blocks) else CPU_CHUNK
        size = size if images.device.type == "cpu" else max(len(images), 1)
        return join_tokens([self._forward(chunk) for chunk in torch.split(images, size)])

    def _forward(self, images: Tensor) -> Tokens:
        """Views (B, 3, S, S) to tokens of B views, in one pass."""
        model = self.model
        x = model._pos_embed(model.patch_embed(images))
        x = model.norm_pre(x[0] if isinstance(x, tuple) else x)  # EVA-style models return the rotary positions too
        x = self._blocks(x)
        moments = None
        if self.keep_moments:
            variance, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=0)
            moments = torch.cat([mean, (variance + self.eps).sqrt()], dim=-1)  # (B, N, 2)
        xhat, cls = normalise_tokens(x, self.eps), x[:, 0].clone()
        if not self.n_patches:
            return Tokens(xhat, cls, moments)
        merged = merge_tokens(xhat, n_prefix=self.model.num_prefix_tokens, n_patches=self.n_patches)
        return Tokens(merged.xhat, cls, sizes=merged.sizes)

    def _blocks(self, x: Tensor) -> Tensor:
        """Tokens (B, N, d) through all frozen blocks, in the chosen precision."""
        if self.cheap is not None:
            return self.cheap(x)
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.precision == "bf16"):
            for block in self.model.blocks:
                x = block(x) if self.rope is None else block(x, rope=self.rope)
        return x.float()


class TunedBlocks(nn.Module):
    """Last n blocks of a ViT: the first n - 1 in full, the last one folded to the class token.

    The final norm belongs to them and stays frozen, as in the published runs.

    Parameters
    ----------
    blocks : list of torch.nn.Module
        The blocks, in order.
    norm : torch.nn.Module
        Final norm.
    dim : int
        Dimension of a token, d.
    rope : Tensor, optional
        Rotary position embedding of the patches.
    """

    def __init__(self, blocks: list[nn.Module], norm: nn.Module, *, dim: int, rope: Tensor | None) -> None:
        super().__init__()
        self.dim = dim
        self.full = nn.ModuleList(blocks[:-1])
        self.last = FoldedBlock(blocks[-1], norm, rope=rope)
        self.requires_grad_(True)
        self.last.norm.requires_grad_(False)

    def forward(self, tokens: Tokens) -> Tensor:
        """Compute the class feature after the final norm.

        Parameters
        ----------
        tokens : Tokens of B views
            Tokens from the trunk.

        Returns
        -------
        Tensor of shape (B, d)
        """
        if not len(self.full):
            return self.last(tokens.xhat, tokens.cls, tokens.sizes)  # type: ignore[no-any-return]
        x = tokens.raw()
        for block in self.full:
            x = block(x) if self.last.rope is None else block(x, rope=self.last.rope)
        return self.last(normalise_tokens(x, self.last.block.norm1.eps), x[:, 0])  # type: ignore[no-any-return]


class FeatureTrunk(Trunk):
    """The whole backbone, frozen: normalised images to class features, which are given as tokens with N = 0.

    The last block is folded, as in training. Features are therefore those of the tuned block before training, and cost a
    twelfth less than with all rows of the last of twelve blocks.

    Parameters
    ----------
    model : torch.nn.Module
        Model from `build_vit`. It must not be used afterwards.
    """

    def __init__(self, model: Any) -> None:
        trunk, last = split(model)
        super().__init__(trunk.model, eps=trunk.eps, keep_moments=False, rope=trunk.rope)
        self.n_tokens = 0
        self.last = last.requires_grad_(False).eval()

    def _forward(self, images: Tensor) -> Tokens:
        return Tokens.of_features(self.last(super()._forward(images)))
