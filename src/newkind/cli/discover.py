"""`newkind discover`: find the categories of partly labelled images."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from newkind.cli.options import Data, MinConfidence, config_options
from newkind.config import BackboneConfig, TrainingConfig, default_epochs

if TYPE_CHECKING:
    from newkind.config import DiscoverConfig
    from newkind.pipeline.discover import Outcome

__all__ = ["Method", "Recipe", "Settings", "discover"]

METHOD = "Method"
N_CATEGORIES = (
    "Number of categories, known and new together, or auto to estimate it. "
    "Default: the true number if the data has a `truth` column, otherwise auto."
)
DRY_RUN = "Only print what would be done, with time and disk space."
ONLINE = "Compute new random views in every epoch instead of caching tokens."
EPOCHS = "Number of epochs. Default: 40 for the recipe modern, otherwise 200."
Method = Annotated[
    str, typer.Option("--method", help="Name of a method; `newkind methods` lists them.", rich_help_panel=METHOD)
]
Recipe = Annotated[
    str | None,
    typer.Option(
        "--recipe",
        help="Recipe of simgcd: modern, release or paper. Default: modern, or release on a DINO v1 backbone.",
        rich_help_panel=METHOD,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="Setting of the method, such as entropy_weight=2. May be repeated.", rich_help_panel=METHOD
    ),
]


@config_options(training=TrainingConfig, backbone=BackboneConfig)
def discover(
    data: Data,
    out: Annotated[Path, typer.Option("--out", help="Run folder to create.")],
    training: TrainingConfig,
    backbone: BackboneConfig,
    n_categories: Annotated[str | None, typer.Option(help=N_CATEGORIES)] = None,
    at_most: Annotated[int | None, typer.Option(help="Upper bound of an estimated number of categories.")] = None,
    min_confidence: MinConfidence = 0.0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in --out.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Fail unless there is a run to resume.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=DRY_RUN)] = False,
    report: Annotated[bool, typer.Option(help="Write report.html at the end.")] = True,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard files.")] = False,
    method: Method = "simgcd",
    recipe: Recipe = None,
    settings: Settings = None,
    online: Annotated[bool, typer.Option("--online", help=ONLINE, rich_help_panel=METHOD)] = False,
    epochs: Annotated[int | None, typer.Option(help=EPOCHS, rich_help_panel="Training")] = None,
) -> None:
    """Discover the categories of partly labelled images. The same command resumes an interrupted run."""
    from newkind import distributed
    from newkind.api import report_outcome
    from newkind.data import open_data
    from newkind.pipeline.configure import configure, read_settings
    from newkind.pipeline.discover import discover as run_discovery
    from newkind.training.display import TrainingDisplay

    distributed.init_from_environment()
    if not distributed.main_process():
        _hide_messages()
    epochs = default_epochs(method, backbone.name, recipe) if epochs is None else epochs
    with distributed.clear_message():
        collection = open_data(data)
        config = configure(
            collection,
            method=method,
            recipe=recipe,
            n_categories=n_categories,
            at_most=at_most,
            settings=read_settings(settings or []),
            training=replace(training, epochs=epochs),
            backbone=backbone,
            online=online,
            min_confidence=min_confidence,
        )
        with TrainingDisplay(epochs, out if tensorboard else None) as display:
            outcome = run_discovery(
                collection, out, config, overwrite=overwrite, resume=resume, dry_run=dry_run, on_epoch=display.show
            )
        if outcome is not None and distributed.main_process():
            _print_outcome(outcome, config, report_outcome(outcome, collection) if report else None)
    distributed.shutdown()


def _hide_messages() -> None:
    """Messages of other processes than the first would repeat its own."""
    import logging

    logging.getLogger("newkind").setLevel(logging.ERROR)


def _print_outcome(outcome: Outcome, config: DiscoverConfig, report: Path | None) -> None:
    from newkind.cli.messages import next_command, print_line, result_console
    from newkind.data.wording import shell_quoted
    from newkind.methods.registry import find_method
    from newkind.progress import duration
    from newkind.report.contents import outcome_contents
    from newkind.report.summary import summary_of

    run = outcome.run.folder
    print_line()
    result_console().print(summary_of(outcome_contents(outcome)))
    parts = ", ".join(f"{name} {duration(seconds)}" for name, seconds in outcome.seconds.items())
    print_line(f"\nTime: {parts}. Method {find_method(config.method_name).title}, backbone {config.backbone.name}.")
    print_line(f"Results: {run / 'assignments.csv'}")
    if report is not None:
        print_line(f"Report:  {report}")
    next_command(f"newkind sort {shell_quoted(str(run))} --to {shell_quoted(f'{run}-sorted')}")
