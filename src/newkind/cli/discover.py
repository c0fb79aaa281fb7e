"""`newkind discover`: find the categories of partly labelled images."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from newkind.cli.options import DATA, MinConfidence, config_options, given_options
from newkind.config import BackboneConfig, EffortName, TrainingConfig

if TYPE_CHECKING:
    from newkind.config import DiscoverConfig
    from newkind.data import Collection
    from newkind.pipeline.discover import Outcome

__all__ = ["Effort", "Method", "Recipe", "Settings", "discover"]

METHOD, COME_BACK = "Method", "More images"
N_CATEGORIES = (
    "Number of categories, known and new together, or auto to estimate it. "
    "Default: the true number if the data has a `truth` column, otherwise auto."
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
    out: Annotated[Path, typer.Option("--out", help="Run folder to create.")],
    training: TrainingConfig,
    backbone: BackboneConfig,
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
    from newkind.api import first_answer_reporter, report_outcome
    from newkind.data import open_data
    from newkind.effort import Amount
    from newkind.pipeline.configure import configure, read_settings
    from newkind.pipeline.discover import discover as run_discovery
    from newkind.training.display import TrainingDisplay

    distributed.init_from_environment()
    if not distributed.main_process():
        _hide_messages()
    with distributed.clear_message(), _names_what_is_left(out):
        if run_before is not None:
            _continue(run_before, out, data, add or [], report=report)
            return
        collection = open_data(_required(data, add))
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
            _print_costs(collection, config)
            distributed.shutdown()
            return
        on_first = first_answer_reporter(collection, report=report) if first_answer else None
        with TrainingDisplay(config.training.epochs, out if tensorboard else None) as display:
            run = partial(run_discovery, on_epoch=display.show, on_first_answer=on_first)
            outcome = run(collection, out, config, overwrite=overwrite, resume=resume)
        if distributed.main_process():
            _print_outcome(outcome, report_outcome(outcome, collection) if report else None)
    distributed.shutdown()


def _required(data: str | None, add: list[Path] | None) -> str:
    """DATA, which only a continued run can do without."""
    from newkind.errors import ConfigError

    if data is None:
        raise ConfigError("Name the data, or a run with --continue.", code="missing-argument", setting="data")
    if add:
        raise ConfigError("`add` is only used with --continue.", code="other-settings", setting="add")
    return data


def _continue(run_before: Path, out: Path, data: str | None, add: list[Path], *, report: bool) -> None:
    """Continue a run, and print the result. Other settings than those of `ContinueConfig` are errors."""
    from newkind.api import report_outcome
    from newkind.errors import ConfigError
    from newkind.pipeline.continue_run import ContinueConfig, continue_run
    from newkind.pipeline.continued_images import open_continued
    from newkind.runs.run import Run

    options = given_options()
    how = {name: bool(options.pop(name, False)) for name in ("overwrite", "resume")}
    for name in ("data", "out", "run_before", "add", "report", "first_answer"):
        options.pop(name, None)
    if number := options.pop("n_categories", None):
        options["n_categories"] = _number(number)
    if other := sorted(options.keys() - {field.name for field in fields(ContinueConfig)}):
        raise ConfigError(
            f"`{other[0]}` is that of the run that is continued.",
            fix="Leave it out, or start another run with discover.",
            code="other-settings",
            setting=other[0],
        )
    before = Run.open(run_before)
    images = open_continued(before, data=data, add=add)
    outcome = continue_run(before, images, out, ContinueConfig(**options), **how)
    _print_outcome(outcome, report_outcome(outcome, images.collection) if report else None)


def _number(text: str) -> int | None:
    """Number of categories as typed; None for auto."""
    from newkind.config import NCategories

    return NCategories.read(text).number


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


def _hide_messages() -> None:
    """Messages of other processes than the first would repeat its own."""
    import logging

    logging.getLogger("newkind").setLevel(logging.ERROR)


def _print_costs(collection: Collection, config: DiscoverConfig) -> None:
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
    for cost in estimate_efforts(collection, config):
        times = (duration(seconds) for seconds in (cost.first_seconds, cost.seconds))
        cells = (f"{cost.n_views:,}", data_size(cost.n_bytes), str(cost.epochs), *times)
        table.add_row(*map(Text, (cost.effort, *cells)), style="bold" if cost.is_chosen else "")
    result_console().print(table)
    print_line(f"Estimated for {len(collection.catalog):,} images, without the clustering. Chosen: {config.effort}.")


def _print_outcome(outcome: Outcome, report: Path | None) -> None:
    from newkind.cli.messages import next_command, print_line, result_console
    from newkind.data.wording import shell_quoted
    from newkind.methods.registry import find_method
    from newkind.progress import duration
    from newkind.report.contents import outcome_contents
    from newkind.report.since import since_of
    from newkind.report.summary import since_table, summary_of

    run, contents = outcome.run.folder, outcome_contents(outcome)
    print_line()
    result_console().print(summary_of(contents))
    since = since_of(contents)
    if since is not None:
        print_line()
        result_console().print(since_table(contents, since))
    settings = outcome.run.config()["config"]
    parts = ", ".join(f"{name} {duration(seconds)}" for name, seconds in outcome.seconds.items())
    print_line(
        f"\nTime: {parts}. Method {find_method(settings['method_name']).title}, "
        f"backbone {settings['backbone']['name']}."
    )
    print_line(f"Results: {run / 'assignments.csv'}")
    if report is not None:
        print_line(f"Report:  {report}")
    next_command(f"newkind sort {shell_quoted(str(run))} --to {shell_quoted(f'{run}-sorted')}")
