"""Loading a backbone: device, weights, and the split into a frozen trunk and tuned blocks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from newkind.backbone.recipe import recipe_of
from newkind.backbone.vit import FeatureTrunk, Trunk, TunedBlocks, build_vit, split
from newkind.backbone.weights import load_vit
from newkind.config import BackboneConfig
from newkind.data.crops import ViewRecipe
from newkind.device import choose_device
from newkind.errors import ConfigError

__all__ = ["Backbone", "half_of_patches", "load_backbone", "merge_half"]


@dataclass(frozen=True)
class Backbone:
    """A backbone with its weights, split and on its device.

    Parameters
    ----------
    trunk : Trunk
        Frozen part: images to tokens.
    tuned : TunedBlocks or None
        Last blocks, which are trained: tokens to features. None if the trunk computes features.
    sha256 : str
        Digest of all weights as loaded.
    source : str
        Where the weights come from.
    device : torch.device
        Device of both parts.
    recipe : ViewRecipe
        Recipe of its views; `recipe_of`, or for the model of a run the one that it was made with.
    missing_megabytes : float, default=0.0
        Size of the weights that would have to be downloaded, and in whose place random ones are used.
    """

    trunk: Trunk
    tuned: TunedBlocks | None
    sha256: str
    source: str
    device: torch.device
    recipe: ViewRecipe
    missing_megabytes: float = 0.0


def load_backbone(config: BackboneConfig, *, download: bool = True) -> Backbone:
    """Load the weights of a backbone and split it.

    Parameters
    ----------
    config : BackboneConfig
        Configuration of the backbone.
    download : bool, default=True
        As in `load_vit`.

    Returns
    -------
    Backbone

    Raises
    ------
    ConfigError
        With code `conflict` for int8 on an accelerator or merged tokens with several tuned blocks, `missing-package` for
        int8 without onnxruntime.
    BackboneError, WeightsError
        If the backbone or its weights cannot be used.
    """
    device = choose_device(config.device)
    if config.precision == "int8" and device.type != "cpu":
        raise ConfigError(
            f"int8 is computed on a CPU, but the device is {device}.",
            fix="Set `device` to cpu, or `trunk_precision` to bf16.",
            code="conflict",
            setting="trunk_precision",
        )
    loaded = load_vit(
        config.name,
        image_size=config.image_size,
        weights=config.weights,
        random=config.random_weights,
        seed=config.view_seed,
        download=download,
    )
    trunk: Trunk
    tuned: TunedBlocks | None
    if config.tuned_blocks == 0:
        trunk, tuned = FeatureTrunk(loaded.model), None
    else:
        trunk, tuned = split(loaded.model, n_tuned=config.tuned_blocks)
        trunk.merge_patches(config.patch_tokens or 0)
        tuned.to(device)
    trunk.use_precision(config.precision, device=device)
    recipe = recipe_of(config)
    return Backbone(trunk.to(device), tuned, loaded.sha256, loaded.source, device, recipe, loaded.missing_megabytes)


def merge_half(config: BackboneConfig) -> BackboneConfig:
    """Merge patch tokens in pairs before one tuned block, unless another number of them was asked for.

    Parameters
    ----------
    config : BackboneConfig
        Configuration of the backbone.

    Returns
    -------
    BackboneConfig
    """
    if config.patch_tokens is not None or config.tuned_blocks != 1:
        return config
    return replace(config, patch_tokens=half_of_patches(config.name, image_size=config.image_size))


def half_of_patches(name: str, *, image_size: int) -> int:
    """Number of patch tokens per view after similar ones are merged in pairs.

    Parameters
    ----------
    name, image_size : str and int
        As for `build_vit`.

    Returns
    -------
    int
        0 for rotary positions, with which tokens cannot be merged.

    Raises
    ------
    BackboneError
        As `build_vit`.
    """
    with torch.device("meta"):  # only its shapes are needed
        model = build_vit(name, image_size=image_size)
    return 0 if getattr(model, "rope", None) is not None else int(model.patch_embed.num_patches) // 2
