"""From what a user asks for to a complete configuration of a discovery."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from newkind.backbone.loader import merge_half
from newkind.backbone.precision import choose_precision, views_are_cheap
from newkind.config import BackboneConfig, DiscoverConfig, EffortName, NCategories, TrainingConfig, default_recipe
from newkind.data import Collection, Features
from newkind.data.views import random_views
from newkind.effort import EFFORTS, PUBLISHED_EPOCHS, PUBLISHED_VIEWS, Amount
from newkind.errors import ConfigError
from newkind.methods.registry import find_method, method_config, resolve_method
from newkind.optimizer_config import BASE_BATCH, OptimizerConfig

__all__ = ["configure", "first_config", "own_optimizer", "read_settings", "with_effort"]


def configure(
    collection: Collection,
    *,
    method: str = "simgcd",
    recipe: str | None = None,
    amount: Amount | None = None,
    n_categories: int | Literal["auto"] | str | NCategories | None = None,
    at_most: int | None = None,
    settings: Mapping[str, Any] | None = None,
    training: TrainingConfig | None = None,
    backbone: BackboneConfig | None = None,
    online: bool = False,
    min_confidence: float = 0.0,
) -> DiscoverConfig:
    """Fill in what was not asked for.

    Parameters
    ----------
    collection : Collection
        The data; its truth decides the default number of categories, its benchmark the published settings.
    method, recipe : str, optional
        Name of a method; for `simgcd`, "modern" (the default, except on DINO v1), "release" or "paper".
    amount : Amount, optional
        Effort, epochs and views. They decide `epochs` of the training and `views` of the backbone.
    n_categories : int, "auto" or NCategories, optional
        Number of categories, known and new together. Default: the true number if the data has the truth of every unlabelled image, otherwise "auto".
    at_most : int, optional
        Upper bound of an estimated number of categories. Not used with an `NCategories`, which has its own.
    settings : mapping, optional
        Settings of the method, field to value or text.
    training, backbone : TrainingConfig and BackboneConfig, optional
        Default: as published for the method; DINOv2 ViT-S/14 at 224 pixels.
    online : bool, default=False
        Compute new random views in every epoch instead of caching tokens.
    min_confidence : float, default=0.0
        Unlabelled images with a lower confidence get the status `unsure`.

    Returns
    -------
    DiscoverConfig
    """
    backbone = backbone or BackboneConfig()
    recipe = recipe or (default_recipe(method, backbone.name) if method == "simgcd" else None)
    name = resolve_method(method, recipe)
    backbone = choose_precision(backbone, as_published=find_method(name).method.needs_training)
    if not isinstance(n_categories, NCategories):
        n_categories = NCategories.read(n_categories, at_most=at_most, n_true=_n_true(collection))
    asked = DiscoverConfig(
        method_name=name,
        method=method_config(
            name, recipe=recipe or "release", benchmark=collection.benchmark, settings=dict(settings or {})
        ),
        n_categories=n_categories,
        training=(training or TrainingConfig()).completed(own_optimizer(name, len(collection.catalog))),
        backbone=backbone,
        online=online,
        min_confidence=min_confidence,
    )
    return _with_its_blocks(asked, with_effort(collection, asked, amount or Amount()))


def _n_true(collection: Collection) -> int | None:
    """Number of classes in the truth; None if some unlabelled images have no truth, because they may be of further classes."""
    truth, is_free = collection.truth, ~collection.catalog.is_labelled
    return len(truth.class_names) if truth is not None and (truth.labels[is_free] >= 0).all() else None


def own_optimizer(method: str, n_images: int) -> OptimizerConfig:
    """Published learning rate, batch size and weight decay of a method, for a number of images.

    The batch is at most a tenth of the images, but at least 128. Batches of 512 were published for data of 50,000 images and
    more; a training of 1,400 images would have two steps per epoch with them.

    Parameters
    ----------
    method : str
        Name in the registry.
    n_images : int
        Number of images.

    Returns
    -------
    OptimizerConfig
    """
    own = find_method(method).method.optimizer
    return replace(own, batch_size=min(own.batch_size, max(n_images // 10, BASE_BATCH)))


def _with_its_blocks(asked: DiscoverConfig, config: DiscoverConfig) -> DiscoverConfig:
    """A complete configuration, unless more than one tuned block was asked for and nothing is trained."""
    n_asked = asked.backbone.tuned_blocks
    if n_asked > 1 and find_method(asked.method_name).method.trains and not config.training.epochs:
        raise ConfigError(
            f"`tuned_blocks` is {n_asked}, but nothing is trained.",
            fix="Use the effort `thorough`, or leave out `tuned_blocks`.",
            code="needs-training",
            setting="tuned_blocks",
        )
    return config


def with_effort(collection: Collection, config: DiscoverConfig, amount: Amount) -> DiscoverConfig:
    """A configuration with the views and epochs of an effort.

    Parameters
    ----------
    collection : Collection
        The data; ready features have one view.
    config : DiscoverConfig
        All other settings.
    amount : Amount
        Effort, epochs and views.

    Returns
    -------
    DiscoverConfig

    Raises
    ------
    ConfigError
        With code `unknown-choice` for another effort, `needs-training` if the method cannot do without training.
    """
    effort = _effort(config, amount)
    kind, plan = find_method(config.method_name).method, EFFORTS[effort]
    is_ready = isinstance(collection.catalog.items, Features)
    if not views_are_cheap(config.backbone):
        plan = plan.where_views_are_slow()
    if kind.needs_training:
        plan = replace(plan, epochs=PUBLISHED_EPOCHS, views=PUBLISHED_VIEWS)
    elif is_ready:  # there is no block to train
        plan = replace(plan, epochs=0)
    epochs = plan.epochs if amount.epochs is None else amount.epochs
    epochs = epochs if kind.trains else 0
    views = plan.views if amount.views is None else amount.views
    backbone = replace(config.backbone, views=views)  # checks their number
    n_averaged = min(plan.averaged, views) if epochs or amount.views is None else views
    averaged = (0, *random_views(n_averaged))
    if kind.needs_training or is_ready:
        averaged = (0,)
    if not epochs:  # features of these views are all that is needed
        backbone = replace(backbone, views=n_averaged, tuned_blocks=0)
    elif not kind.needs_training:
        backbone = merge_half(backbone)
    return replace(
        config,
        training=replace(config.training, epochs=epochs),
        backbone=backbone,
        effort=effort,
        averaged_views=averaged,
    )


def _effort(config: DiscoverConfig, amount: Amount) -> EffortName:
    """The effort that was asked for, checked, or the default."""
    kind = find_method(config.method_name).method
    if amount.effort is not None and amount.effort not in EFFORTS:
        raise ConfigError(
            f"`effort` must be quick, standard or thorough, got '{amount.effort}'.",
            code="unknown-choice",
            setting="effort",
        )
    if kind.needs_training:
        if amount.effort not in (None, "thorough") or amount.epochs == 0:
            raise ConfigError(
                f"{find_method(config.method_name).title} cannot do without training.",
                fix="Leave out `effort` and `epochs`, or use the recipe `modern`.",
                code="needs-training",
                setting="effort" if amount.effort not in (None, "thorough") else "epochs",
            )
        return "thorough"
    if amount.epochs and amount.effort in ("quick", "standard") and kind.trains:
        raise ConfigError(
            f"The effort {amount.effort} has no training, but `epochs` is {amount.epochs}.",
            fix="Leave out one of the two, or use the effort `thorough`.",
            code="conflict",
            setting="epochs",
        )
    if kind.trains and (amount.epochs or (amount.effort is None and config.online)):
        return "thorough"
    return amount.effort or "standard"


def first_config(collection: Collection, config: DiscoverConfig) -> DiscoverConfig | None:
    """Configuration of the first answer: the same without training and with one view per image.

    Parameters
    ----------
    collection : Collection
        The data.
    config : DiscoverConfig
        Configuration of the final answer.

    Returns
    -------
    DiscoverConfig or None
        None if there is no answer that is sooner than the final one.
    """
    is_trained = config.training.epochs > 0
    if isinstance(collection.catalog.items, Features) or find_method(config.method_name).method.needs_training:
        return None
    if not is_trained and (config.online or config.averaged_views == (0,)):
        return None
    return replace(with_effort(collection, config, Amount(effort="quick")), online=False)


def read_settings(texts: list[str]) -> dict[str, str]:
    """Settings written as name=value, as on a command line."""
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"A setting is written as name=value, got '{text}'.", code="not-name-value", text=text)
        settings[name.strip().replace("-", "_")] = value.strip()
    return settings
