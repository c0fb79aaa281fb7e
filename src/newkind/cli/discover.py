"""`newkind discover`: find the categories of partly labelled images."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from newkind.cli.continue_run import continue_run, required_data
from newkind.cli.options import DATA, MinConfidence, config_options, given_options
from newkind.cli.outcome import print_outcome
from newkind.config import BackboneConfig, EffortName, TrainingConfig
from newkind.reading import ReadingConfig

if TYPE_CHECKING:
    from newkind.config import DiscoverConfig
    from newkind.data import Collection

__all__ = ["VIEWS", "Effort", "Method", "Recipe", "Settings", "discover"]

METHOD, COME_BACK = "Method", "More images"
N_CATEGORIES = (
    "Number of categories, known and new together, or auto to estimate it. "
    "Default: the true number if the data has a `truth` column that is filled for every unlabelled image, otherwise auto."
)
CONTINUE = "Run to continue with more images. Its decisions, ids and names are kept. DATA: its data, if that was moved."
ADD = "Folder of new images, all unlabelled, or a table. May be repeated. Only with --continue."
DRY_RUN = "Only print the time and disk space of every effort."
FIRST = "Write an answer from one view per image first."
ONLINE = "Compute new random views in every epoch instead of caching tokens."
EPOCHS = "Number of epochs; 0 for no training. Default: that of the effort; 200 for methods that need training."
VIEWS = "Number of random views per image. Default: that of the effort; 8 for methods that need training."
Effort = Annotated[
    str | None,
    typer.Option(
        "--effort",
        help="Effort: quick (one view per image), standard (several views) or thorough (training included). "
        "Default: standard; thorough for methods that need training, and for tune.",
        metavar="quick|standard|thorough",
    ),
]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        help="Name of a method, or package.module:Class; `newkind methods` lists them.",
        rich_help_panel=METHOD,
    ),
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


@config_options(training=TrainingConfig, backbone=BackboneConfig, reading=ReadingConfig)
def discover(
    context: typer.Context,
    out: Annotated[Path, typer.Option("--out", help="Run folder to create.")],
    training: TrainingConfig,
    backbone: BackboneConfig,
    reading: ReadingConfig,
    data: Annotated[str | None, typer.Argument(help=DATA, show_default=False)] = None,
    run_before: Annotated[Path | None, typer.Option("--continue", help=CONTINUE, rich_help_panel=COME_BACK)] = None,
    add: Annotated[list[Path] | None, typer.Option("--add", help=ADD, rich_help_panel=COME_BACK)] = None,
    n_categories: Annotated[str | None, typer.Option(help=N_CATEGORIES)] = None,
    effort: Effort = None,
    at_most: Annotated[int | None, typer.Option(help="Upper bound of an estimated number of categories.")] = None,
    min_confidence: MinConfidence = 0.0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run in --out.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Fail unless there is a run to resume.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=DRY_RUN)] = False,
    first_answer: Annotated[bool, typer.Option(help=FIRST)] = True,
    report: Annotated[bool, typer.Option(help="Write report.html.")] = True,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard files.")] = False,
    method: Method = "simgcd",
    recipe: Recipe = None,
    settings: Settings = None,
    online: Annotated[bool, typer.Option("--online", help=ONLINE, rich_help_panel=METHOD)] = False,
    epochs: Annotated[int | None, typer.Option(help=EPOCHS, rich_help_panel="Training")] = None,
    views: Annotated[int | None, typer.Option(help=VIEWS, rich_help_panel="Backbone and views")] = None,
) -> None:
    """Discover the categories of partly labelled images. The same command resumes an interrupted run."""
    from newkind import distributed
    from newkind.data import open_data
    from newkind.effort import Amount
    from newkind.pipeline.configure import configure, read_settings
    from newkind.process_failure import clear_message

    _refuse_both(overwrite=overwrite, resume=resume)
    distributed.init_from_environment()
    _hide_messages_of_others()
    with clear_message(), _names_what_is_left(out):
        if run_before is not None:
            continue_run(run_before, given_options(context))
            return
        collection = open_data(required_data(data, add), **reading.given())
        config = configure(
            collection,
            method=method,
            recipe=recipe,
            amount=Amount(effort=cast(EffortName | None, effort), epochs=epochs, views=views),
            n_categories=n_categories,
            at_most=at_most,
            settings=read_settings(settings or []),
            training=training,
            backbone=backbone,
            online=online,
            min_confidence=min_confidence,
        )
        if dry_run:
            _print_costs(collection, config, first_answer=first_answer)
        else:
            shown = {"first_answer": first_answer, "report": report, "tensorboard": tensorboard}
            _run(collection, out, config, overwrite=overwrite, resume=resume, **shown)
    distributed.shutdown()


def _refuse_both(*, overwrite: bool, resume: bool) -> None:
    from newkind.errors import ConfigError

    if overwrite and resume:
        raise ConfigError(
            "`overwrite` and `resume` cannot be used together.", fix="Leave out one of the two.", code="conflict"
        )


def _run(
    collection: Collection,
    out: Path,
    config: DiscoverConfig,
    *,
    first_answer: bool,
    report: bool,
    tensorboard: bool,
    **how: bool,
) -> None:
    """Run a discovery, and print the result in the main process."""
    from newkind.api import first_answer_reporter, report_outcome
    from newkind.distributed import main_process
    from newkind.pipeline.discover import discover as run_discovery
    from newkind.training.display import TrainingDisplay

    on_first = first_answer_reporter(collection, report=report) if first_answer else None
    with TrainingDisplay(config.training.epochs, out if tensorboard else None) as display:
        outcome = run_discovery(collection, out, config, on_epoch=display.show, on_first_answer=on_first, **how)
    if main_process():
        print_outcome(outcome, report_outcome(outcome, collection) if report else None)


@contextmanager
def _names_what_is_left(out: Path) -> Iterator[None]:
    """After Ctrl-C, print whether there is an answer to use."""
    try:
        yield
    except KeyboardInterrupt:
        from newkind.cli.messages import print_line
        from newkind.runs.run import Run

        if (out / "config.json").exists() and Run.open(out).answer == "first":
            print_line(f"The first answer is in {out}. The same command computes the final one.")
        raise


def _hide_messages_of_others() -> None:
    """Messages of other processes than the first would repeat its own."""
    import logging

    from newkind.distributed import main_process

    if not main_process():
        logging.getLogger("newkind").setLevel(logging.ERROR)


def _print_costs(collection: Collection, config: DiscoverConfig, *, first_answer: bool) -> None:
    """Print a table of all efforts, in the main process."""
    from rich.table import Table
    from rich.text import Text

    from newkind.cli.messages import print_line, result_console
    from newkind.distributed import main_process
    from newkind.pipeline.dry_run import estimate_efforts
    from newkind.progress import data_size, duration

    if not main_process():
        return
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("Effort", no_wrap=True)
    for title in ("Views to compute", "Disk space", "Epochs", "First answer", "Final answer"):
        table.add_column(title, justify="right")
    for cost in estimate_efforts(collection, config, first_answer=first_answer):
        times = ("–" if seconds is None else duration(seconds) for seconds in (cost.first_seconds, cost.seconds))
        cells = (f"{cost.n_views:,}", data_size(cost.n_bytes), str(cost.epochs), *times)
        table.add_row(*map(Text, (cost.effort, *cells)), style="bold" if cost.is_chosen else "")
    result_console().print(table)
    print_line(f"Estimated for {len(collection.catalog):,} images, without the clustering. Chosen: {config.effort}.")
