"""`tune`: a method's settings, chosen by the labelled images alone.

Every setting is run on rehearsals (`pretending`) in which known classes are held out as if they were new. A run that is finished
is never run again: the same call goes on where an earlier one was ended.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from newkind.backbone.loader import Prepared, choose_device, prepare_cache, prepare_trunk
from newkind.backbone.ready import ReadyFeatures
from newkind.config import BackboneConfig, DiscoverConfig, TrainingConfig, configure, default_recipe, to_json
from newkind.data import Collection, Features, Images
from newkind.data.sampling import steps_per_epoch
from newkind.errors import BrokenImage, ConfigError, RunError
from newkind.evaluation import Accuracy
from newkind.experiments.holdout import pretend
from newkind.experiments.ranking import Ranking, Tried, rank, write_ranking
from newkind.methods.registry import build_method, find_method
from newkind.pipeline.announce import step_seconds, tell_data, tell_skipped
from newkind.pipeline.discover import discover
from newkind.progress import duration, percent
from newkind.runs.run import Run
from newkind.training.network import Network
from newkind.training.trainer import EpochReport

__all__ = ["Cell", "Plan", "TuneConfig", "candidates", "plan_tuning", "read_tries", "tune"]

logger = logging.getLogger(__name__)
OnEpoch = Callable[[EpochReport, Accuracy | None], None]
Watch = Callable[[str, int], AbstractContextManager[OnEpoch | None]]
"""(what is run, its epochs) -> what to tell after every epoch, as long as it runs."""
MODERN_TRIES = {"block_rate": ("0", "0.01", "0.03"), "mixture_balance": ("1", "4")}
"""For SimGCD's recipe `modern`, if nothing is said."""
EPOCHS = 20
WRITING = 1.0
"""Seconds for a run folder."""


@dataclass(frozen=True, kw_only=True)
class TuneConfig:
    """What is to be tried, and how."""

    tries: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """A setting -> its values; all combinations are tried. Empty: `MODERN_TRIES`."""
    n_folds: int = 2
    method: str = "simgcd"
    recipe: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The same in all runs."""
    training: TrainingConfig = field(default_factory=lambda: TrainingConfig(epochs=EPOCHS))
    """Its seed also decides which classes are held out."""
    trunk: BackboneConfig = field(default_factory=BackboneConfig)
    benchmark: str = ""

    def __post_init__(self) -> None:
        if self.n_folds < 2:
            raise ConfigError(f"At least 2 folds are needed, to see how far results differ; got {self.n_folds}.")
        if both := sorted(self.tries.keys() & self.settings.keys()):
            raise ConfigError(f"{both[0]} is both to be tried and set.", fix="Leave out one of the two.")

    @property
    def named_recipe(self) -> str:
        return self.recipe or default_recipe(self.method, self.trunk.name)

    def of(self, data: Collection, chosen: Mapping[str, Any], trunk: BackboneConfig) -> DiscoverConfig:
        """Of the run with these settings on this data, with as many categories as it has."""
        return configure(
            data,
            training=replace(self.training, evaluate_every=self.training.epochs),  # only the end counts
            trunk=trunk,
            method=self.method,
            recipe=self.named_recipe,
            settings={**self.settings, **chosen},
            benchmark=self.benchmark,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Cell:
    """One setting on one fold."""

    settings: dict[str, str]
    is_default: bool
    fold: int
    data: Collection
    config: DiscoverConfig
    run: Run

    @property
    def words(self) -> str:
        return f"{told(self.settings)}, fold {self.fold}"

    def scores(self) -> dict[str, float | None] | None:
        """All, Old and New; None if it is not finished."""
        if not self.run.scores_file.exists():
            return None
        accuracy = self.run.read_json(self.run.scores_file).get("accuracy")
        if not isinstance(accuracy, dict) or not {"all", "old", "new"} <= accuracy.keys():
            raise RunError(
                f"{self.run.scores_file} holds no scores.", fix=f"Remove {self.run.folder} and run it again."
            )
        return {name: accuracy[name] for name in ("all", "old", "new")}


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """Every cell, fold by fold, so that a tuning that is ended has something of every setting."""

    cells: tuple[Cell, ...]
    n_folds: int
    seconds: float | None
    """What a cell will take, about; None where nothing is trained."""

    @property
    def todo(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.scores() is None]

    def sentence(self) -> str:
        """How much there is to do, and how long it takes."""
        n_settings, n_todo = len(self.cells) // self.n_folds, len(self.todo)
        runs = f"{len(self.cells)} runs ({n_settings} settings x {self.n_folds} folds)"
        if not n_todo:
            return f"{runs}, all of them finished."
        done = f", {len(self.cells) - n_todo} of them finished, {n_todo} to do" if n_todo < len(self.cells) else ""
        known = f"about {duration(n_todo * self.seconds)}" if self.seconds else "how long is known after the first one"
        return f"{runs}{done}, {known}."


def read_tries(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """name=value,value,..., as on a command line."""
    tries: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name, split = name.strip().replace("-", "_"), tuple(value.strip() for value in values.split(","))
        if not equals or not name or not all(split):
            raise ConfigError(f"What to try is written as name=value,value,...; got '{text}'.")
        if name in tries:
            raise ConfigError(f"{name} is to be tried twice.", fix=f"Put all its values into one: --try {name}=a,b,c.")
        tries[name] = split
    return tries


def candidates(tries: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Every combination of the values."""
    return [dict(zip(tries, values, strict=True)) for values in product(*tries.values())]


def default_tries(method: str, recipe: str, *, ready: bool) -> dict[str, tuple[str, ...]]:
    """ready: features without a backbone, so that there is no block that could learn."""
    if method != "simgcd" or recipe != "modern":
        raise ConfigError(
            f"What to try has to be said for {find_method(method).title}{f', recipe {recipe}' if method == 'simgcd' else ''}.",
            fix=f"As --try NAME=VALUE,VALUE; newkind methods {method} shows its settings.",
        )
    return {name: values for name, values in MODERN_TRIES.items() if not (ready and name == "block_rate")}


def tune(
    collection: Collection,
    out: Path,
    config: TuneConfig,
    *,
    data: str = "",
    watch: Watch | None = None,
    dry_run: bool = False,
) -> Ranking | None:
    """Runs what is not finished of every setting on every fold, and ranks the settings. None for a dry run.

    data: what the user calls it.
    """
    collection = replace(collection, truth=None)  # nobody here may look at it
    plan = plan_tuning(collection, out, config, dry_run=dry_run)
    logger.info(plan.sentence())
    if dry_run:
        for cell in plan.cells:
            logger.info(
                f"{'to do   ' if cell.scores() is None else 'finished'}  {cell.words}  ({cell.run.folder.name})"
            )
        logger.info("Nothing was run.")
        return None
    try:
        (out / "runs").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{out} cannot be made ({error.strerror}).", fix="Take another --out.") from None
    failures = _run(plan, watch=watch or _nobody_watches)
    found = rank(
        _tried(plan),
        plan.cells[0].config,
        data=data or collection.origin,
        n_images=len(plan.cells[0].data.catalog),
        fixed=config.settings,
        failures=failures,
    )
    write_ranking(found, out)
    return found


def plan_tuning(collection: Collection, out: Path, config: TuneConfig, *, dry_run: bool = False) -> Plan:
    """Checks everything that can be wrong, builds the token cache of the whole collection, and names the cells."""
    ready = isinstance(collection.catalog.items, Features)
    seed, trunk = config.training.seed, config.backbone
    rehearsal = pretend(collection, fold=0, seed=seed)
    grid = _grid(config, rehearsal, ready=ready)
    tell_data(collection)
    start = time.perf_counter()
    prepared = None if ready else prepare_trunk(trunk)
    loading = time.perf_counter() - start
    if prepared is not None:
        collection, trunk = _with_tokens(collection, trunk, prepared, dry_run=dry_run)
        rehearsal = pretend(collection, fold=0, seed=seed)
    content = _content_hash(rehearsal.catalog.items, prepared)
    cells = []
    for fold in range(config.n_folds):
        rehearsal = pretend(collection, fold=fold, seed=seed)
        for chosen, is_default in grid:
            asked = config.of(rehearsal, chosen, trunk)
            run = Run(out / "runs" / _name(chosen, fold, rehearsal, asked, content))
            cells.append(Cell(settings=chosen, is_default=is_default, fold=fold, data=rehearsal, config=asked, run=run))
    seconds = _run_seconds(cells[0], prepared)
    return Plan(cells=tuple(cells), n_folds=config.n_folds, seconds=seconds and loading + seconds + WRITING)


def _grid(config: TuneConfig, rehearsal: Collection, *, ready: bool) -> list[tuple[dict[str, str], bool]]:
    """(setting, whether it is the default), each once; the default is always among them, and first."""
    tries = config.tries or default_tries(config.method, config.named_recipe, ready=ready)
    default = config.of(rehearsal, {}, config.backbone).method
    found = [default]
    for chosen in candidates(tries):
        asked = config.of(rehearsal, chosen, config.backbone).method
        with torch.random.fork_rng(devices=[]):
            if build_method(config.method, 2, asked).needs_truth:
                raise ConfigError(f"{told(chosen)}: an oracle learns from the truth.", fix="Take another supervision.")
        if asked not in found:
            found.append(asked)
    if len(found) == 1:
        raise ConfigError("There is nothing to choose from: this is the default.", fix="Try other values as well.")
    return [({name: _text(getattr(asked, name)) for name in tries}, asked == default) for asked in found]


def _text(value: Any) -> str:
    """As on a command line."""
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return str(value).removesuffix(".0")


def told(settings: Mapping[str, Any]) -> str:
    """name=value, name=value"""
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _with_tokens(
    collection: Collection, trunk: BackboneConfig, prepared: Prepared, *, dry_run: bool
) -> tuple[Collection, BackboneConfig]:
    """Builds the cache of all images, which `discover` needs anyway. Unreadable images lose their label; views are those that fit."""
    cache = prepare_cache(collection, trunk, prepared, dry_run=dry_run)
    if cache is None:
        return collection, trunk
    tell_skipped(cache.skipped)
    labels = np.where(cache.usable, collection.catalog.labels, np.int32(-1))
    n_views = cache.n_views
    cache.store.close()
    return replace(collection, catalog=replace(collection.catalog, labels=labels)), replace(trunk, n_views=n_views)


def _content_hash(items: Images | Features, prepared: Prepared | None) -> bytes:
    """Of the labelled items, and of the weights that they are seen through."""
    if isinstance(items, Features):
        return ReadyFeatures(items).content_hash()
    digest = hashlib.sha256(prepared.sha256.encode() if prepared else b"")
    for i in range(len(items)):
        try:
            digest.update(hashlib.sha256(items.content(i)).digest())
        except BrokenImage:
            digest.update(b"broken")
    return digest.digest()


def _name(settings: dict[str, str], fold: int, data: Collection, config: DiscoverConfig, content: bytes) -> str:
    """Of a cell's folder: readable, with a hash of everything that decides its result."""
    deciding = to_json(config)
    del deciding["trunk"]["device"], deciding["trunk"]["weights"], deciding["known_k"]
    del deciding["training"]["checkpoint_seconds"], deciding["training"]["evaluate_every"]
    if isinstance(data.catalog.items, Features):
        del deciding["trunk"]
    names = None if data.truth is None else data.truth.class_names
    digest = hashlib.sha256(json.dumps([deciding, fold, names], sort_keys=True).encode() + content)
    digest.update(np.ascontiguousarray(data.catalog.labels).tobytes())
    words = re.sub(r"[^A-Za-z0-9._]+", "-", "-".join(f"{name}-{value}" for name, value in settings.items()))
    return f"{words[:80]}-fold{fold}-{digest.hexdigest()[:10]}"


def _run_seconds(cell: Cell, prepared: Prepared | None) -> float | None:
    """Training and the looks at all images before and after it, from one step on made-up tokens."""
    items, config, n_images = cell.data.catalog.items, cell.config, len(cell.data.catalog)
    if not find_method(config.method_name).method.trains:
        return None
    training = replace(config.training, batch_size=min(config.training.batch_size, n_images))
    dim = items.values.shape[1] if isinstance(items, Features) else prepared.tuned.dim if prepared else 0
    device = prepared.device if prepared else choose_device(config.backbone.device)
    with torch.random.fork_rng(devices=[]):
        network = Network(prepared.tuned if prepared else None, build_method(config.method_name, dim, config.method))
    seconds = step_seconds(replace(config, training=training), prepared, network, device, dim)
    # Forward alone is a third of a step; all images are looked at three times: at the start, after the last epoch, to sort.
    looks = (1 + network.method.n_looks) * n_images / (training.n_views * training.batch_size)
    return seconds * (training.epochs * steps_per_epoch(n_images, training.batch_size) + looks)


@contextmanager
def _nobody_watches(_: str, __: int) -> Iterator[None]:
    yield None


def _run(plan: Plan, *, watch: Watch) -> list[str]:
    """Runs what is not finished; what went wrong with those that failed, in sentences."""
    failures: list[str] = []
    taken: list[float] = []
    todo = plan.todo
    for i, cell in enumerate(todo, start=1):
        start = time.perf_counter()
        try:
            with watch(cell.words, cell.config.training.epochs) as on_epoch:
                discover(cell.data, cell.run.folder, cell.config, on_epoch=on_epoch)
        except RunError as error:  # the others go on
            what = f"{error.what} Remove {cell.run.folder}." if "--overwrite" in error.fix else str(error)
            failures.append(f"{cell.words}: {what}")
            logger.info(f"[{i}/{len(todo)}] {cell.words}: failed. {what}")
            continue
        cell.run.checkpoint_file.unlink(missing_ok=True)  # what is finished is never gone on with
        taken.append(time.perf_counter() - start)
        shown = "  ".join(f"{k.capitalize()} {_percent(v)}" for k, v in (cell.scores() or {}).items())
        left = f"; about {duration(median(taken) * (len(todo) - i))} left" if i < len(todo) else ""
        logger.info(f"[{i}/{len(todo)}] {cell.words}: {shown} ({duration(taken[-1])}{left})")
    return failures


def _tried(plan: Plan) -> list[Tried]:
    """Every setting that is finished on all folds."""
    by_setting: dict[tuple[str, ...], list[Cell]] = {}
    for cell in plan.cells:
        by_setting.setdefault(tuple(cell.settings.values()), []).append(cell)
    found = []
    for cells in by_setting.values():
        scores = [score for cell in cells if (score := cell.scores()) is not None]
        if len(scores) == plan.n_folds:
            found.append(Tried(settings=cells[0].settings, is_default=cells[0].is_default, folds=tuple(scores)))
    return found


def _percent(value: float | None) -> str:
    return "-" if value is None else percent(value).strip()


def _nothing(_: str) -> None:
    pass
