"""`newkind bench`: the paper's tables and figures, its ablation and its studies, on data that carries truth."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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

    from newkind.experiments.paper.protocol import Protocol
    from newkind.experiments.paper.run_study import Plan
    from newkind.experiments.paper.table import Table

__all__ = ["bench"]

logger = logging.getLogger(__name__)

TRAIN = "Training"


def bench(
    study: Annotated[str, typer.Argument(help="A study, a table or figure of the paper by its name, or list.")],
    data: Annotated[
        list[str] | None,
        typer.Option(
            "--data",
            help="A folder, a table, an .npz file, or a benchmark as NAME:FOLDER; with truth. May be repeated.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The folder for runs, tables and figures.")] = None,
    methods: Annotated[str, typer.Option(help="As simgcd,gcd; the study's own unless given.")] = "",
    seeds: Annotated[int, typer.Option(help="How many: seeds 0, 1, ...")] = 3,
    epsilons: Annotated[str, typer.Option(help="As 1,2,4, for epsilon and k; the study's own unless given.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say which runs there are and which are finished.")
    ] = False,
    figures: Annotated[bool, typer.Option("--figures/--no-figures", help="Draw figures beside the tables.")] = True,
    recipe: Annotated[str, typer.Option(help="SimGCD's: release, paper or modern.", rich_help_panel=TRAIN)] = "release",
    epochs: Annotated[int, typer.Option(rich_help_panel=TRAIN)] = 200,
    batch_size: Annotated[int, typer.Option(rich_help_panel=TRAIN)] = 128,
    online: Annotated[
        bool, typer.Option("--online", help="Fresh views every epoch, no token cache.", rich_help_panel=TRAIN)
    ] = False,
    backbone: Backbone = DEFAULT_BACKBONE,
    weights: Weights = None,
    random_weights: RandomWeights = False,
    image_size: ImageSize = 224,
    views: Views = 8,
    tuned_blocks: TunedBlocks = 1,
    dtype: Dtype = "float16",
    device: Device = "auto",
) -> None:
    """Make a table of the paper: run what is missing of it, once, and go on where it stopped. bench list shows all."""
    from rich.console import Console

    console = Console(highlight=False)
    if study == "list":
        _list(console)
        return
    from newkind.config import BackboneConfig
    from newkind.errors import ConfigError
    from newkind.experiments.paper.protocol import Protocol, read_epsilons, read_methods
    from newkind.experiments.paper.run_study import find_study

    found, artefact = find_study(study)
    if not data or out is None:
        raise ConfigError(f"newkind bench {study} needs --data and --out.", fix="newkind bench list shows what for.")
    protocol = Protocol(
        n_seeds=seeds,
        epochs=epochs,
        batch_size=batch_size,
        recipe=recipe,
        online=online,
        methods=read_methods(methods) or (artefact.methods if artefact else ()),
        epsilons=read_epsilons(epsilons) or (artefact.epsilons if artefact else ()),
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
    )
    _make(console, found, data, protocol, out, dry_run=dry_run, figures=figures)


def _make(
    console: Console, study: Any, data: list[str], protocol: Protocol, out: Path, *, dry_run: bool, figures: bool
) -> None:
    from functools import partial

    from newkind.cli.epoch_bar import watch_epochs
    from newkind.errors import RunError
    from newkind.experiments.paper.dataset import open_bench_data
    from newkind.experiments.paper.run_study import build_table, plan_study, run_study

    detail = partial(console.print, markup=False, style="dim")
    datas = [open_bench_data(text) for text in data]
    plan = plan_study(study, datas, protocol, out, estimate=not dry_run)
    if dry_run:
        _tell_cells(console, plan)
        return
    tables = run_study(plan, detail=detail, watch=watch_epochs)
    _show(console, build_table(plan))
    logger.info(f"Tables: {', '.join(map(str, tables))}")
    if figures and study.draw is not None:
        drawn = study.draw(study.name, plan.finished(), out)
        if drawn:
            logger.info(f"Figures: {', '.join(map(str, drawn))}")
    if plan.failures:
        raise RunError(
            f"{len(plan.failures)} of {len(plan.cells())} runs failed; the table is made without them.",
            fix="The lines above say why; the same command tries them again.",
        )


def _list(console: Console) -> None:
    """Every table and figure of the paper, the command that makes it, and the data that it is on."""
    from rich.text import Text

    from newkind.experiments.paper.catalogue import ARTEFACTS

    width = max(map(len, ARTEFACTS))
    for artefact in ARTEFACTS.values():
        console.print(Text.assemble((f"{artefact.name:<{width}}  ", "bold"), artefact.shows), soft_wrap=True)
        command = " ".join(filter(None, (f"newkind bench {artefact.study}", artefact.options())))
        words = f"{command}  on {', '.join(artefact.data)}  -> {artefact.files()}"
        console.print(Text(f"{'':<{width}}  {words}", "dim"), soft_wrap=True)
    console.print(
        "\nEach command takes --data NAME:FOLDER (once for each data) and --out FOLDER; a name may stand in place of the study.\n"
        "Any other data with truth will do. The paper's drawings of how methods are built show no result and are left out.",
        markup=False,
    )


def _tell_cells(console: Console, plan: Plan) -> None:
    results, cells = plan.results(), plan.cells()
    for name, (_, words) in cells.items():
        console.print(
            f"{'finished' if name in results else 'to do   '}  {words}  ({name})", markup=False, soft_wrap=True
        )
    if plan.n_open:
        console.print(f"to do     {plan.n_open} runs with a number of categories that is to be estimated first")
    console.print(f"{len(cells) + plan.n_open} runs, {len(results)} of them finished. Nothing was run.")


def _show(console: Console, table: Table) -> None:
    from rich.table import Table as Lines
    from rich.text import Text

    lines = Lines(title=Text(table.title), title_justify="left", header_style="bold")
    for column in table.columns:
        lines.add_column(Text(column.title), justify="left" if column.is_text else "right", overflow="fold")
    groups = set(table.groups())
    for i, cells in enumerate(table.cells()):
        if i in groups:
            lines.add_section()
        lines.add_row(*map(Text, cells))
    console.print(lines)
    for sentence in table.lines():
        console.print(sentence, markup=False, style="dim")
