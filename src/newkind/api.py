"""Newkind from Python: `discover`, `load`, `predict`, `tune` and `estimate_n_categories`."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal

from newkind.clustering.estimate import Estimate
from newkind.clustering.n_categories import estimate_n_categories as estimate_from_features
from newkind.config import DiscoverConfig, EffortName, read_options
from newkind.data import Collection, find_obstacles
from newkind.data.opening import open_with
from newkind.discovery import Discovery, PathLike
from newkind.distributed import main_process
from newkind.effort import Amount
from newkind.errors import ConfigError
from newkind.experiments.ranking import Ranking
from newkind.experiments.tune import EPOCHS, TuneConfig
from newkind.experiments.tune import tune as run_tuning
from newkind.pipeline.configure import configure
from newkind.pipeline.continue_run import ContinueConfig
from newkind.pipeline.continue_run import continue_run as run_continuation
from newkind.pipeline.continued_images import open_continued
from newkind.pipeline.discover import OnFirstAnswer, Outcome
from newkind.pipeline.discover import discover as run_discovery
from newkind.pipeline.estimate_n_categories import backbone_features
from newkind.progress import show_messages
from newkind.reading import split_reading
from newkind.report.contents import outcome_contents
from newkind.report.write import try_report
from newkind.runs.assignment_list import AssignmentList
from newkind.runs.run import Run
from newkind.training.display import TrainingDisplay

__all__ = [
    "Discovery",
    "continue_run",
    "discover",
    "estimate_n_categories",
    "first_answer_reporter",
    "load",
    "predict",
    "report_outcome",
    "tune",
]

logger = logging.getLogger(__name__)


def discover(
    data: PathLike | Collection,
    out: PathLike,
    *,
    method: str = "simgcd",
    recipe: str | None = None,
    effort: EffortName | None = None,
    n_categories: int | Literal["auto"] | None = None,
    at_most: int | None = None,
    image_size: int | None = None,
    epochs: int | None = None,
    settings: Mapping[str, Any] | None = None,
    min_confidence: float = 0.0,
    online: bool = False,
    overwrite: bool = False,
    first_answer: bool = True,
    report: bool = True,
    verbose: bool = False,
    **options: Any,
) -> Discovery:
    """Discover the categories of partly labelled images, as `newkind discover DATA --out RUN`.

    Parameters
    ----------
    data, out : str or path
        Data as in `newkind.data.open_data`, or a Collection; run folder to create. The same call resumes an interrupted run.
    method, recipe, effort : str, optional
        Name of a method, or "package.module:Class"; for `simgcd`, "modern" (the default, except on DINO v1), "release" or
        "paper"; and "quick" (one view per image), "standard" (the default: several views) or "thorough" (with training).
    n_categories, at_most : int or "auto", optional
        Number of categories, known and new together, or an upper bound of its estimate. Default: the true number if the
        data has a `truth` column that is filled for every unlabelled image, otherwise "auto".
    image_size, epochs, settings, min_confidence : optional
        Side of the square input in pixels (default: 224); number of epochs (default: that of the effort); settings of the
        method by name; confidence below which unlabelled images get the status `unsure` (default: 0).
    online, overwrite, first_answer, report, verbose : bool
        Compute new random views in every epoch instead of caching tokens; replace the run in `out`; write an answer from one
        view per image first (default: True); write report.html (default: True); show messages and progress bars.
    **options : Any
        Fields of `TrainingConfig` and `BackboneConfig` (`backbone` is a name), and options of `newkind.data.open_data`.

    Returns
    -------
    Discovery

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from newkind.data import from_features
    >>> data = from_features(np.random.default_rng(0).normal(size=(60, 8)), ["bee", "wasp", None] * 20)
    >>> found = discover(data, tempfile.mkdtemp(), n_categories=3, epochs=1, report=False)
    >>> [category.name for category in found.categories]
    ['bee', 'wasp', 'new-01']
    """
    given = {"image_size": image_size, "epochs": epochs}
    collection, options = open_with(data, options | {k: v for k, v in given.items() if v is not None})
    asked = {"n_categories": n_categories, "at_most": at_most, "settings": settings, "min_confidence": min_confidence}
    config = _configured(collection, effort, options, method=method, recipe=recipe, online=online, **asked)
    how = {"overwrite": overwrite, "first_answer": first_answer, "report": report, "verbose": verbose}
    return Discovery(Run(Path(out)), _run(collection, Path(out), config, **how))


def _configured(
    collection: Collection, effort: EffortName | None, options: Mapping[str, Any], **asked: Any
) -> DiscoverConfig:
    """Configuration of a discovery from its effort, options by name, and other parameters of `configure`."""
    training, backbone = read_options(options)
    amount = Amount(effort=effort, epochs=options.get("epochs"), views=options.get("views"))
    return configure(collection, amount=amount, training=training, backbone=backbone, **asked)


def _run(
    collection: Collection,
    out: Path,
    config: DiscoverConfig,
    *,
    overwrite: bool,
    first_answer: bool,
    report: bool,
    verbose: bool,
) -> Outcome:
    """Run a discovery with its reports; messages and epochs are shown if it is verbose."""
    on_first = first_answer_reporter(collection, report=report) if first_answer else None
    with show_messages(verbose):
        with TrainingDisplay(config.training.epochs) as display:
            on_epoch = display.show if verbose else None
            outcome = run_discovery(
                collection, out, config, overwrite=overwrite, on_epoch=on_epoch, on_first_answer=on_first
            )
        if report and main_process():
            report_outcome(outcome, collection)
    return outcome


def first_answer_reporter(collection: Collection, *, report: bool) -> OnFirstAnswer:
    """What `discover` does with a first answer: write its report, and log where it is."""

    def show(outcome: Outcome) -> None:
        path = report_outcome(outcome, collection) if report else None
        logger.info(f"First answer: {path or outcome.run.assignments_file}")

    return show


def report_outcome(outcome: Outcome, collection: Collection) -> Path | None:
    """Write the report of a discovery that has just finished; None if that was not possible, which is logged."""
    return try_report(outcome.run, collection=collection, contents=outcome_contents(outcome))


def continue_run(
    run: PathLike,
    out: PathLike,
    *,
    add: PathLike | Sequence[PathLike] = (),
    data: PathLike | None = None,
    overwrite: bool = False,
    report: bool = True,
    verbose: bool = False,
    **options: Any,
) -> Discovery:
    """Continue a run with more images, as `newkind discover --continue RUN --add FOLDER --out OUT`.

    Images of the run are recognised by their content. Decisions, ids and names carry over, and new categories can open.

    Parameters
    ----------
    run : str or path
        A finished run of image files. It is not changed.
    out : str or path
        As in `discover`.
    add : str, path or sequence of them, default=()
        Folders of new images, all unlabelled, or tables. New images in the folder of the run need not be named.
    data : str or path, optional
        The data of the run, if it was moved. Default: where the run read it.
    overwrite, report, verbose : bool
        As in `discover`.
    **options : Any
        Fields of `ContinueConfig`: `n_categories`, `min_confidence`, `backbone`, `device` and `weights`; and options of
        `newkind.data.open_data` that differ from those of the run, such as a moved `image_folder`.

    Returns
    -------
    Discovery

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from PIL import Image
    >>> root, rng = Path(tempfile.mkdtemp()), np.random.default_rng(0)
    >>> for place in ("data/bee", "data/wasp", "data/unlabelled", "march"):
    ...     (root / place).mkdir(parents=True)
    ...     for i in range(4):
    ...         Image.fromarray(rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)).save(root / place / f"{i}.png")
    >>> small = {"backbone": "vit_tiny_patch16_224", "random_weights": True, "image_size": 32, "device": "cpu"}
    >>> found = discover(root / "data", root / "run", n_categories=3, effort="quick", report=False, **small)
    >>> event = found.rename("new-01", "fly")
    >>> more = continue_run(root / "run", root / "run2", add=root / "march", report=False, device="cpu")
    >>> len(more.assignments), more["new-01"].name
    (16, 'fly')
    """
    reading, others = split_reading(options)
    config, before = _continued(others), Run.open(Path(run))
    places = [add] if isinstance(add, str | os.PathLike) else list(add)
    with show_messages(verbose):
        images = open_continued(before, data=data, add=places, reading=reading)
        outcome = run_continuation(before, images, Path(out), config, overwrite=overwrite)
        if report:
            report_outcome(outcome, images.collection)
    return Discovery(outcome.run, outcome)


def _continued(options: Mapping[str, Any]) -> ContinueConfig:
    """Options of `continue_run`, checked."""
    names = [item.name for item in fields(ContinueConfig)]
    if unknown := sorted(options.keys() - set(names)):
        raise ConfigError(
            f"`{unknown[0]}` is that of the run that is continued.",
            fix=f"Options: {', '.join(names)}.",
            code="other-settings",
            option=unknown[0],
        )
    return ContinueConfig(**options)


def load(run: PathLike) -> Discovery:
    """Load a finished run.

    Parameters
    ----------
    run : str or path
        A run folder written by `discover`.

    Returns
    -------
    Discovery

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from newkind.data import from_features
    >>> data = from_features(np.random.default_rng(0).normal(size=(40, 8)), [0, 1, None, None] * 10)
    >>> run = tempfile.mkdtemp()
    >>> found = discover(data, run, method="kmeans", n_categories=3, report=False)
    >>> [line.category for line in load(run).assignments] == [line.category for line in found.assignments]
    True
    """
    return Discovery(Run.open(Path(run)))


def predict(
    run: PathLike, *images: Any, groups: Iterable[Any] | None = None, min_confidence: float = 0.0
) -> AssignmentList:
    """Assign images to the categories of a finished run, as `newkind predict RUN IMAGES`.

    Parameters
    ----------
    run : str or path
        A run folder written by `discover`.
    *images : str, path, bytes, PIL.Image.Image, ndarray, or array-like of them
        As in `Discovery.predict`.
    groups, min_confidence : optional
        As in `Discovery.predict`.

    Returns
    -------
    AssignmentList
        A list of exactly one `Assignment` per image, in order.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from newkind.data import from_features
    >>> features = np.random.default_rng(0).normal(size=(40, 8))
    >>> run = tempfile.mkdtemp()
    >>> found = discover(from_features(features, [0, 1, -1, -1] * 10), run, method="kmeans", n_categories=3)
    >>> predict(run, features[:5]).to_dataframe().shape
    (5, 8)
    """
    return load(run).predict(*images, groups=groups, min_confidence=min_confidence)


def estimate_n_categories(
    data: PathLike | Collection, *, max_categories: int | None = None, verbose: bool = False, **options: Any
) -> Estimate:
    """Estimate the number of categories, known and new together, as `newkind estimate-k DATA`.

    Parameters
    ----------
    data : str, path or Collection
        As in `discover`.
    max_categories : int, optional
        Upper bound.
    verbose : bool, default=False
        Show messages and progress bars.
    **options : Any
        Fields of `BackboneConfig`, `seed`, and how to read the data, as in `discover`. `views`, `tuned_blocks`, `dtype` and
        `patch_tokens` are about tokens, and have no effect.

    Returns
    -------
    Estimate
        The number with its 90 % interval.

    Examples
    --------
    >>> import numpy as np
    >>> from newkind.data import from_features
    >>> rng = np.random.default_rng(0)
    >>> truth = np.arange(240) % 12
    >>> features = rng.normal(size=(12, 16))[truth] + 0.1 * rng.normal(size=(240, 16))
    >>> labels = np.where((truth < 6) & (np.arange(240) < 120), truth, -1)
    >>> estimate_n_categories(from_features(features, labels)).n_categories
    12
    """
    collection, options = open_with(data, options)
    if obstacles := find_obstacles(collection.catalog.labels, collection.catalog.class_names):
        raise obstacles[0]
    training, backbone = read_options(options)
    with show_messages(verbose):
        found = backbone_features(collection, backbone)
    return estimate_from_features(
        found.features,
        collection.catalog.labels[found.images],
        n_known=collection.catalog.n_known_classes,
        seed=training.seed,
        max_categories=max_categories,
    )


def tune(
    data: PathLike | Collection,
    out: PathLike,
    *,
    tries: Mapping[str, Sequence[Any]] | None = None,
    folds: int = 2,
    method: str = "simgcd",
    recipe: str | None = None,
    effort: EffortName | None = None,
    settings: Mapping[str, Any] | None = None,
    verbose: bool = False,
    **options: Any,
) -> Ranking:
    """Choose settings of a method with the labelled images alone, as `newkind tune DATA --out OUT`.

    Parameters
    ----------
    data : str, path or Collection
        As in `discover`.
    out : str or path
        Folder for runs and results.
    tries : mapping, optional
        Setting to the values to try, such as {"block_rate": [0, 0.01, 0.03]}. Default: a few settings of `modern`.
    folds : int, default=2
        Number of times that known classes are held out as if they were new.
    method, recipe, effort, settings : optional
        As in `discover`; the same in all runs. Default effort: thorough.
    verbose : bool, default=False
        Show messages and progress bars.
    **options : Any
        As in `discover`.

    Returns
    -------
    Ranking
        Its `chosen` are settings for `discover`.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from newkind.data import from_features
    >>> X = np.random.default_rng(0).normal(size=(6, 8)).repeat(16, axis=0)
    >>> data = from_features(X, np.where(np.arange(96) % 2, np.arange(96) // 16, -1))
    >>> found = tune(data, tempfile.mkdtemp(), tries={"head_rate": [1, 2]}, epochs=1, batch_size=16)
    >>> found.chosen.keys() <= {"head_rate"}
    True
    """
    collection, options = open_with(data, options)
    training, backbone = read_options({"epochs": EPOCHS, **options})
    same: dict[str, Any] = {"method": method, "recipe": recipe, "effort": effort, "settings": settings or {}}
    same["views"] = options.get("views")
    config = TuneConfig(tries=tries or {}, folds=folds, training=training, backbone=backbone, **same)
    with show_messages(verbose):
        return run_tuning(collection, Path(out), config, data="" if isinstance(data, Collection) else os.fspath(data))
