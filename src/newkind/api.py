"""Newkind from Python: `discover` a pile, `load` a run, `tune` a method."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from newkind.config import BackboneConfig, TrainingConfig, configure, default_epochs
from newkind.data import Collection, FileImages, open_data
from newkind.experiments.ranking import Ranking
from newkind.experiments.tune import EPOCHS, TuneConfig
from newkind.experiments.tune import tune as run_tuning
from newkind.pipeline.discover import Outcome
from newkind.pipeline.discover import discover as run_discovery
from newkind.pipeline.predict import images_at, sort_images
from newkind.progress import quiet
from newkind.report.write import try_report
from newkind.runs.assignments import Assignment, Category, read_assignments
from newkind.runs.model_io import LoadedModel, load_model
from newkind.runs.run import Run

__all__ = ["Discovery", "discover", "load", "tune"]


class Discovery:
    """A finished run: its categories, its assignments, and its model for images never seen."""

    def __init__(self, run: Run, outcome: Outcome | None = None) -> None:
        self.run = run
        self.outcome = outcome
        """What `discover` came to; None for a run that was loaded."""
        self.assignments: list[Assignment] = read_assignments(run)
        self.categories: list[Category] = [Category(**row) for row in run.read_json(run.categories_file)["categories"]]
        self._model: LoadedModel | None = None

    def predict(self, *images: str | os.PathLike[str]) -> list[Assignment]:
        """Categories for image files, folders or .txt lists of images."""
        found: FileImages = images_at([Path(image) for image in images])
        return sort_images(self.model, found, advance=quiet).lines

    @property
    def model(self) -> LoadedModel:
        """The network with its backbone; loaded when first asked for."""
        if self._model is None:
            self._model = load_model(self.run)
        return self._model

    def __repr__(self) -> str:
        n_new = sum(category.status == "new" and category.n_images > 0 for category in self.categories)
        return f"<Discovery in {self.run.folder}: {len(self.assignments):,} images, {n_new} new categories>"


def discover(
    data: str | os.PathLike[str] | Collection,
    out: str | os.PathLike[str],
    *,
    method: str = "simgcd",
    n_categories: int | Literal["auto"] | None = None,
    recipe: str | None = None,
    settings: dict[str, Any] | None = None,
    online: bool = False,
    exactly: bool = False,
    overwrite: bool = False,
    trunk: BackboneConfig | None = None,
    training: TrainingConfig | None = None,
    report: bool = True,
) -> Discovery:
    """As `newkind discover DATA --out RUN`; `settings` are fields of the method's config.

    Trains, sorts, writes the run folder, and goes on where an earlier call was ended.
    """
    collection = data if isinstance(data, Collection) else open_data(data)
    trunk = trunk or BackboneConfig()
    config = configure(
        collection,
        training=training or TrainingConfig(epochs=default_epochs(method, trunk.name, recipe)),
        trunk=trunk,
        method=method,
        n_categories=n_categories,
        recipe=recipe,
        settings=settings,
        benchmark="" if isinstance(data, Collection) else os.fspath(data).partition(":")[0],
        online=online,
        exactly=exactly,
    )
    outcome = run_discovery(collection, Path(out), config, overwrite=overwrite)
    if report and outcome is not None:
        try_report(outcome.run, collection=collection)
    return Discovery(Run.open(Path(out)), outcome)


def load(run: str | os.PathLike[str]) -> Discovery:
    """A finished run folder."""
    return Discovery(Run.open(Path(run)))


def tune(
    data: str | os.PathLike[str] | Collection,
    out: str | os.PathLike[str],
    *,
    tries: Mapping[str, Sequence[Any]] | None = None,
    folds: int = 2,
    method: str = "simgcd",
    recipe: str | None = None,
    settings: dict[str, Any] | None = None,
    trunk: BackboneConfig | None = None,
    training: TrainingConfig | None = None,
) -> Ranking:
    """As `newkind tune DATA --out OUT`: `tries` as {"block_rate": [0, 0.01, 0.03]}; `chosen` of the result are settings for `discover`."""
    name = "" if isinstance(data, Collection) else os.fspath(data)
    config = TuneConfig(
        tries=tries or {},
        n_folds=folds,
        method=method,
        recipe=recipe,
        settings=settings or {},
        training=training or TrainingConfig(epochs=EPOCHS),
        trunk=trunk or BackboneConfig(),
        benchmark=name.partition(":")[0],
    )
    collection = data if isinstance(data, Collection) else open_data(data)
    found = run_tuning(collection, Path(out), config, data=name)
    assert found is not None  # noqa: S101 - only a dry run finds nothing
    return found


def _nothing(_: str) -> None:
    pass
