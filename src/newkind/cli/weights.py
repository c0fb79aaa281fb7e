"""`newkind weights`: list the backbone weights on this machine, or download those of one backbone."""

from __future__ import annotations

from typing import Annotated

import typer

from newkind.cli.messages import print_line, result_console

__all__ = ["weights"]


def weights(
    backbone: Annotated[
        str, typer.Argument(help="Name of a ViT in timm whose weights to download. Default: list all weights.")
    ] = "",
) -> None:
    """List the backbone weights on this machine, or download those of one backbone."""
    from rich.table import Table
    from rich.text import Text

    from newkind.backbone.weights import fetch_weights, list_stored
    from newkind.config import BackboneConfig
    from newkind.paths import cache_dir

    if backbone:
        print_line(f"Weights of {backbone}: {fetch_weights(backbone)}")
        return
    stored = list_stored()
    if not stored:
        print_line(f"No weights in {cache_dir('weights')}.")
        print_line(f"Download the default backbone with: newkind weights {BackboneConfig.name}")
        return
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for title in ("Backbone", "MB", "Source", "File"):
        table.add_column(title, justify="right" if title == "MB" else "left", overflow="fold")
    for item in stored:
        cells = (item.name, f"{item.megabytes:,.0f}", item.source, str(item.path))
        table.add_row(*(Text(cell) for cell in cells))
    result_console().print(table)
