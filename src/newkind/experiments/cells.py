"""Cells: the single runs of an experiment, each in a run folder that is named by everything that decides its result.

Two experiments that need the same run have the same cell, so that it is computed once. `result.json` is written
atomically after everything else: a folder with it is finished, a folder without it is resumed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import torch

from newkind import __version__
from newkind.atomic import write_errors
from newkind.backbone.recipe import own_normalisation, recipe_of
from newkind.config import BackboneConfig, DiscoverConfig, NCategories, TrainingConfig, to_json
from newkind.data import Collection, Features
from newkind.errors import RunError
from newkind.methods.registry import find_method, method_config
from newkind.pipeline.discover import OnEpoch, discover
from newkind.runs.fingerprint import UNDECISIVE_BACKBONE, deciding_settings, digest_of, file_digest
from newkind.runs.run import Run

__all__ = ["Cell", "CellResult", "make_cell", "run_cell"]

FORMAT = 2
KEPT_SCORES = (
    "accuracy",
    "by_name",
    "novelty_auroc",
    "calibration_error",
    "errors",
    "nmi",
    "ari",
    "n_samples",
    "n_classes",
    "n_active_clusters",
)
"""Parts of scores.json that result.json repeats, for tables."""
BY_NAME = "by_name_"
"""How names of scores by name start, as in by_name_all."""


class _ResultFile(TypedDict):
    """What is read of result.json."""

    key: object
    method: str
    seed: int
    accuracy: dict[str, float | None]
    errors: dict[str, float | None]
    n_categories: int
    seconds: _Seconds
    by_name: NotRequired[dict[str, float | None] | None]
    novelty_auroc: NotRequired[float | None]
    calibration_error: NotRequired[float | None]
    nmi: NotRequired[float | None]
    ari: NotRequired[float | None]


class _Seconds(TypedDict):
    """Duration of the stages of a run."""

    training: float
    assigning: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Cell:
    """One configuration on one collection. Made by `make_cell`.

    Parameters
    ----------
    title : str
        Name for messages, such as "SimGCD, seed 0".
    prefix : str
        First word of the folder name, such as the name of the data.
    collection : Collection
        The data, with truth.
    digest : str
        Digest of the collection, from `collection_digest`.
    config : DiscoverConfig
        Complete configuration of the run.
    """

    title: str
    prefix: str
    collection: Collection
    digest: str
    config: DiscoverConfig

    @property
    def method(self) -> str:
        """Name of the method in the registry."""
        return self.config.method_name

    @property
    def seed(self) -> int:
        """Random seed of the run."""
        return self.config.training.seed

    @cached_property
    def key(self) -> dict[str, Any]:
        """Everything that decides the result, as JSON."""
        settings = deciding_settings(self.config)
        settings["backbone"] = None if _is_ready(self.collection) else backbone_key(self.config.backbone)
        return {"data": self.digest, **settings}

    @cached_property
    def name(self) -> str:
        """Name of the run folder: readable, and ending with a digest of `key`."""
        usual = asdict(method_config(self.method, benchmark=self.collection.benchmark))
        own = asdict(self.config.method)
        words = [self.prefix, self.method, *(f"{name}-{own[name]}" for name in own if own[name] != usual[name])]
        words.append(_k_word(self.config.n_categories))
        if find_method(self.method).method.trains:
            words.append(f"e{self.config.training.epochs}")
        return f"{slug('-'.join([*words, f's{self.seed}']))}-{digest_of(self.key)[:10]}"


def make_cell(collection: Collection, config: DiscoverConfig, *, title: str, prefix: str, digest: str) -> Cell:
    """Cell of a configuration, with everything that cannot influence its result set to its default.

    Parameters
    ----------
    collection : Collection
        The data, with truth.
    config : DiscoverConfig
        Complete configuration of the run.
    title : str
        Name for messages.
    prefix : str
        First word of the folder name.
    digest : str
        Digest of the collection, from `collection_digest`.

    Returns
    -------
    Cell
    """
    training = config.training
    if not find_method(config.method_name).method.trains:
        config = replace(config, training=TrainingConfig(epochs=0, seed=training.seed))
    if _is_ready(collection):
        config = replace(config, backbone=BackboneConfig(device=config.backbone.device), online=False)
    return Cell(title=title, prefix=prefix, collection=collection, digest=digest, config=config)


def backbone_key(config: BackboneConfig) -> dict[str, Any]:
    """Settings that decide the tokens, as JSON: a weights file counts by its content, not by its path."""
    settings = {name: value for name, value in to_json(config).items() if name not in UNDECISIVE_BACKBONE}
    settings |= own_normalisation(recipe_of(config))
    return settings | {"weights": None if config.weights is None else file_digest(config.weights)}


def slug(text: str) -> str:
    """Text as part of a file name: ASCII letters, digits, dots and underscores, other characters as single dashes.

    Examples
    --------
    >>> slug("My photos (2024)/new")
    'My-photos-2024-new'
    """
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._") else "-" for c in text)
    return "-".join(part for part in plain.split("-") if part)[:100] or "data"


def _k_word(n_categories: NCategories) -> str:
    """k200, kauto, or kmax200 for an upper bound."""
    return {"fixed": "k", "estimated": "kauto", "at-most": "kmax"}[n_categories.rule] + str(n_categories.number or "")


def _is_ready(collection: Collection) -> bool:
    return isinstance(collection.catalog.items, Features)


@dataclass(frozen=True, eq=False)
class CellResult:
    """Result of a finished cell.

    Parameters
    ----------
    run : Run
        Its run folder.
    content : dict
        Content of its result.json.
    """

    run: Run
    content: dict[str, Any]

    @property
    def name(self) -> str:
        """Name of the run folder."""
        return self.run.folder.name

    @property
    def seed(self) -> int:
        """Random seed of the run."""
        return int(self.content["seed"])

    @property
    def seconds(self) -> float:
        """Seconds of training and assigning, without the tokens, which all cells on the same data share."""
        return float(self.content["seconds"]["training"] + self.content["seconds"]["assigning"])

    def score(self, name: str) -> float | None:
        """One score.

        Parameters
        ----------
        name : str
            A part of the accuracy (all, old, new, all_balanced, ...), the same by name (by_name_all, ...), an error kind,
            novelty_auroc, calibration_error, nmi, ari, n_active_clusters or n_categories.

        Returns
        -------
        float or None
            None if the score does not exist, such as `new` for data without new classes, or if the version that made the
            run did not compute it.
        """
        if name.startswith(BY_NAME):
            return (self.content.get("by_name") or {}).get(name.removeprefix(BY_NAME))
        for place in (self.content["accuracy"], self.content["errors"], self.content):
            if name in place:
                return None if place[name] is None else float(place[name])
        if name in KEPT_SCORES:
            return None
        raise KeyError(name)

    def scores(self) -> dict[str, Any]:
        """Content of scores.json, with the scores per class and the distribution of category sizes."""
        return self.run.read_json(self.run.scores_file)


def read_result(cell: Cell, folder: Path) -> CellResult | None:
    """Result of a cell in its folder below `folder`; None if the cell is not finished."""
    run = Run(folder / cell.name)
    path = _result_file(run)
    if not path.exists():
        return None
    content = run.read_json(path)
    if content.get("format") != FORMAT or content.get("key") != cell.key:
        raise RunError(
            f"{path} does not belong to this run.",
            fix=f"Remove {run.folder} and repeat the command.",
            code="other-cell",
            file=path,
        )
    return CellResult(run, run.read_json(path, _ResultFile))


def run_cell(cell: Cell, folder: Path, *, on_epoch: OnEpoch | None = None) -> CellResult:
    """Run a cell, or read its result if it is finished.

    Parameters
    ----------
    cell : Cell
        The cell.
    folder : Path
        Folder with the run folders of all cells.
    on_epoch : callable, optional
        Called after each epoch.

    Returns
    -------
    CellResult

    Raises
    ------
    RunError
        With code `other-run` if the cell's folder holds an unfinished run that cannot be resumed, and `other-cell` if it
        holds the result of another cell or format.
    """
    found = read_result(cell, folder)
    if found is not None:
        return found
    run = Run(folder / cell.name)
    try:
        outcome = discover(cell.collection, run.folder, cell.config, on_epoch=on_epoch)
    except RunError as error:
        if error.code != "other-run":
            raise
        raise RunError(  # an unfinished run of another version, or of image files whose content has changed
            error.what,
            fix=f"Remove {run.folder} and repeat the command: the run in it was not finished.",
            code="other-run",
            folder=run.folder,
        ) from None
    run.write_json(_result_file(run), _content(cell, run, outcome.seconds))
    remove_checkpoint(run)
    return CellResult(run, run.read_json(_result_file(run), _ResultFile))


def remove_checkpoint(run: Run) -> None:
    """Remove the checkpoint of a finished cell, which is never resumed."""
    with write_errors(run.checkpoint_file):
        run.checkpoint_file.unlink(missing_ok=True)


def _result_file(run: Run) -> Path:
    return run.folder / "result.json"


def _content(cell: Cell, run: Run, seconds: dict[str, float]) -> dict[str, Any]:
    """Content of result.json. The time of training is summed over all parts of an interrupted run."""
    scores = run.read_json(run.scores_file)
    return {
        "format": FORMAT,
        "newkind": __version__,
        "title": cell.title,
        "method": cell.method,
        "seed": cell.seed,
        "n_categories": len(run.read_json(run.categories_file)["categories"]),
        **{name: scores[name] for name in KEPT_SCORES},
        "seconds": {
            "features": seconds["features"],
            "training": sum(row["seconds"] for row in run.metrics()),
            "assigning": seconds["assigning"],
        },
        "threads": torch.get_num_threads(),
        "key": cell.key,
    }
