"""Loading a backbone: device, weights, and the split into a frozen trunk and tuned blocks."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from newkind.backbone.vit import FeatureTrunk, Trunk, TunedBlocks, split
from newkind.backbone.weights import load_vit
from newkind.config import BackboneConfig
from newkind.device import choose_device

__all__ = ["Backbone", "load_backbone"]


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
    """

    trunk: Trunk
    tuned: TunedBlocks | None
    sha256: str
    source: str
    device: torch.device


def load_backbone(config: BackboneConfig) -> Backbone:
    """Load the weights of a backbone and split it.

    Parameters
    ----------
    config : BackboneConfig
        Configuration of the backbone.

    Returns
    -------
    Backbone
    """
    device = choose_device(config.device)
    loaded = load_vit(
        config.name,
        image_size=config.image_size,
        weights=config.weights,
        random=config.random_weights,
        seed=config.view_seed,
    )
    if config.tuned_blocks == 0:
        return Backbone(FeatureTrunk(loaded.model).to(device), None, loaded.sha256, loaded.source, device)
    trunk, tuned = split(loaded.model, n_tuned=config.tuned_blocks)
    return Backbone(trunk.to(device), tuned.to(device), loaded.sha256, loaded.source, device)
