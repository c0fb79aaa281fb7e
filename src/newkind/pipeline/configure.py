"""From what a user asks for to a complete configuration of a discovery."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from newkind.config import BackboneConfig, DiscoverConfig, NCategories, TrainingConfig, default_epochs, default_recipe
from newkind.data import Collection
from newkind.errors import ConfigError
from newkind.methods.registry import method_config, resolve_method

__all__ = ["configure", "read_settings"]


def configure(
    collection: Collection,
    *,
    method: str = "simgcd",
    recipe: str | None = None,
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
    method : str, default="simgcd"
        Name of a method.
    recipe : {"modern", "release", "paper"}, optional
        Recipe of `simgcd`. Default: modern, or release on a DINO v1 backbone.
    n_categories : int, "auto" or NCategories, optional
        Number of categories, known and new together. Default: the true number if the data has a truth, otherwise "auto".
    at_most : int, optional
        Upper bound of an estimated number of categories. Not used with an `NCategories`, which has its own.
    settings : mapping, optional
        Settings of the method, field to value or text.
    training : TrainingConfig, optional
        Default: 40 epochs for `modern`, 200 otherwise.
    backbone : BackboneConfig, optional
        Default: DINOv2 ViT-S/14 at 224 pixels with 8 views.
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
    if not isinstance(n_categories, NCategories):
        n_true = None if collection.truth is None else len(collection.truth.class_names)
        n_categories = NCategories.read(n_categories, at_most=at_most, n_true=n_true)
    return DiscoverConfig(
        method_name=name,
        method=method_config(
            name, recipe=recipe or "release", benchmark=collection.benchmark, settings=dict(settings or {})
        ),
        n_categories=n_categories,
        training=training or TrainingConfig(epochs=default_epochs(name, backbone.name)),
        backbone=backbone,
        online=online,
        min_confidence=min_confidence,
    )


def read_settings(texts: list[str]) -> dict[str, str]:
    """Settings written as name=value, as on a command line."""
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"A setting is written as name=value, got '{text}'.", code="not-name-value", text=text)
        settings[name.strip().replace("-", "_")] = value.strip()
    return settings
