"""A trained model on disk: tensors as safetensors, everything else as JSON. Loading it runs no code."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from newkind.backbone.loader import Backbone, load_backbone
from newkind.backbone.tokens import EVALUATION, Views
from newkind.config import MOST_CATEGORIES, MOST_VIEWS, BackboneConfig, DiscoverConfig, from_json, to_json
from newkind.data.crops import IMAGENET_MEAN, IMAGENET_STD, ViewRecipe
from newkind.errors import ConfigError, RunError, WeightsError
from newkind.methods.method import Method
from newkind.methods.registry import build_method, find_method
from newkind.runs.assignments import Category
from newkind.runs.current_answer import current_answer, refit_run
from newkind.runs.format_1 import upgrade_card
from newkind.runs.run import Run
from newkind.runs.run_schemas import ModelCard
from newkind.schema import check_json
from newkind.setting import check_number
from newkind.training.checkpoint import save_tensors
from newkind.training.data import TrainingData
from newkind.training.inference import Layout
from newkind.training.network import Network

__all__ = [
    "LoadedModel",
    "layout_of",
    "load_heads",
    "load_model",
    "method_settings",
    "read_card",
    "read_tensors",
    "save_model",
    "write_model",
]

FORMER_SETTINGS = ("frame_views",)
"""Settings of methods in older model files that had no influence on a finished model."""
BEFORE: dict[str, dict[str, Any]] = {"gcd": {"projector_width": 0}, "rankstats": {"head": "cosine", "relu": False}}
"""Values of settings that older model files do not have."""


@dataclass(frozen=True)
class LoadedModel:
    """A network with everything that is needed to use it.

    Parameters
    ----------
    network : Network
        Tuned blocks and heads.
    backbone : Backbone or None
        The backbone; None for a model on ready features.
    config : BackboneConfig
        Its configuration.
    categories : list of Category
        Categories of the current answer.
    dim : int
        Dimension of the features.
    calibrated : bool
        Whether confidences are calibrated.
    views : tuple of int
        Numbers of the views per image whose features are averaged.
    """

    network: Network
    backbone: Backbone | None
    config: BackboneConfig
    categories: list[Category]
    dim: int
    calibrated: bool
    views: Views = EVALUATION

    @property
    def layout(self) -> Layout:
        """Which prototypes make up which category."""
        return layout_of(self.categories, self.network.method.n_categories)

    @property
    def recipe(self) -> ViewRecipe:
        """Recipe of the views of images."""
        return ViewRecipe(image_size=self.config.image_size) if self.backbone is None else self.backbone.recipe


def layout_of(categories: Sequence[Category], n_prototypes: int) -> Layout:
    """Which of a number of prototypes make up which category."""
    category_of = torch.full((n_prototypes,), len(categories))
    for k, category in enumerate(categories):
        category_of[list(category.prototypes)] = k
    return Layout(category_of, torch.tensor([category.status == "new" for category in categories]))


def save_model(
    run: Run,
    network: Network,
    config: DiscoverConfig,
    *,
    data: TrainingData,
    dim: int,
    backbone: Backbone | None,
    confidence: dict[str, Any],
) -> None:
    """Write tuned blocks and heads; the frozen trunk is identified by its hash.

    Parameters
    ----------
    run : Run
        Run folder.
    network : Network
        Trained network.
    config : DiscoverConfig
        Configuration of the discovery.
    data : TrainingData
        Images that it was found with.
    dim : int
        Dimension of the features.
    backbone : Backbone or None
        The backbone; None for ready features.
    confidence : dict
        Whether confidences are calibrated, and what is known about them.
    """
    tensors = {
        name: value.detach().cpu() for name, value in network.state_dict().items() if not name.startswith("teacher")
    }
    card = {
        "method": config.method_name,
        **({"package": package} if (package := find_method(config.method_name).package) else {}),
        "method_config": to_json(config.method),
        "n_categories": network.method.n_categories,
        "backbone": to_json(config.backbone),
        "weights_sha256": backbone.sha256 if backbone else None,
        "weights_source": backbone.source if backbone else None,
        **({} if backbone is None else {"mean": list(backbone.recipe.mean), "std": list(backbone.recipe.std)}),
        "dim": dim,
        "n_known": data.n_known,
        "views": list(data.views),
        "confidence": confidence,
    }
    write_model(run, tensors, card)


def write_model(owner: Run, tensors: dict[str, Tensor], card: dict[str, Any]) -> None:
    """Write the model file of a run or of a refit, and its card with the checksum of the file."""
    save_tensors(owner.model_file, tensors, {"newkind": "model"})
    owner.write_json(owner.model_card, card | {"model_sha256": _model_digest(owner)})


def load_model(run: Run, *, device: str = "auto", weights: Path | None = None) -> LoadedModel:
    """Load the model of a finished run.

    Parameters
    ----------
    run : Run
        Run folder.
    device : str, default="auto"
        Device to load it on.
    weights : Path, optional
        File with the weights of the backbone, if it has been moved. They must be the ones the run was trained with.

    Returns
    -------
    LoadedModel
    """
    run.config()
    answer = current_answer(run)
    owner = refit_run(run, answer.refit) if answer.refit else run
    card = read_card(owner)
    method = _method(card, owner)
    moved: dict[str, Any] = {} if weights is None else {"weights": weights}
    with _unreadable(owner.model_card):
        config = from_json(BackboneConfig, card["backbone"] | {"device": device} | moved)
    sha256, views = card["weights_sha256"], tuple(card.get("views", EVALUATION))
    backbone = load_backbone(config) if sha256 else None
    if backbone is not None and backbone.sha256 != sha256:
        raise WeightsError(
            f"The run was trained with other weights of {config.name} (sha256 {sha256[:12]}...) than these "
            f"({backbone.sha256[:12]}...).",
            fix="Name the original file with `weights`.",
            code="other-weights",
        )
    network = Network(backbone.tuned if backbone else None, method, with_teacher=False)
    with _damaged(owner.model_file):
        network.load_state_dict(_tensors(owner, card))
    if max((k for state in answer.categories for k in state.prototypes), default=0) >= method.n_categories:
        raise RunError(
            f"{run.categories_file} has more categories than the model.",
            code="categories-invalid",
            file=run.categories_file,
        )
    if backbone is not None:
        network.to(backbone.device)
        backbone = replace(backbone, recipe=_recipe(card, config.image_size))
    confidence = card.get("confidence")
    calibrated = isinstance(confidence, dict) and confidence.get("calibrated") is True
    return LoadedModel(network, backbone, config, answer.list_categories(), card["dim"], calibrated, views)


def read_card(owner: Run) -> dict[str, Any]:
    """Model card of a run or of a refit, in the current format, with numbers that fit the files beside it."""
    card = owner.read_json(owner.model_card)
    with _unreadable(owner.model_card):
        card = upgrade_card(card) if "trunk" in card else card
        check_json(card, ModelCard)
        check_number("n_categories", card["n_categories"], at_least=1, at_most=MOST_CATEGORIES)
        check_number("dim", card["dim"], at_least=1)
        check_number("n_known", card["n_known"], at_least=0, at_most=card["n_categories"])
        for view in card.get("views", ()):
            check_number("views", view, at_least=0, at_most=MOST_VIEWS)
        _recipe(card, BackboneConfig.image_size)
        if not card.get("views", EVALUATION):  # older runs used the evaluation view
            raise ValueError("`views` is empty")
        # Before anything is made of that size.
        if owner.model_file.exists() and card["dim"] * card["n_categories"] > owner.model_file.stat().st_size:
            raise ValueError(
                f"{card['n_categories']:,} categories of {card['dim']:,} features are not in the model file"
            )
    return card


def _recipe(card: dict[str, Any], image_size: int) -> ViewRecipe:
    """Recipe of the views with which a model was made; older cards do not say it, and are those of models with ImageNet's."""
    (red, green, blue), (r, g, b) = card.get("mean", IMAGENET_MEAN), card.get("std", IMAGENET_STD)
    for mean, std in ((red, r), (green, g), (blue, b)):
        check_number("mean", mean)
        check_number("std", std, above=0)
    return ViewRecipe(image_size=image_size, mean=(red, green, blue), std=(r, g, b))


def method_settings(card: dict[str, Any]) -> dict[str, Any]:
    """Settings of the method in a model card, without those that no longer exist, with those that it does not have yet."""
    settings = {name: value for name, value in card["method_config"].items() if name not in FORMER_SETTINGS}
    return BEFORE.get(card["method"], {}) | settings


def load_heads(owner: Run) -> Method:
    """Trained heads of a run or of a refit, without the backbone, on the CPU."""
    card = read_card(owner)
    method = _method(card, owner)
    with _damaged(owner.model_file):
        found = {name: value for name, value in _tensors(owner, card).items() if name.startswith("method.")}
        method.load_state_dict({name.removeprefix("method."): value for name, value in found.items()})
    return method.eval()


def read_tensors(owner: Run) -> dict[str, Tensor]:
    """All tensors of the model file of a run or of a refit, which is unchanged."""
    card = read_card(owner)
    with _damaged(owner.model_file):
        return _tensors(owner, card)


def _model_digest(owner: Run) -> str:
    """SHA-256 of a model file. It is not cached, because the file may have changed."""
    with open(owner.model_file, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _tensors(owner: Run, card: dict[str, Any]) -> dict[str, Tensor]:
    """Tensors of a model file; ValueError unless it is unchanged (older runs have no digest) and all values are finite."""
    if card.get("model_sha256", "") not in ("", _model_digest(owner)):
        raise ValueError("its sha256 is not the one in model.json")
    found = load_file(owner.model_file)
    if bad := sorted(name for name, value in found.items() if not torch.isfinite(value).all()):
        raise ValueError(f"{bad[0]} has NaN or infinite values")
    return found


@contextmanager
def _damaged(path: Path) -> Iterator[None]:
    """RunError for a model file that is damaged, or of another model."""
    try:
        yield
    except (OSError, SafetensorError, RuntimeError, ValueError) as error:
        raise RunError(
            f"{path} is damaged or of another model ({str(error).splitlines()[0]}).",
            fix="Restore the file from a copy, or run discover again.",
            code="damaged-model",
            file=path,
        ) from None


@contextmanager
def _unreadable(path: Path) -> Iterator[None]:
    """RunError for a model card that is mistyped, or has settings that cannot be used."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunError(f"{path} cannot be read ({error}).", code="unreadable", file=path) from None


def _method(card: dict[str, Any], owner: Run) -> Method:
    """Heads as the model card describes them, untrained."""
    try:
        entry = find_method(card["method"])
    except ConfigError as error:
        if "package" not in card:
            with _unreadable(owner.model_card):
                raise
        raise RunError(
            f"The run was made with the method '{card['method']}' of {card['package']}, which cannot be used: {error.what}",
            fix="Install the package into this environment." if error.code == "unknown-method" else error.fix,
            code="missing-plugin",
            method=card["method"],
            package=card["package"],
        ) from None
    with _unreadable(owner.model_card):
        config = from_json(entry.config, method_settings(card))
    return build_method(card["method"], card["dim"], card["n_categories"], config)
