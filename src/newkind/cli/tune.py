"""`newkind tune`: a method's settings, chosen by the labelled images alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from newkind.cli.options import (
    DEFAULT_BACKBONE,
    Backbone,
    Device,
    Dtype,
    ImageSize,
    RandomWeights,
    TunedBlocks,
    Views,
    Weights,
)

if TYPE_CHECKING:
    from rich.console import Console

    from newkind.experiments.ranking import Ranking

__all__ = ["tune"]

METHOD, TRAIN = "Method", "Training"


def tune(
    data: Annotated[
        str, typer.Argument(help="A folder, a CSV/JSONL table, an .npz file, or a benchmark as NAME:FOLDER.")
    ],
    out: Annotated[Path, typer.Option("--out", help="The folder for runs and results.")],
    tries: Annotated[
        list[str] | None,
        typer.Option(
            "--try",
            help="What to try, as block_rate=0,0.01,0.03; several multiply. Without it, a few settings of SimGCD's recipe modern.",
        ),
    ] = None,
    folds: Annotated[int, typer.Option(help="How often classes are held out; 0 and 1, 2 and 3, ... are halves.")] = 2,
    method: Annotated[str, typer.Option(help="newkind methods lists them.", rich_help_panel=METHOD)] = "simgcd",
    recipe: Annotated[
        str | None,
        typer.Option(
            help="SimGCD's: modern, release or paper. Without it, modern, or release on a DINO v1 backbone.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A setting that is the same in all runs, as frame_views=2; may be repeated.",
            rich_help_panel=METHOD,
        ),
    ] = None,
    epochs: Annotated[int, typer.Option(help="Of every run.", rich_help_panel=TRAIN)] = 20,
    batch_size: Annotated[int, typer.Option(help="Images a step.", rich_help_panel=TRAIN)] = 128,
    learning_rate: Annotated[float, typer.Option(rich_help_panel=TRAIN)] = 0.1,
    seed: Annotated[
        int, typer.Option(help="Of the runs, and of which classes are held out.", rich_help_panel=TRAIN)
    ] = 0,
    backbone: Backbone = DEFAULT_BACKBONE,
    weights: Weights = None,
    random_weights: RandomWeights = False,
    image_size: ImageSize = 224,
    views: Views = 8,
    tuned_blocks: TunedBlocks = 1,
    dtype: Dtype = "float16",
    device: Device = "auto",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say which runs there are and which are finished.")
    ] = False,
) -> None:
    """Choose a method's settings by the labelled images: some known classes are held out as if they were new, and scored."""

    from rich.console import Console

    from newkind.cli.epoch_bar import watch_epochs
    from newkind.config import BackboneConfig, TrainingConfig, read_settings
    from newkind.data import open_data
    from newkind.errors import RunError
    from newkind.experiments.tune import TuneConfig, read_tries
    from newkind.experiments.tune import tune as run_tuning

    console = Console(highlight=False)
    config = TuneConfig(
        tries=read_tries(tries or []),
        n_folds=folds,
        method=method,
        recipe=recipe,
        settings=read_settings(settings or []),
        training=TrainingConfig(epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, seed=seed),
        trunk=BackboneConfig(
            backbone=backbone,
            weights=weights,
            random_weights=random_weights,
            image_size=image_size,
            n_views=views,
            n_tuned=tuned_blocks,
            dtype=dtype,
            device=device,
        ),
        benchmark=data.partition(":")[0],
    )
    found = run_tuning(open_data(data), out, config, data=data, watch=watch_epochs, dry_run=dry_run)
    if found is None:
        return
    _show(console, found, out)
    if found.failures:
        raise RunError(
            f"{len(found.failures)} runs failed; their settings are not in the table.",
            fix="The lines above say why; the same command tries them again.",
        )


def _show(console: Console, ranking: Ranking, out: Path) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold")
    for name in ranking.best.settings:
        table.add_column(Text(name), overflow="fold")
    for title in ("All", "Old", "New"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("")
    for row in ranking.rows:
        cells = [*row.settings.values(), *(row.shown(name) for name in ("all", "old", "new"))]
        table.add_row(
            *map(Text, cells), "default" if row.is_default else "", style="bold" if row is ranking.best else ""
        )
    console.print(table)
    console.print(f"Accuracy in %, mean ± standard deviation over {ranking.about['folds']} folds.", style="dim")
    console.print(ranking.verdict(), markup=False, soft_wrap=True)
    console.print(f"Results: {out / 'tune.md'}, {out / 'tune.json'}", markup=False, soft_wrap=True)
    console.print(Text(f"Next:  {ranking.command}", "dim"), soft_wrap=True)
