"""What `discover` says before it starts: the data's oddities, and what will be done and how long it takes."""

from __future__ import annotations

import copy
import logging
import time

import numpy as np
import torch

from newkind import distributed
from newkind.backbone.loader import Prepared
from newkind.backbone.vit import seconds_per_view
from newkind.backbone.tokens import Tokens
from newkind.config import DiscoverConfig
from newkind.data.catalog import Collection, Skipped
from newkind.data.names import printable
from newkind.data.sampling import steps_per_epoch
from newkind.methods.method import Batch
from newkind.methods.registry import METHODS
from newkind.progress import duration
from newkind.training.network import Network

__all__ = ["announce", "step_seconds", "tell_data", "tell_skipped"]

logger = logging.getLogger(__name__)


def tell_data(collection: Collection) -> None:
    """What a person should know before it starts."""
    for note in collection.notes:
        logger.info(note)
    tell_skipped(collection.skipped)
    single = [
        name for name, n in zip(collection.catalog.class_names, collection.catalog.counts(), strict=True) if n == 1
    ]
    if single:
        more = f" and {len(single) - 1} more" if len(single) > 1 else ""
        logger.info(f"{single[0]}{more}: a single labelled image; more would teach more.")
    truth = collection.truth
    if truth is not None and not np.any(truth.labels >= truth.n_old):
        logger.info("The truth names no new class: there will be no score for New.")


def tell_skipped(items: tuple[Skipped, ...]) -> None:
    for item in items[:5]:
        logger.info(f"Set aside: {printable(item.name)} ({item.reason}).")
    if len(items) > 5:
        logger.info(f"... and {len(items) - 5} more; newkind inspect lists them.")


def announce(
    collection: Collection,
    config: DiscoverConfig,
    prepared: Prepared | None,
    network: Network,
    device: torch.device,
    dim: int,
) -> None:
    """Epochs, steps and time."""
    title, training = METHODS[config.method_name].title, config.training
    if not network.method.trains:
        logger.info(f"{title} on the features of {len(collection.catalog):,} images on {device} ({config.known_k}).")
        return
    seconds = step_seconds(config, prepared, network, device, dim)
    steps = steps_per_epoch(len(collection.catalog), training.batch_size * distributed.world_size())
    logger.info(
        f"{title}: {training.epochs} epochs of {steps} steps on {device}, about {duration(seconds * steps * training.epochs)} "
        f"({config.known_k})."
    )


def step_seconds(
    config: DiscoverConfig, prepared: Prepared | None, network: Network, device: torch.device, dim: int
) -> float:
    """A step of training, measured on made-up tokens (and, online, on a few views through the trunk)."""
    training = config.training
    n_tokens = prepared.trunk.n_tokens if prepared else 0
    rows = training.n_views * training.batch_size
    moments = torch.ones(rows, n_tokens, 2, device=device) if prepared and prepared.trunk.keep_moments else None
    tokens = Tokens(torch.zeros(rows, n_tokens, dim, device=device), torch.zeros(rows, dim, device=device), moments)
    trial = copy.deepcopy(network).to(device)  # what a method remembers between steps stays untouched
    for _ in range(2):
        start = time.perf_counter()
        batch = Batch(
            labels=torch.zeros(training.batch_size, dtype=torch.long, device=device),
            n_views=training.n_views,
            epoch=0,
            n_epochs=1,
            teacher_logits=trial.teacher_logits(tokens),
            generator=torch.Generator(),
        )
        trial.method.loss_terms(trial.features(tokens), batch).total().backward()  # type: ignore[no-untyped-call]
        seconds = 1.3 * (time.perf_counter() - start)  # the optimiser's step and reading
    if config.online and prepared is not None:
        seconds += rows * seconds_per_view(prepared.trunk, config.backbone.image_size, device=device)
    return seconds
