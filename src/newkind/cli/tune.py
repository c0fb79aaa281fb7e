"""`newkind tune`: choose settings of a method with labelled images alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from newkind.cli.discover import VIEWS, Effort, Method, Recipe, Settings
from newkind.cli.options import Data, config_options
from newkind.config import BackboneConfig, EffortName, TrainingConfig
from newkind.experiments.tune_config import EPOCHS, TuneConfig, read_tries
from newkind.reading import ReadingConfig

if TYPE_CHECKING:
    from newkind.experiments.ranking import Ranking

__all__ = ["tune"]


@config_options(training=(TrainingConfig, {"epochs": EPOCHS}), backbone=BackboneConfig, reading=ReadingConfig)
def tune(
    data: Data,
    out: Annotated[Path, typer.Option("--out", help="Folder for runs and results.")],
    training: TrainingConfig,
    backbone: BackboneConfig,
    reading: ReadingConfig,
    tries: Annotated[
        list[str] | None,
        typer.Option(
            "--try",
            help="Setting and values to try, such as block_rate=0,0.01,0.03. May be repeated; all combinations are tried. "
            "Default: some settings of the recipe modern.",
        ),
    ] = None,
    folds: Annotated[
        int, typer.Option(help="Number of times that half of the known classes is held out and treated as new.")
    ] = 2,
    effort: Effort = None,
    method: Method = "simgcd",
    recipe: Recipe = None,
    settings: Settings = None,
    views: Annotated[int | None, typer.Option(help=VIEWS, rich_help_panel="Backbone and views")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print the runs and which of them are finished.")
    ] = False,
) -> None:
    """Choose settings of a method: known classes are held out and treated as new, and every setting is scored on them."""
    from newkind.cli.epoch_bar import watch_epochs
    from newkind.cli.messages import print_line
    from newkind.data import open_data
    from newkind.errors import RunError
    from newkind.experiments.tune import plan_tuning, run_tuning
    from newkind.pipeline.configure import read_settings

    config = TuneConfig(
        tries=read_tries(tries or []),
        folds=folds,
        method=method,
        recipe=recipe,
        effort=cast(EffortName | None, effort),  # checked there
        settings=read_settings(settings or []),
        views=views,
        training=training,
        backbone=backbone,
    )
    plan = plan_tuning(open_data(data, **reading.given()), out, config, dry_run=dry_run)
    if dry_run:
        for line in [*plan.schedule.listing(), plan.summary()]:
            print_line(line)
        return
    ranking = run_tuning(plan, out, config, data=data, watch=watch_epochs)
    _print_ranking(ranking, out)
    if ranking.failures:
        raise RunError(
            f"{len(ranking.failures)} of {len(plan.schedule.cells)} runs failed; their settings are not in the table.",
            fix="The messages above name the reasons. The same command repeats the failed runs.",
            code="runs-failed",
            n_failures=len(ranking.failures),
        )


def _print_ranking(ranking: Ranking, out: Path) -> None:
    """Print the table, the verdict and the next command."""
    from rich.table import Table
    from rich.text import Text

    from newkind.cli.messages import next_command, print_line, result_console

    table = Table(header_style="bold")
    for name in ranking.best.settings:
        table.add_column(Text(name), overflow="fold")
    for title in ("All", "Old", "New"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("")
    for row in ranking.rows:
        cells = [*row.settings.values(), *map(row.shown, ("all", "old", "new"))]
        style = "bold" if row is ranking.best else ""
        table.add_row(*map(Text, cells), "default" if row.is_default else "", style=style)
    result_console().print(table)
    print_line(f"Accuracy in %, mean ± standard deviation over {ranking.about['folds']} folds.", style="dim")
    print_line(ranking.verdict())
    print_line(f"Results: {out / 'tune.md'}, {out / 'tune.json'}")
    next_command(ranking.command)
