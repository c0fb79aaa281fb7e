"""`tune`: choose the settings of a method with labelled images alone.

Each combination of settings is run on hold-out problems (`holdout`), in which some known classes are treated as new. A
finished run is never repeated: the same call continues where an earlier one was stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from newkind.atomic import check_folder
from newkind.backbone.sources import announce_cache, open_cache
from newkind.config import DiscoverConfig
from newkind.data import Collection
from newkind.data.sampling import steps_per_epoch
from newkind.errors import RunError
from newkind.experiments.candidates import Candidate, find_candidates, shown_settings, tuning_config
from newkind.experiments.cells import Cell, make_cell
from newkind.experiments.collection_digest import collection_digest
from newkind.experiments.holdout import hold_out
from newkind.experiments.next_command import options_of, shell_command, unused_folder
from newkind.experiments.ranking import Ranking, Tried, rank, write_ranking
from newkind.experiments.scheduler import Schedule, Watch
from newkind.experiments.tune_config import EPOCHS, TuneConfig
from newkind.methods.registry import find_method
from newkind.pipeline.announce import announce_data, step_seconds
from newkind.pipeline.setup import Setup, load_setup, new_network
from newkind.reading import ReadingConfig

__all__ = ["EPOCHS", "TuneConfig", "TunePlan", "plan_tuning", "run_tuning", "tune"]

logger = logging.getLogger(__name__)
SECONDS_PER_RUN = 1.0
"""Time to evaluate and to write a run folder, beside training."""
NOT_IN_COMMAND = ("epochs", "evaluate_every", "checkpoint_seconds")
"""Fields of the training that a suggested command does not repeat; the epochs are added where they belong."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TunePlan:
    """Runs of a tuning.

    Parameters
    ----------
    candidates : tuple of Candidate
        Combinations of settings.
    cells : tuple of tuple of Cell
        Run per candidate and fold.
    schedule : Schedule
        The same runs, fold by fold, so that an interrupted tuning has results of every candidate.
    """

    candidates: tuple[Candidate, ...]
    cells: tuple[tuple[Cell, ...], ...]
    schedule: Schedule

    @property
    def problem(self) -> Collection:
        """First hold-out problem."""
        return self.cells[0][0].collection

    def summary(self) -> str:
        """Number of runs, and how many are finished."""
        return f"{len(self.candidates)} settings x {len(self.cells[0])} folds: {self.schedule.summary()}"

    def tried(self) -> list[Tried]:
        """Scores of the candidates that are finished in all folds."""
        results, found = self.schedule.results(), []
        for candidate, cells in zip(self.candidates, self.cells, strict=True):
            if all(cell.name in results for cell in cells):
                folds = tuple(
                    {name: results[cell.name].score(name) for name in ("all", "old", "new")} for cell in cells
                )
                found.append(Tried(settings=candidate.settings, is_default=candidate.is_default, folds=folds))
        return found

    def failures(self) -> tuple[str, ...]:
        """Runs that failed, with the reasons."""
        failed = self.schedule.failures
        return tuple(f"{self.schedule.cells[name].title}: {error}" for name, error in failed.items())


def tune(
    collection: Collection, out: Path, config: TuneConfig, *, data: str = "", watch: Watch | None = None
) -> Ranking:
    """Run all settings on all folds, as far as they are not finished, and rank them.

    Parameters
    ----------
    collection : Collection
        The data. Only labelled images are used; its truth is not.
    out : Path
        Folder for the runs and for tune.json and tune.md.
    config : TuneConfig
        What to try, and how.
    data : str, default=""
        Name of the data for the suggested command. Default: its location.
    watch : Watch, optional
        Shows the epochs of each run.

    Returns
    -------
    Ranking
    """
    return run_tuning(plan_tuning(collection, out, config), out, config, data=data or collection.location, watch=watch)


def run_tuning(plan: TunePlan, out: Path, config: TuneConfig, *, data: str, watch: Watch | None = None) -> Ranking:
    """Run a plan and write its ranking.

    Parameters
    ----------
    plan : TunePlan
        Runs, from `plan_tuning`.
    out : Path
        Folder for tune.json and tune.md.
    config : TuneConfig
        Configuration of the plan.
    data : str
        Name of the data for the suggested command; empty for data in memory.
    watch : Watch, optional
        Shows the epochs of each run.

    Returns
    -------
    Ranking

    Raises
    ------
    RunError
        With code `nothing-finished` if no settings were finished in all folds.
    """
    logger.info(plan.summary())
    plan.schedule.run(watch=watch)
    failures, tried, n_images = plan.failures(), plan.tried(), len(plan.problem.catalog)
    if not tried and failures:
        raise RunError(
            f"No settings were finished in all folds. {failures[0]}", code="nothing-finished", n_failures=len(failures)
        )
    ranking = rank(tried, n_images=n_images)
    first = plan.cells[0][0].config
    about = {
        "data": data or plan.problem.origin,
        "method": first.method_name,
        "recipe": config.recipe,
        "epochs": first.training.epochs,
        "folds": config.folds,
        "seed": first.training.seed,
        "n_images": n_images,
        "n_classes": first.n_categories.number,
    }
    command = _next_command(config, data or "DATA", ranking.chosen, first, plan.problem.reading)
    ranking = replace(ranking, about=about, command=command, failures=failures)
    write_ranking(ranking, out)
    return ranking


def plan_tuning(collection: Collection, out: Path, config: TuneConfig, *, dry_run: bool = False) -> TunePlan:
    """Check the request, compute the tokens of the whole collection, and name the runs.

    The token cache is that of all images, because `discover` needs it afterwards.

    Parameters
    ----------
    collection : Collection
        The data. Only labelled images are used; its truth is not.
    out : Path
        Folder for the runs.
    config : TuneConfig
        What to try, and how.
    dry_run : bool, default=False
        Only log which tokens would be computed.

    Returns
    -------
    TunePlan
    """
    if not dry_run:
        check_folder(out)
    collection = replace(collection, truth=None)
    seed = config.training.seed
    problem = hold_out(collection, fold=0, seed=seed)
    candidates = find_candidates(config, problem)
    announce_data(collection)
    resolved = tuning_config(config, problem, {})
    setup = load_setup(collection, resolved, download=not dry_run)
    readable, n_views = _with_tokens(collection, resolved, setup, dry_run=dry_run)
    if resolved.training.epochs:  # the disk may have space for fewer
        config = replace(config, views=n_views)
    cells: list[list[Cell]] = [[] for _ in candidates]
    for fold in range(config.folds):
        problem = hold_out(readable, fold=fold, seed=seed)
        # Of all labelled images, so that a dry run, which does not know which ones can be read, finds the same names.
        digest = collection_digest(hold_out(collection, fold=fold, seed=seed))
        for own, candidate in zip(cells, candidates, strict=True):
            title = f"{shown_settings(candidate.settings)}, fold {fold}"
            asked = tuning_config(config, problem, candidate.settings)
            own.append(make_cell(problem, asked, title=title, prefix=f"fold{fold}", digest=digest))
    by_fold = [cell for fold in zip(*cells, strict=True) for cell in fold]
    schedule = Schedule(by_fold, out / "runs", seconds=_seconds_per_run(cells[0][0], setup))
    return TunePlan(candidates=tuple(candidates), cells=tuple(map(tuple, cells)), schedule=schedule)


def _with_tokens(
    collection: Collection, config: DiscoverConfig, setup: Setup, *, dry_run: bool
) -> tuple[Collection, int]:
    """Build the token cache. Images that cannot be read lose their labels. Also the number of random views in the cache."""
    if setup.backbone is None:
        return collection, config.backbone.views
    if dry_run:
        announce_cache(collection, config.backbone, setup.backbone, views=config.averaged_views)
        return collection, config.backbone.views
    cache = open_cache(collection, config.backbone, setup.backbone, views=config.averaged_views)
    labels = np.where(cache.usable, collection.catalog.labels, np.int32(-1))
    cache.close()
    return replace(collection, catalog=replace(collection.catalog, labels=labels)), cache.n_views


def _seconds_per_run(cell: Cell, setup: Setup) -> float | None:
    """Estimated time of one run, from one training step; None if nothing is trained."""
    if not cell.config.training.epochs:
        return None
    n_images, training = len(cell.collection.catalog), cell.config.training
    training = replace(training, batch_size=min(training.optimizer.batch_size, n_images))
    config = replace(cell.config, training=training)
    network = new_network(config, setup, config.n_categories.number or 2)
    steps = training.epochs * steps_per_epoch(n_images, training.optimizer.batch_size)
    return steps * step_seconds(cell.collection, config, setup, network) + SECONDS_PER_RUN


def _next_command(
    config: TuneConfig, data: str, chosen: dict[str, str], run: DiscoverConfig, reading: Mapping[str, Any]
) -> str:
    """The `discover` command for the whole data under the same conditions as a run, with the chosen settings."""
    words = ["newkind", "discover", data, "--out", unused_folder("run")]
    words += ["--method", config.method] if config.method != "simgcd" else []
    words += ["--recipe", config.recipe] if config.recipe else []
    words += [] if config.views is None else ["--views", str(config.views)]
    words += [
        *options_of(ReadingConfig(**reading)),
        *options_of(config.backbone, without=("views",)),
        *options_of(config.training, without=NOT_IN_COMMAND),
    ]
    if chosen and run.training.epochs:  # settings hold for as many epochs as they were tried with
        words += ["--epochs", str(run.training.epochs)]
    elif run.effort != ("thorough" if find_method(run.method_name).method.needs_training else "standard"):
        words += ["--effort", run.effort]
    return shell_command(*words, settings={**config.settings, **chosen})
