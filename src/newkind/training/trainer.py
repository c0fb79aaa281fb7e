"""The one loop. It reads top to bottom: draw a batch, tokens, features, the method's losses, a step; every epoch a line."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from newkind import distributed
from newkind.backbone.allocator import keep_large_blocks
from newkind.backbone.tokens import TokenSource
from newkind.data.sampling import epoch_batches, steps_per_epoch
from newkind.errors import ConfigError, RunError
from newkind.losses.schedules import cosine_learning_rate
from newkind.methods.method import Batch
from newkind.training.checkpoint import load_checkpoint, restore, save_checkpoint
from newkind.training.inference import image_features
from newkind.training.network import Network
from newkind.training.optimizer import build_sgd

__all__ = ["EpochReport", "TrainingConfig", "train"]

BASE_BATCH = 128
"""For which the learning rate is given; another joint batch scales it linearly."""


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How long and how fast; the defaults are those of the published runs."""

    epochs: int = 200
    batch_size: int = BASE_BATCH
    """Images a process and a step."""
    learning_rate: float = 0.1
    """For a batch of 128 over all processes; scaled linearly with it."""
    momentum: float = 0.9
    weight_decay: float = 5e-5
    n_views: int = 2
    """Views of each image in a step."""
    global_losses: bool = False
    """With several processes: losses over the joint batch (True), or over each process's own, as published."""
    precision: str = "auto"
    """fp32; bf16 (mixed); auto takes bf16 on CUDA devices that have it."""
    evaluate_every: int = 10
    """Epochs between two evaluations; the last epoch is always evaluated."""
    checkpoint_seconds: float = 60.0
    """The least time between two checkpoints; the last epoch always writes one."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch_size < 2 or self.n_views < 2:
            raise ConfigError(
                f"At least 1 epoch, 2 images a batch and 2 views are needed; got {self.epochs}, {self.batch_size}, {self.n_views}."
            )
        if self.seed < 0 or self.evaluate_every < 1:
            raise ConfigError(
                f"seed is 0 or larger and evaluate_every at least 1; got {self.seed} and {self.evaluate_every}."
            )
        if not self.learning_rate > 0:
            raise ConfigError(f"learning_rate must be larger than 0; got {self.learning_rate}.")
        if self.precision not in ("auto", "fp32", "bf16"):
            raise ConfigError(f"precision is auto, fp32 or bf16; got {self.precision}.")


@dataclass(frozen=True)
class EpochReport:
    """What an epoch came to."""

    epoch: int
    """From 1."""
    losses: dict[str, float]
    learning_rate: float
    seconds: float
    images_per_second: float


def train(
    network: Network,
    source: TokenSource,
    labels: NDArray[np.integer],
    config: TrainingConfig,
    *,
    images: NDArray[np.int64],
    device: torch.device,
    checkpoint: Path,
    fingerprint: str,
    after_epoch: Callable[[EpochReport], None],
    truth: NDArray[np.integer] | None = None,
) -> None:
    """Trains `network` in place, from the checkpoint if there is one.

    images (n,): numbers into the source of the images to learn from; labels (n,): theirs, -1 for unlabelled.
    truth (n,): only for a method that is an oracle.
    """
    keep_large_blocks()
    world, rank = distributed.world_size(), distributed.rank()
    global_batch = config.batch_size * world
    if steps_per_epoch(len(images), global_batch) < 1:
        raise ConfigError(
            f"{len(images)} images are fewer than one batch of {global_batch}.", fix="Take a smaller --batch-size."
        )
    base = config.learning_rate * global_batch / BASE_BATCH
    network.to(device)
    method = network.method
    modules = [(method, method.head_rate), *([(network.tuned, method.block_rate)] if network.tuned is not None else [])]
    optimizer = build_sgd(modules, learning_rate=base, momentum=config.momentum, weight_decay=config.weight_decay)
    first = _resume(network, optimizer, checkpoint, fingerprint)
    if first == 0 and method.starts:
        _start(network, source, images, labels, seed=config.seed, device=device)
    own = slice(rank * config.batch_size, (rank + 1) * config.batch_size)
    last_saved = time.monotonic()
    for epoch in range(first, config.epochs):
        start = time.perf_counter()
        rate = cosine_learning_rate(epoch, base=base, n_epochs=config.epochs)
        for group in optimizer.param_groups:
            group["lr"] = rate * group["rate"]
        drawn = epoch_batches(labels, batch_size=global_batch, seed=config.seed, epoch=epoch)
        network.method.begin_epoch(epoch)
        losses = _train_epoch(network, optimizer, source, images, labels, truth, drawn, own, config, epoch, device)
        seconds = time.perf_counter() - start
        is_last = epoch + 1 == config.epochs
        if distributed.main_process() and (is_last or time.monotonic() - last_saved >= config.checkpoint_seconds):
            save_checkpoint(checkpoint, network, optimizer, finished_epochs=epoch + 1, fingerprint=fingerprint)
            last_saved = time.monotonic()
        after_epoch(EpochReport(epoch + 1, losses, rate, seconds, drawn.size / seconds))


def _start(
    network: Network,
    source: TokenSource,
    images: NDArray[np.int64],
    labels: NDArray[np.integer],
    *,
    seed: int,
    device: torch.device,
) -> None:
    """The method looks at all images before the first epoch; the first process tells the others what it found."""
    features = image_features(network, source, images, device=device, n_looks=network.method.n_looks, seed=seed)
    if distributed.main_process():
        known = _on(torch.device("cpu"), labels)
        network.method.start(features, known, n_known=int(known.max()) + 1, seed=seed)
    distributed.broadcast_parameters(network.method)


def _resume(network: Network, optimizer: torch.optim.SGD, path: Path, fingerprint: str) -> int:
    """The number of epochs that are finished already. Every process gets what the first one found."""
    found = load_checkpoint(path) if distributed.main_process() else None
    if found is not None:
        if found.fingerprint != fingerprint:
            raise RunError(
                f"{path} belongs to another configuration or other data.",
                fix="Run with the settings it was made with, take another --out, or start anew with --overwrite.",
            )
        restore(found, network, optimizer)
    distributed.broadcast_parameters(network)
    finished = int(distributed.broadcast(torch.tensor(found.finished_epochs if found else 0)))
    for parameter in network.parameters() if finished else ():
        if parameter.requires_grad:
            momentum = optimizer.state[parameter].get("momentum_buffer", torch.zeros_like(parameter))
            optimizer.state[parameter]["momentum_buffer"] = distributed.broadcast(momentum)
    return finished


def _train_epoch(
    network: Network,
    optimizer: torch.optim.SGD,
    source: TokenSource,
    images: NDArray[np.int64],
    labels: NDArray[np.integer],
    truth: NDArray[np.integer] | None,
    drawn: NDArray[np.int64],
    own: slice,
    config: TrainingConfig,
    epoch: int,
    device: torch.device,
) -> dict[str, float]:
    """One epoch; the mean of each loss part and of the total."""
    network.train()
    sums: dict[str, torch.Tensor] = {}
    gather = distributed.gather_with_gradient if config.global_losses else _own_only
    generator = torch.Generator().manual_seed(config.seed * 1_000_003 + epoch)
    batches: Iterator[NDArray[np.int64]] = (images[row] for row in drawn)
    tokens = source.training_batches(batches, n_views=config.n_views, seed=(config.seed, epoch), rows=own)
    for row, token in zip(drawn, tokens, strict=True):
        token = token.to(device, non_blocking=True)
        with _precision(config.precision, device):
            batch = Batch(
                labels=_on(device, labels[row[own]]),
                n_views=config.n_views,
                epoch=epoch,
                n_epochs=config.epochs,
                gather=gather,
                teacher_logits=network.teacher_logits(token),
                generator=generator,
                truth=None if truth is None else _on(device, truth[row[own]]),
            )
            terms = network.method.loss_terms(network.features(token), batch)
            total = terms.total()
        optimizer.zero_grad(set_to_none=True)
        total.backward()  # type: ignore[no-untyped-call]
        distributed.average_gradients(network.parameters())
        optimizer.step()
        network.update_teacher()
        for name, part in (*terms.parts.items(), ("total", total)):
            sums[name] = sums.get(name, torch.zeros((), device=device)) + part.detach()
    means = {name: float(value) / len(drawn) for name, value in sums.items()}
    if not np.isfinite(means["total"]):
        raise RunError(
            f"The loss became {means['total']} in epoch {epoch + 1}; the last checkpoint is from before.",
            fix="Take a smaller --learning-rate.",
        )
    return means


def _on(device: torch.device, numbers: NDArray[np.integer]) -> torch.Tensor:
    return torch.as_tensor(numbers.astype(np.int64), device=device)


def _own_only(x: torch.Tensor) -> torch.Tensor:
    return x


def _precision(precision: str, device: torch.device) -> torch.autocast | nullcontext[None]:
    mixed = precision == "bf16" or (precision == "auto" and device.type == "cuda" and torch.cuda.is_bf16_supported())
    return torch.autocast(device.type, dtype=torch.bfloat16) if mixed else nullcontext()
