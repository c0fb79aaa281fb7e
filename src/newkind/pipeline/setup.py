"""What a discovery is computed with: backbone, device, images that can be read, and a new network."""

from __future__ import annotations

import copy
import logging
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from newkind import distributed
from newkind.backbone.loader import Backbone, load_backbone
from newkind.backbone.sources import TokenCache, open_source
from newkind.backbone.vit import TunedBlocks
from newkind.config import DiscoverConfig
from newkind.data import Collection, find_obstacles
from newkind.data.items import Features
from newkind.data.wording import count
from newkind.device import choose_device
from newkind.errors import ConfigError, DataError
from newkind.methods.registry import build_method
from newkind.training.data import TrainingData
from newkind.training.network import Network

__all__ = ["Setup", "check_request", "fit_batch", "load_setup", "new_network", "open_images"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Setup:
    """Backbone and device of a discovery.

    Parameters
    ----------
    backbone : Backbone or None
        None for ready features.
    device : torch.device
        Device to compute on.
    dim : int
        Dimension of the features.
    """

    backbone: Backbone | None
    device: torch.device
    dim: int

    def tuned_copy(self) -> TunedBlocks | None:
        """Copy of the tuned blocks as they were loaded; None for ready features."""
        return copy.deepcopy(self.backbone.tuned) if self.backbone else None


def check_request(collection: Collection, config: DiscoverConfig) -> None:
    """Raise if the data or the number of categories cannot be used, before anything is loaded."""
    catalog = collection.catalog
    if obstacles := find_obstacles(catalog.labels, catalog.class_names):
        raise obstacles[0]
    asked = config.n_categories
    if asked.number is not None and asked.number < catalog.n_known_classes:
        name = "n_categories" if asked.rule == "fixed" else "at_most"
        raise ConfigError(
            f"`{name}` is {asked.number}, but there are {catalog.n_known_classes} known classes.",
            fix=f"`{name}` counts known and new categories together.",
            code="too-few-categories",
            setting=name,
        )
    _check_room(config, catalog.labels, catalog.n_known_classes)
    if getattr(config.method, "supervision", "") == "oracle" and collection.truth is None:
        raise ConfigError(
            "The supervision `oracle` needs the truth of the images.",
            fix="Use another `supervision`.",
            code="no-truth",
            setting="supervision",
        )


def _check_room(config: DiscoverConfig, labels: NDArray[np.integer], n_known: int) -> None:
    """Raise if there are more new categories than unlabelled images that could be in them."""
    number, n_free = config.n_categories.number or 0, int((labels < 0).sum())
    if config.n_categories.rule == "fixed" and number - n_known > n_free:
        raise ConfigError(
            f"`n_categories` is {number:,}, which is {number - n_known:,} more than the {n_known:,} known classes, but there "
            f"{'is' if n_free == 1 else 'are'} only {count(n_free, 'unlabelled image')}.",
            fix="Use a smaller number, or auto to estimate it.",
            code="too-many-categories",
            setting="n_categories",
        )


def fit_batch(config: DiscoverConfig, n_images: int) -> DiscoverConfig:
    """Reduce the batch size to the number of images."""
    most = max(n_images // distributed.world_size(), 2)
    if config.training.optimizer.batch_size <= most:
        return config
    if config.training.epochs:
        logger.info(
            f"There are fewer images than a batch of {config.training.optimizer.batch_size}; the batch size is {most}."
        )
    return replace(config, training=replace(config.training, batch_size=most))


def load_setup(collection: Collection, config: DiscoverConfig, *, download: bool = True) -> Setup:
    """Load the backbone, or choose a device for ready features; `download` as in `load_vit`."""
    items = collection.catalog.items
    if isinstance(items, Features):
        return Setup(None, choose_device(config.backbone.device), items.values.shape[1])
    backbone = load_backbone(config.backbone, download=download)
    return Setup(backbone, backbone.device, backbone.trunk.dim)


def open_images(
    collection: Collection, config: DiscoverConfig, setup: Setup, *, digests: list[bytes] | None = None
) -> TrainingData:
    """Open the token source, computing what is missing, and check that enough images can be read."""
    catalog, views = collection.catalog, config.averaged_views
    source = open_source(
        collection, config.backbone, setup.backbone, online=config.online, views=views, digests=digests
    )
    images = np.flatnonzero(source.usable)
    labels = catalog.labels[images]
    counts = np.bincount(labels[labels >= 0], minlength=catalog.n_known_classes)
    if lost := [name for name, n in zip(catalog.class_names, counts, strict=True) if n == 0]:
        more = f", nor of {count(len(lost) - 1, 'other class', 'other classes')}" if len(lost) > 1 else ""
        raise DataError(
            f"None of the labelled images of '{lost[0]}' can be read{more}.",
            fix="Repair or replace them, or remove the class.",
            code="unreadable-class",
            classes=lost,
        )
    if obstacles := find_obstacles(labels, catalog.class_names):
        raise obstacles[0]
    _check_room(config, labels, catalog.n_known_classes)
    oracle = getattr(config.method, "supervision", "") == "oracle"
    return TrainingData(
        source=source,
        images=images,
        labels=labels,
        n_known=catalog.n_known_classes,
        truth=collection.truth.labels[images] if oracle and collection.truth else None,
        views=source.stored(views) if isinstance(source, TokenCache) else views,
        groups=None if catalog.groups is None else catalog.groups[images],
    )


def new_network(config: DiscoverConfig, setup: Setup, n_categories: int) -> Network:
    """Network with newly initialised heads, the same for the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.training.seed)
        method = build_method(config.method_name, setup.dim, n_categories, config.method)
        return Network(setup.tuned_copy(), method)
