"""The backbone's options, which several verbs have alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "BACKBONE",
    "DEFAULT_BACKBONE",
    "Backbone",
    "Device",
    "Dtype",
    "ImageSize",
    "RandomWeights",
    "TunedBlocks",
    "Views",
    "Weights",
]

BACKBONE = "Backbone and views"
DEFAULT_BACKBONE = "vit_small_patch14_dinov2.lvd142m"

Backbone = Annotated[str, typer.Option(help="A plain ViT of timm.", rich_help_panel=BACKBONE)]
Weights = Annotated[Path | None, typer.Option(help="A .safetensors or .pth file.", rich_help_panel=BACKBONE)]
RandomWeights = Annotated[bool, typer.Option("--random-weights", help="For trials.", rich_help_panel=BACKBONE)]
ImageSize = Annotated[int, typer.Option(rich_help_panel=BACKBONE)]
Views = Annotated[int, typer.Option(help="Random views of each image in the cache.", rich_help_panel=BACKBONE)]
TunedBlocks = Annotated[int, typer.Option(help="Blocks that are tuned.", rich_help_panel=BACKBONE)]
Dtype = Annotated[str, typer.Option(help="Of cached tokens: float16 or int8.", rich_help_panel=BACKBONE)]
Device = Annotated[str, typer.Option(help="cpu, cuda, mps or auto.", rich_help_panel=BACKBONE)]
