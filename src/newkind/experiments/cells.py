"""A cell: one method on one data under one seed, in a run folder of its own that is named by all that decides its result.

Two studies that ask for the same thing ask for the same cell. `result.json`, written as a whole when all else is there, says
that it is finished; without it the run goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Literal

import torch

from newkind import __version__
from newkind.config import BackboneConfig, DiscoverConfig, TrainingConfig, configure, to_json
from newkind.errors import RunError, WeightsError
from newkind.evaluation import Accuracy
from newkind.experiments.paper.dataset import BenchData
from newkind.experiments.paper.protocol import Protocol
from newkind.methods.registry import find_method, method_config
from newkind.pipeline.discover import discover
from newkind.runs.run import Run
from newkind.training.trainer import EpochReport

__all__ = ["Cell", "CellResult", "make_cell", "read_result", "run_cell", "slug", "trunk_key"]
FORMAT = 1
EVALUATIONS = 20
"""Scores on the way, for the study of epochs; never for a choice."""
EVALUATIONS_SETTLING = 4
"""Of a method that clusters all features for each score."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Cell:
    """What is to be run."""

    data: BenchData
    config: DiscoverConfig

    @property
    def method(self) -> str:
        return self.config.method_name

    @property
    def seed(self) -> int:
        return self.config.training.seed

    @property
    def n_categories(self) -> int | Literal["auto"]:
        return "auto" if self.config.auto_k else self.config.method.n_categories

    @cached_property
    def key(self) -> dict[str, Any]:
        """Everything that decides the result."""
        plain = to_json(self.config)
        training = {
            k: v for k, v in plain["training"].items() if k not in ("checkpoint_seconds", "evaluate_every", "seed")
        }
        return {
            "data": self.data.digest,
            "method": self.method,
            "settings": plain["method"] | {"n_categories": self.n_categories},
            "recipe": self.config.recipe,
            "training": training,
            "trunk": None if self.data.is_ready else trunk_key(self.config.backbone) | {"online": self.config.online},
            "seed": self.seed,
        }

    @cached_property
    def name(self) -> str:
        """Of its folder: readable, with a hash of the key."""
        usual = asdict(
            method_config(
                self.method,
                n_categories=self.config.method.n_categories,
                recipe=self.config.recipe,
                benchmark=self.data.benchmark,
            )
        )
        own = asdict(self.config.method)
        unusual = [f"{name}-{value}" for name, value in own.items() if value != usual[name]]
        digest = hashlib.sha256(json.dumps(self.key, sort_keys=True).encode()).hexdigest()[:10]
        words = [self.data.benchmark or self.data.title, self.method, *unusual, f"k{self.n_categories}"]
        if find_method(self.method).method.trains:
            words.append(f"e{self.config.training.epochs}")
        return f"{slug('-'.join([*words, f's{self.seed}']))}-{digest}"


def slug(text: str) -> str:
    """For the name of a file or folder."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._") else "-" for c in text)
    return "-".join(part for part in plain.split("-") if part)[:100] or "data"


def trunk_key(config: BackboneConfig) -> dict[str, Any]:
    """What of a trunk's config decides its tokens: a weights file by its content, not by its place; never the device."""
    plain = {name: value for name, value in asdict(config).items() if name not in ("device", "weights")}
    return plain | {"weights": None if config.weights is None else _file_digest(config.weights)}


@cache
def _file_digest(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise WeightsError(f"The weights file {path} cannot be read ({error.strerror}).") from None


def make_cell(
    data: BenchData,
    protocol: Protocol,
    *,
    method: str,
    seed: int,
    settings: Mapping[str, Any] | None = None,
    recipe: str | None = None,
    n_categories: int | Literal["auto"] | None = None,
) -> Cell:
    """recipe: None takes the protocol's; n_categories: None takes the truth's. What has no part in the result is left at its default."""
    kind = find_method(method).method
    recipe = (recipe or protocol.recipe) if method == "simgcd" else "release"
    evaluations = EVALUATIONS_SETTLING if kind.settles or recipe == "modern" else EVALUATIONS
    training = TrainingConfig(
        epochs=protocol.epochs if kind.trains else 1,
        batch_size=protocol.batch_size if kind.trains else TrainingConfig.batch_size,
        evaluate_every=max(protocol.epochs // evaluations, 1),
        seed=seed,
    )
    config = configure(
        data.collection,
        training=training,
        trunk=BackboneConfig(device=protocol.backbone.device) if data.is_ready else protocol.backbone,
        method=method,
        n_categories=n_categories,
        recipe=recipe,
        settings=dict(settings or {}),
        benchmark=data.benchmark,
        online=protocol.online and not data.is_ready,
    )
    return Cell(data=data, config=config)


@dataclass(frozen=True, eq=False)
class CellResult:
    """A finished cell."""

    run: Run
    content: dict[str, Any]
    """Of result.json."""

    @property
    def name(self) -> str:
        return self.run.folder.name

    @property
    def seed(self) -> int:
        return int(self.content["seed"])

    @property
    def seconds(self) -> float:
        """Training and sorting, without the tokens, which all cells share."""
        return float(self.content["seconds"]["training"] + self.content["seconds"]["sorting"])

    def score(self, name: str) -> float | None:
        """all, old, new, ... of the accuracy; an error kind; nmi, ari; n_active_clusters; n_categories."""
        for place in (self.content["accuracy"], self.content["errors"], self.content):
            if name in place:
                return None if place[name] is None else float(place[name])
        raise KeyError(name)

    def scores(self) -> dict[str, Any]:
        """All of scores.json, with the classes and the distributions."""
        return self.run.read_json(self.run.scores_file)


def read_result(cell: Cell, runs: Path) -> CellResult | None:
    """None if the cell is not finished."""
    run = Run(runs / cell.name)
    path = run.folder / "result.json"
    if not path.exists():
        return None
    content = run.read_json(path)
    if content.get("format") != FORMAT or content.get("key") != json.loads(json.dumps(cell.key)):
        raise RunError(f"{path} is not that of this cell.", fix="Remove its folder, and it will be run again.")
    return CellResult(run, content)


def run_cell(
    cell: Cell, runs: Path, *, on_epoch: Callable[[EpochReport, Accuracy | None], None] | None = None
) -> CellResult:
    """Runs what is not finished, and only that."""
    found = read_result(cell, runs)
    if found is not None:
        return found
    folder = runs / cell.name
    try:
        outcome = discover(cell.data.collection, folder, cell.config, on_epoch=on_epoch)
    except RunError as error:
        if "--overwrite" not in error.fix:
            raise
        raise RunError(  # an unfinished run of another version, or of files that were put elsewhere since
            error.what, fix=f"Remove {folder} and run the same command again: it was not finished."
        ) from None
    if outcome is None:
        raise RunError(f"{folder} was not run.")
    run = outcome.run
    run.write_json(run.folder / "result.json", _content(cell, run, outcome.seconds))
    run.checkpoint_file.unlink(missing_ok=True)  # what is finished is never gone on with
    return CellResult(run, run.read_json(run.folder / "result.json"))


def _content(cell: Cell, run: Run, seconds: dict[str, float]) -> dict[str, Any]:
    scores = run.read_json(run.scores_file)
    kept = ("accuracy", "errors", "nmi", "ari", "n_samples", "n_classes", "n_active_clusters")
    # Over all sessions, where a run was interrupted.
    training = sum(row["seconds"] for row in run.metrics())
    return {
        "format": FORMAT,
        "newkind": __version__,
        "data": cell.data.title,
        "method": cell.method,
        "seed": cell.seed,
        "n_categories": len(run.read_json(run.categories_file)["categories"]),
        **{name: scores[name] for name in kept},
        "seconds": {"tokens": seconds["tokens"], "training": training, "sorting": seconds["sorting"]},
        "threads": torch.get_num_threads(),
        "key": cell.key,
    }
