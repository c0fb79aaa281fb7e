"""`newkind bench`: tables, ablation and studies of the paper, on any data with truth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from newkind.cli.options import config_options
from newkind.config import BackboneConfig
from newkind.experiments.paper.protocol import Protocol, read_epsilons, read_methods

if TYPE_CHECKING:
    from newkind.experiments.cells import Cell
    from newkind.experiments.paper.plan_study import StudyPlan
    from newkind.experiments.paper.study import Study
    from newkind.experiments.paper.table import Table

__all__ = ["bench"]


@config_options(protocol=Protocol, backbone=BackboneConfig)
def bench(
    study: Annotated[
        str, typer.Argument(help="Name of a study, or of a table or figure of the paper; `list` lists them.")
    ],
    protocol: Protocol,
    backbone: BackboneConfig,
    data: Annotated[
        list[str] | None,
        typer.Option(
            help="Data with truth: a folder, a table, an .npz file, or a benchmark as NAME:FOLDER. May be repeated."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for runs, tables and figures.")] = None,
    methods: Annotated[
        str, typer.Option(help="Methods to compare, such as simgcd,gcd. Default: those of the study.")
    ] = "",
    epsilons: Annotated[
        str, typer.Option(help="Weights of the entropy term, such as 1,2,4. Default: those of the study.")
    ] = "",
    figures: Annotated[bool, typer.Option(help="Draw figures.")] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print the runs, which of them are finished, and their time.")
    ] = False,
) -> None:
    """Make a table of the paper: run what is missing, and write tables and figures. The same command resumes."""
    if study == "list":
        _print_catalogue()
        return
    from newkind.errors import ConfigError
    from newkind.experiments.paper.plan_study import find_study

    found, artefact = find_study(study)
    if not data or out is None:
        raise ConfigError(
            f"newkind bench {study} needs `data` and `out`.",
            fix=f"Example: {artefact.command()}" if artefact else "newkind bench list shows examples.",
            code="missing-option",
        )
    protocol = replace(
        protocol,
        methods=read_methods(methods) or (artefact.methods if artefact else ()),
        epsilons=read_epsilons(epsilons) or (artefact.epsilons if artefact else ()),
        backbone=backbone,
    )
    if dry_run:
        _print_cells(_plan(found, data, protocol, out, estimate=False))
    else:
        _run(_plan(found, data, protocol, out), figures=figures)


def _plan(study: Study, data: list[str], protocol: Protocol, out: Path, *, estimate: bool = True) -> StudyPlan:
    from newkind.experiments.paper.dataset import open_bench_data
    from newkind.experiments.paper.plan_study import plan_study

    return plan_study(study, [open_bench_data(text) for text in data], protocol, out, estimate=estimate)


def _run(plan: StudyPlan, *, figures: bool) -> None:
    """Run a study, print its table, and draw its figures."""
    from newkind.cli.epoch_bar import watch_epochs
    from newkind.cli.messages import print_line
    from newkind.data.wording import count
    from newkind.errors import RunError
    from newkind.experiments.paper.figures import FIGURES
    from newkind.experiments.paper.run_study import build_table, run_study

    tables = run_study(plan, watch=watch_epochs)
    _print_table(build_table(plan))
    print_line(f"Tables: {', '.join(map(str, tables))}")
    draw = FIGURES.get(plan.study.name) if figures else None
    drawn = draw(plan.study.name, plan.finished(), plan.out) if draw else []
    if drawn:
        print_line(f"Figures: {', '.join(map(str, drawn))}")
    if n_failures := len(plan.schedule.failures):
        raise RunError(
            f"{n_failures} of {count(len(plan.schedule.cells), 'run')} failed; the table is incomplete.",
            fix="The messages above name the reasons. The same command repeats the failed runs.",
            code="runs-failed",
            n_failures=n_failures,
        )


def _print_catalogue() -> None:
    """Print every table and figure of the paper, the command that makes it, and its files."""
    from newkind.cli.messages import print_line
    from newkind.experiments.paper.catalogue import ARTEFACTS

    for artefact in ARTEFACTS.values():
        print_line(f"{artefact.name}: {artefact.shows} ({artefact.files()})", style="bold")
        print_line(f"  {artefact.command()}")
    print_line(
        "\nReplace FOLDER by the folder of the dataset and OUT by the output folder. A name of this list can be used in "
        "place of the study.\nEvery study also runs on other data with truth. Drawings of how methods work are not in the list."
    )


def _print_cells(plan: StudyPlan) -> None:
    """Print the runs of a study and which of them are finished."""
    from newkind.cli.messages import print_line
    from newkind.data.wording import count

    for line in plan.schedule.listing():
        print_line(line)
    if plan.n_open:
        print_line(f"to run    {count(plan.n_open, 'run')} whose number of categories is estimated first")
    results = plan.schedule.results()
    print_line(f"{count(len(plan.schedule.cells) + plan.n_open, 'run')}, {len(results)} finished. Nothing was run.")
    todo = [cell for name, cell in plan.schedule.cells.items() if name not in results]
    if todo:
        _print_cost(todo, plan.n_open)


def _print_cost(todo: list[Cell], n_open: int) -> None:
    """Print the estimated time and disk space of runs; those that are still open are counted as the mean of the others."""
    from newkind.cli.messages import print_line
    from newkind.experiments.study_cost import estimate_cost
    from newkind.progress import data_size, duration

    cost = estimate_cost(todo)
    training = cost.training_seconds * (len(todo) + n_open) / len(todo)
    parts = [f"training about {duration(training)}"] if training else []
    if cost.n_views:
        stored = f"{data_size(cost.n_bytes)} on disk"
        parts.insert(0, f"{cost.n_views:,} views about {duration(cost.view_seconds)} ({stored})")
    listed = "; ".join(parts) or "nothing but clustering"
    total = f"; in all about {duration(cost.view_seconds + training)}" if len(parts) > 1 else ""
    print_line(f"Estimated on {cost.device}: {listed}{total}. Clustering and scores are not included.")
    if cost.random_weights:
        print_line("The weights of the backbone are not on this machine; the rates were measured with random weights.")


def _print_table(table: Table) -> None:
    from rich.table import Table as Lines
    from rich.text import Text

    from newkind.cli.messages import print_line, result_console

    lines = Lines(title=Text(table.title), title_justify="left", header_style="bold")
    for column in table.columns:
        lines.add_column(Text(column.title), justify="left" if column.is_text else "right", overflow="fold")
    groups = set(table.groups())
    for i, cells in enumerate(table.cells()):
        if i in groups:
            lines.add_section()
        lines.add_row(*map(Text, cells))
    result_console().print(lines)
    for sentence in table.lines():
        print_line(sentence, style="dim")
