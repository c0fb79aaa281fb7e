"""`newkind estimate-k`: how many categories there are. `newkind methods`: by what they can be found."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["estimate_k", "methods"]


def estimate_k(
    data: Annotated[
        str, typer.Argument(help="A folder, a CSV/JSONL table, an .npz file, or a benchmark as NAME:FOLDER.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="A folder for the curve: estimate-k.json and estimate-k.svg.")
    ] = None,
    published: Annotated[
        bool, typer.Option("--published", help="The published search instead, to compare with the literature: slow.")
    ] = False,
    max_categories: Annotated[int | None, typer.Option(help="The most that there may be.")] = None,
    seed: Annotated[int, typer.Option()] = 0,
    backbone: Annotated[str, typer.Option(help="A plain ViT of timm.")] = "vit_small_patch14_dinov2.lvd142m",
    weights: Annotated[Path | None, typer.Option(help="A .safetensors or .pth file.")] = None,
    random_weights: Annotated[bool, typer.Option("--random-weights", help="For trials.")] = False,
    image_size: Annotated[int, typer.Option()] = 224,
    views: Annotated[int, typer.Option(help="Of the token cache to look into first.")] = 8,
    tuned_blocks: Annotated[int, typer.Option(help="Of the token cache to look into first.")] = 1,
    dtype: Annotated[str, typer.Option(help="Of the token cache to look into first.")] = "float16",
    device: Annotated[str, typer.Option(help="cpu, cuda, mps or auto.")] = "auto",
) -> None:
    """Estimate how many categories there are, known and new together, and how sure that is."""
    import time

    from rich.console import Console

    from newkind.clustering import estimate_by_search, estimate_n_categories
    from newkind.config import BackboneConfig
    from newkind.data import find_obstacles, open_data
    from newkind.errors import RunError
    from newkind.pipeline.estimate_n_categories import backbone_features, save_estimate
    from newkind.progress import duration
    from newkind.runs.run import Run

    console = Console(highlight=False)
    if out is not None and (out / "estimate-k.json").exists():
        raise RunError(f"{out} holds an estimate already.", fix="Take another --out; nothing was touched.")
    collection = open_data(data)
    if obstacles := find_obstacles(collection.catalog.labels, collection.catalog.class_names):
        raise obstacles[0]
    trunk = BackboneConfig(
        backbone=backbone,
        weights=weights,
        random_weights=random_weights,
        image_size=image_size,
        n_views=views,
        n_tuned=tuned_blocks,
        dtype=dtype,
        device=device,
    )
    features, images = backbone_features(collection, trunk)
    labels, n_known = collection.catalog.labels[images], collection.catalog.n_known_classes
    start = time.perf_counter()
    with console.status("Looking for the number of categories ..."):
        if published:
            found = estimate_by_search(
                features, labels, n_known=n_known, seed=seed, max_categories=max_categories or 1000
            )
        else:
            found = estimate_n_categories(features, labels, n_known=n_known, seed=seed, max_categories=max_categories)
    console.print(f"[bold]{found.sentence()}[/] ({duration(time.perf_counter() - start)})")
    if collection.truth is not None:
        console.print(f"The truth has {len(collection.truth.class_names)}.")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        save_estimate(Run(out), found)
        console.print(f"The score against K: {out}/estimate-k.svg")
    console.print(f"[dim]Next:  newkind discover {data} --out RUN --n-categories {found.n_categories} (or auto)[/]")


def methods(
    name: Annotated[str, typer.Argument(help="Show the settings of this method.")] = "",
) -> None:
    """List the methods that discover can use, or the settings of one."""
    from dataclasses import MISSING, fields

    from rich.console import Console
    from rich.table import Table

    from newkind.methods.registry import METHODS, find_method

    console = Console(highlight=False)
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    if name:
        for title in ("Setting", "Default"):
            table.add_column(title)
        for item in fields(find_method(name).config):
            if item.default is not MISSING:
                table.add_row(item.name, str(item.default))
        console.print(table)
        console.print(f"[dim]newkind discover DATA --out RUN --method {name} --set SETTING=VALUE[/]")
        return
    for title in ("Method", "", "What it is"):
        table.add_column(title)
    for key, entry in METHODS.items():
        table.add_row(key, entry.title, entry.about)
    console.print(table)
    console.print("[dim]newkind methods NAME shows its settings.[/]")
