"""`newkind weights`: what backbone weights are on this machine, and fetching them."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["weights"]


def weights(
    backbone: Annotated[
        str, typer.Argument(help="Fetch the weights of this timm model; without it, list what is there.")
    ] = "",
) -> None:
    """List the backbone weights on this machine, or fetch those of one backbone."""
    from rich.console import Console
    from rich.table import Table

    from newkind.backbone.weights import fetch_weights, list_stored
    from newkind.paths import cache_dir

    console = Console(highlight=False)
    if backbone:
        console.print(f"{backbone} is ready: {fetch_weights(backbone)}")
        return
    stored = list_stored()
    if not stored:
        console.print(
            f"No weights in {cache_dir('weights')} yet. Fetch some: newkind weights vit_small_patch14_dinov2.lvd142m"
        )
        return
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for title in ("Backbone", "MB", "From", "File"):
        table.add_column(title, justify="right" if title == "MB" else "left", overflow="fold")
    for item in stored:
        table.add_row(item.name, f"{item.megabytes:,.0f}", item.source, str(item.path))
    console.print(table)
