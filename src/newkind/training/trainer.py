"""The trainer: the whole life of a method, from its start over the epochs to its last predictions."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from newkind import distributed
from newkind.backbone.allocator import keep_large_blocks
from newkind.config import TrainingConfig
from newkind.data.sampling import epoch_batches, steps_per_epoch
from newkind.errors import ConfigError, RunError
from newkind.losses.schedules import cosine_learning_rate
from newkind.methods.method import Batch
from newkind.optimizer_config import BASE_BATCH
from newkind.training.checkpoint import load_checkpoint, restore, save_checkpoint
from newkind.training.data import ImageFeatures, TrainingData
from newkind.training.inference import Layout, Predictions, predict_features, shared_predictions
from newkind.training.merging import Merging, plan_merging
from newkind.training.network import Network
from newkind.training.optimizer import build_sgd

__all__ = ["EpochReport", "ReadOut", "Trainer"]


@dataclass(frozen=True)
class EpochReport:
    """Result of one epoch.

    Parameters
    ----------
    epoch : int
        Number of the epoch, from 1.
    losses : dict of str to float
        Mean of each loss part and of the total.
    learning_rate : float
        Learning rate of the epoch.
    seconds : float
        Duration of the epoch.
    images_per_second : float
        Throughput over all processes.
    """

    epoch: int
    losses: dict[str, float]
    learning_rate: float
    seconds: float
    images_per_second: float


@dataclass(frozen=True)
class ReadOut:
    """Predictions and features of all images.

    Parameters
    ----------
    predictions : Predictions
        Of n images.
    features : Tensor of shape (n, d)
        Class features, averaged over the views of the data, on the CPU; only in the main process.
    """

    predictions: Predictions
    features: Tensor


class Trainer:
    """Trains a network and reads out its predictions.

    Parameters
    ----------
    network : Network
        Network; trained in place.
    data : TrainingData
        Images to train on.
    config : TrainingConfig
        Configuration of the loop.
    device : torch.device
        Device to train on.
    checkpoint : Path
        Checkpoint file; training resumes from it if it exists.
    fingerprint : str
        Fingerprint of config and data; a checkpoint with another one is refused.
    """

    def __init__(
        self,
        network: Network,
        data: TrainingData,
        config: TrainingConfig,
        *,
        device: torch.device,
        checkpoint: Path,
        fingerprint: str,
    ) -> None:
        self.network = network.to(device)
        self.data = data
        self.config = config.completed(network.method.optimizer)
        self.device = device
        self.checkpoint = checkpoint
        self.fingerprint = fingerprint
        self.optimizer = self.config.optimizer
        self.joint_batch = self.optimizer.batch_size * distributed.world_size()
        self.n_epochs = config.epochs if network.method.trains else 0

    def train(self, after_epoch: Callable[[EpochReport], None]) -> None:
        """Start the method or resume it, and run the remaining epochs.

        Parameters
        ----------
        after_epoch : callable
            Called with the report of each epoch, in every process, before its checkpoint: what it writes about an epoch is
            complete when the epoch is never run again.
        """
        n_epochs = self.n_epochs
        if n_epochs and steps_per_epoch(len(self.data.images), self.joint_batch) < 1:
            raise ConfigError(
                f"There are {len(self.data.images)} images, fewer than one batch of {self.joint_batch}.",
                fix="Use a smaller `batch_size`.",
                code="batch-too-large",
                setting="batch_size",
            )
        holdings = self.data.source.holdings.only(self.data.images)
        if n_epochs and len(np.unique(holdings.of_image)) < len(np.unique(holdings.of_process)):
            raise ConfigError(
                "A machine has no image to train on: there are too few, or the cache of another machine has all of them.",
                fix="Use fewer machines, or a cache folder (NEWKIND_CACHE) that they share, or copy the cache to all of them.",
                code="too-many-machines",
            )
        if n_epochs:  # otherwise nothing is read in batches, and a million features would stay in memory several times
            keep_large_blocks()
        base = self.optimizer.learning_rate * self.joint_batch / BASE_BATCH
        optimizer = self._optimizer(base)
        finished = self._resume(optimizer) if n_epochs else 0
        if finished == 0:
            self.network.method.start(self._images(self.network))
            distributed.broadcast_parameters(self.network.method)
        last_saved = time.monotonic()
        for epoch in range(finished, n_epochs):
            started = time.perf_counter()
            rate = cosine_learning_rate(epoch, base=base, n_epochs=n_epochs)
            for group in optimizer.param_groups:
                group["lr"] = rate * group["rate"]
            drawn = epoch_batches(
                self.data.labels,
                batch_size=self.joint_batch,
                seed=self.config.seed,
                epoch=epoch,
                holdings=holdings,
            )
            losses = self._train_epoch(optimizer, drawn, epoch)
            seconds = time.perf_counter() - started
            after_epoch(EpochReport(epoch + 1, losses, rate, seconds, drawn.size / seconds))
            is_due = epoch + 1 == n_epochs or time.monotonic() - last_saved >= self.config.checkpoint_seconds
            if distributed.main_process() and is_due:
                save_checkpoint(
                    self.checkpoint, self.network, optimizer, finished_epochs=epoch + 1, fingerprint=self.fingerprint
                )
                last_saved = time.monotonic()

    def read_out(self, *, final: bool) -> ReadOut:
        """Settle a trained method, calibrate it if training is over, and predict all images.

        Parameters
        ----------
        final : bool
            Whether training is over. Otherwise a copy of the method is settled, and the training is not changed.

        Returns
        -------
        ReadOut
        """
        network = self.network
        if not final:
            network = Network(network.tuned, copy.deepcopy(network.method), with_teacher=False)
        images = self._images(network)
        if self.n_epochs:
            network.method.settle(images)
        if final:
            network.method.calibrate(images)
        distributed.broadcast_parameters(network.method)
        return self._predict(network, images.features())

    def merge(self, found: ReadOut) -> tuple[Merging, ReadOut]:
        """Merge empty, tiny and duplicate categories, and predict again.

        Parameters
        ----------
        found : ReadOut
            The last predictions.

        Returns
        -------
        Merging
            What was merged.
        ReadOut
            Predictions of the merged categories.
        """
        method = self.network.method
        plan = plan_merging(
            found.predictions, self.data.is_unlabelled, n_prototypes=method.n_categories, n_known=self.data.n_known
        )
        method.merge_categories(plan.groups, plan.sizes)
        return plan, self._predict(self.network, found.features)

    def _images(self, network: Network) -> ImageFeatures:
        return ImageFeatures(network, self.data, device=self.device, seed=self.config.seed)

    def _predict(self, network: Network, features: Tensor) -> ReadOut:
        """Predictions of the main process, which has the features."""
        predictions = None
        if distributed.main_process():
            predictions = predict_features(
                network,
                features,
                labels=self.data.labels,
                layout=Layout.plain(network.method.n_categories, self.data.n_known),
                device=self.device,
                groups=self.data.groups,
            )
        return ReadOut(shared_predictions(predictions, len(self.data.images)), features)

    def _optimizer(self, learning_rate: float) -> torch.optim.SGD:
        method, tuned = self.network.method, self.network.tuned
        modules = [(method, method.head_rate), *([(tuned, method.block_rate)] if tuned is not None else [])]
        return build_sgd(
            modules,
            learning_rate=learning_rate,
            momentum=self.config.momentum,
            weight_decay=self.optimizer.weight_decay,
            decay_vectors=self.optimizer.decay_vectors,
        )

    def _resume(self, optimizer: torch.optim.SGD) -> int:
        """Load the checkpoint, if there is one, and give every process its state; returns the number of finished epochs."""
        found = load_checkpoint(self.checkpoint) if distributed.main_process() else None
        if found is not None:
            if found.fingerprint != self.fingerprint:
                raise RunError(
                    f"{self.checkpoint} belongs to another configuration or other data.",
                    fix="Use the settings it was made with, another `out`, or `overwrite`.",
                    code="other-run",
                    file=self.checkpoint,
                )
            restore(found, self.network, optimizer)
        distributed.broadcast_parameters(self.network)
        finished = int(distributed.broadcast(torch.tensor(found.finished_epochs if found else 0)))
        for parameter in self.network.parameters() if finished else ():
            if parameter.requires_grad:
                momentum = optimizer.state[parameter].get("momentum_buffer", torch.zeros_like(parameter))
                optimizer.state[parameter]["momentum_buffer"] = distributed.broadcast(momentum)
        return finished

    def _train_epoch(self, optimizer: torch.optim.SGD, drawn: NDArray[np.int64], epoch: int) -> dict[str, float]:
        """Run the batches (steps, joint batch) of one epoch; the mean of each loss part and of the total."""
        config, data, network = self.config, self.data, self.network
        network.train()
        network.method.begin_epoch(epoch)
        size = self.optimizer.batch_size
        own = slice(distributed.rank() * size, (distributed.rank() + 1) * size)
        generator = torch.Generator().manual_seed(config.seed * 1_000_003 + epoch)
        tokens = data.source.training_batches(
            (data.images[row] for row in drawn), n_views=config.views_per_step, seed=(config.seed, epoch), rows=own
        )
        sums: dict[str, Tensor] = {}
        for row, token in zip(drawn, tokens, strict=True):
            token = token.to(self.device, non_blocking=True)
            with _precision(config.precision, self.device):
                batch = Batch(
                    labels=self._on_device(data.labels[row[own]]),
                    n_views=config.views_per_step,
                    epoch=epoch,
                    n_epochs=config.epochs,
                    gather=distributed.gather_with_gradient if config.global_losses else _own_only,
                    teacher_logits=network.teacher_logits(token),
                    generator=generator,
                    truth=None if data.truth is None else self._on_device(data.truth[row[own]]),
                )
                terms = network.method.loss_terms(network.features(token), batch)
                total = terms.total()
            optimizer.zero_grad(set_to_none=True)
            total.backward()  # type: ignore[no-untyped-call]
            distributed.average_gradients(network.parameters())
            optimizer.step()
            network.update_teacher()
            for name, part in (*terms.parts.items(), ("total", total)):
                sums[name] = sums.get(name, torch.zeros((), device=self.device)) + part.detach()
        return _means(sums, len(drawn), epoch)

    def _on_device(self, numbers: NDArray[np.integer]) -> Tensor:
        return torch.as_tensor(numbers.astype(np.int64), device=self.device)


def _means(sums: dict[str, Tensor], n_steps: int, epoch: int) -> dict[str, float]:
    means = {name: float(value) / n_steps for name, value in sums.items()}
    if not np.isfinite(means["total"]):
        raise RunError(
            f"The loss became {means['total']} in epoch {epoch + 1}. The last checkpoint was written before that epoch.",
            fix="Use a smaller `learning_rate`.",
            code="loss-diverged",
            epoch=epoch + 1,
        )
    return means


def _own_only(x: Tensor) -> Tensor:
    return x


def _precision(precision: str, device: torch.device) -> torch.autocast | nullcontext[None]:
    mixed = precision == "bf16" or (precision == "auto" and device.type == "cuda" and torch.cuda.is_bf16_supported())
    return torch.autocast(device.type, dtype=torch.bfloat16) if mixed else nullcontext()
