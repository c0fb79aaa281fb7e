"""`newkind cache`: build the token cache of a pile of images ahead of time, list caches, remove them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from newkind.cli.options import DEFAULT_BACKBONE

__all__ = ["app"]


class _BuildByDefault(TyperGroup):
    """`newkind cache DATA` is `newkind cache build DATA`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["build", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_BuildByDefault, no_args_is_help=True, help="Build, list and remove cached tokens: cache DATA.")


@app.command()
def build(
    data: Annotated[
        str, typer.Argument(help="A folder, a CSV/JSONL table, an .npz file, or a benchmark as NAME:FOLDER.")
    ],
    backbone: Annotated[str, typer.Option(help="A plain ViT of timm, by name.")] = DEFAULT_BACKBONE,
    weights: Annotated[Path | None, typer.Option(help="A weights file: .safetensors or .pth.")] = None,
    random_weights: Annotated[bool, typer.Option("--random-weights", help="Use random weights (for trials).")] = False,
    image_size: Annotated[int, typer.Option(help="Side of the square that the backbone sees.")] = 224,
    views: Annotated[int, typer.Option(help="Random views of each image.")] = 8,
    tuned_blocks: Annotated[int, typer.Option(help="How many of the last blocks will be tuned.")] = 1,
    dtype: Annotated[str, typer.Option(help="float16, or int8 (half the disk).")] = "float16",
    seed: Annotated[int, typer.Option(help="Of the random views.")] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda, mps, or auto.")] = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and stop.")] = False,
) -> None:
    """Push every image through the frozen trunk once and keep its tokens. The same command goes on where it stopped."""

    from rich.console import Console

    from newkind.backbone.loader import prepare_cache, prepare_trunk
    from newkind.config import BackboneConfig
    from newkind.data import open_data

    console = Console(highlight=False)
    collection = open_data(data)
    config = BackboneConfig(
        backbone=backbone,
        weights=weights,
        random_weights=random_weights,
        image_size=image_size,
        n_views=views,
        n_tuned=tuned_blocks,
        dtype=dtype,
        seed=seed,
        device=device,
    )
    prepared = prepare_trunk(config)
    cache = prepare_cache(collection, config, prepared, dry_run=dry_run)
    if cache is None:
        return
    for item in cache.skipped[:8]:
        console.print(f"  set aside: {item.name} ({item.reason})", markup=False)
    console.print(f"{int(cache.usable.sum()):,} images have their tokens in {cache.store.folder}")


@app.command("list")
def list_() -> None:
    """Show every token cache on this machine."""
    from rich.console import Console
    from rich.table import Table

    from newkind.backbone.cache_folders import list_caches
    from newkind.paths import cache_dir

    console = Console(highlight=False)
    caches = list_caches()
    if not caches:
        console.print(f"No token cache in {cache_dir('tokens')}.")
        return
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for title, justify in (
        ("Cache", "left"),
        ("Images", "right"),
        ("Views", "right"),
        ("GB", "right"),
        ("Backbone", "left"),
        ("Data", "left"),
    ):
        table.add_column(title, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for cache in caches:
        if cache.readable:
            table.add_row(
                cache.folder.name,
                f"{cache.n_images:,}",
                f"{cache.n_views} + 1",
                f"{cache.gigabytes:.1f}",
                cache.backbone,
                cache.place,
            )
        else:
            table.add_row(cache.folder.name, "?", "?", f"{cache.gigabytes:.1f}", "not a readable cache", "")
    console.print(table)
    console.print(
        f"In {cache_dir('tokens')}: {sum(cache.gigabytes for cache in caches):.1f} GB. Remove one: newkind cache prune NAME"
    )


@app.command()
def prune(
    names: Annotated[list[str] | None, typer.Argument(help="Caches to remove, by the names that `list` shows.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Remove every cache.")] = False,
) -> None:
    """Remove token caches. They can be built again from the images."""
    from rich.console import Console

    from newkind.backbone.cache_folders import list_caches, remove_cache
    from newkind.errors import CacheError

    chosen = [cache.folder.name for cache in list_caches()] if everything else names or []
    if not chosen and not everything:
        raise CacheError(
            "Nothing was named to be removed.", fix="Name caches as `newkind cache list` shows them, or give --all."
        )
    for name in chosen:
        Console(highlight=False).print(f"Removed {name}: {remove_cache(name):.1f} GB are free again.")
