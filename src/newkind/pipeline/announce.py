"""Messages before a discovery starts: remarks about the data, and what will be done in which time."""

from __future__ import annotations

import copy
import logging
import time

import numpy as np
import torch

from newkind import distributed
from newkind.backbone.build_time import measure_rates
from newkind.backbone.cache_plan import images_of
from newkind.backbone.decoded_views import log_skipped
from newkind.backbone.tokens import Tokens
from newkind.config import DiscoverConfig
from newkind.data import Collection
from newkind.data.image_files import ignored_files
from newkind.data.names import printable
from newkind.data.sampling import steps_per_epoch
from newkind.methods.method import Batch
from newkind.methods.registry import find_method
from newkind.pipeline.setup import Setup, new_network
from newkind.progress import duration
from newkind.training.network import Network

__all__ = ["announce_data", "announce_training", "n_steps", "step_seconds", "training_seconds"]

logger = logging.getLogger(__name__)


def announce_data(collection: Collection) -> None:
    """Log what the user should know about the data."""
    for note in collection.notes:
        logger.info(note)
    log_skipped(collection.skipped)
    if ignored := ignored_files(collection.ignored):
        logger.info(f"Ignored: {ignored}.")
    counts = zip(collection.catalog.class_names, collection.catalog.counts(), strict=True)
    if single := [printable(name) for name, n in counts if n == 1]:
        others = f" and {len(single) - 1} more" if len(single) > 1 else ""
        logger.info(f"Only 1 labelled image: {single[0]}{others}. Label more images for better results.")
    truth = collection.truth
    if truth is not None and not np.any(truth.labels >= truth.n_old):
        logger.info("The truth contains no new class, so there is no accuracy for New.")


def announce_training(collection: Collection, config: DiscoverConfig, setup: Setup) -> None:
    """Log method, epochs, steps and estimated time."""
    entry, training = find_method(config.method_name), config.training
    if not training.epochs:
        n_views = len(config.averaged_views)
        views = "1 view" if n_views == 1 else f"{n_views} averaged views"
        logger.info(f"{entry.title} without training, {views} per image ({config.n_categories}).")
        return
    logger.info(
        f"{entry.title}: {training.epochs} epochs of {n_steps(collection, config)} steps on {setup.device}, "
        f"about {duration(training_seconds(collection, config, setup))} ({config.n_categories})."
    )


def training_seconds(collection: Collection, config: DiscoverConfig, setup: Setup) -> float:
    """Estimated time of the training, from one step; 0 without training."""
    if not config.training.epochs:
        return 0.0
    # For the time of a step, an unknown number of categories may be off by a factor of 2.
    n_categories = config.n_categories.number or 2 * max(collection.catalog.n_known_classes, 1)
    network = new_network(config, setup, max(min(n_categories, len(collection.catalog)), 2))
    return config.training.epochs * n_steps(collection, config) * step_seconds(collection, config, setup, network)


def n_steps(collection: Collection, config: DiscoverConfig) -> int:
    """Steps per epoch."""
    return steps_per_epoch(len(collection.catalog), config.training.optimizer.batch_size * distributed.world_size())


def step_seconds(collection: Collection, config: DiscoverConfig, setup: Setup, network: Network) -> float:
    """Seconds of a training step, measured on random tokens (online: and on a few images and their views)."""
    training, backbone, device = config.training, setup.backbone, setup.device
    n_tokens = backbone.trunk.n_tokens if backbone else 0
    rows = training.views_per_step * training.optimizer.batch_size
    moments = torch.ones(rows, n_tokens, 2, device=device) if backbone and backbone.trunk.keep_moments else None
    tokens = Tokens(
        torch.zeros(rows, n_tokens, setup.dim, device=device), torch.zeros(rows, setup.dim, device=device), moments
    )
    trial = copy.deepcopy(network).to(device)  # what a method remembers between steps is not changed
    for _ in range(2):
        start = time.perf_counter()
        batch = Batch(
            labels=torch.zeros(training.optimizer.batch_size, dtype=torch.long, device=device),
            n_views=training.views_per_step,
            epoch=0,
            n_epochs=1,
            teacher_logits=trial.teacher_logits(tokens),
            generator=torch.Generator(),
        )
        trial.method.loss_terms(trial.features(tokens), batch).total().backward()  # type: ignore[no-untyped-call]
        seconds = 1.3 * (time.perf_counter() - start)  # 0.3 for the optimizer and for reading tokens
    if config.online and backbone is not None:
        images = images_of(collection)
        rates = measure_rates(images, range(len(images)), backbone, config.backbone.image_size)
        seconds += rates.seconds(training.optimizer.batch_size, rows)
    return seconds
