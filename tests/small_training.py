"""For the tests of methods: plain softmax, small batches, all images at hand, and a training on small clusters."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from newkind.backbone.ready import ReadyFeatures
from newkind.config import TrainingConfig
from newkind.data import Features
from newkind.methods.method import Batch, Method
from newkind.methods.registry import build_method, method_config
from newkind.training.data import TrainingData
from newkind.training.network import Network
from newkind.training.trainer import Trainer

K, DIM = 6, 16
SMALL = {
    "debiaspl": {"projector_hidden": 32, "projector_out": 8},
    "simgcd": {"projector_hidden": 32},
    "gcd": {"projector_hidden": 32, "projector_width": 2048},
    "uno": {"head_hidden": 32, "head_out": 8},
    "rankstats": {"top_k": 2, "pair_weight": 5.0},  # with weight 1 this short training predicts only known classes
}
"""Settings that make a method small."""


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def small_method(name: str, *, n_categories: int = K, seed: int = 0, **settings) -> Method:
    torch.manual_seed(seed)
    config = method_config(name, settings=SMALL.get(name, {}) | settings)
    return build_method(name, DIM, n_categories, config)


def batch_of(
    labels: list[int], *, n_views: int = 2, epoch: int = 0, n_epochs: int = 10, seed: int = 3, **more
) -> Batch:
    return Batch(
        labels=torch.tensor(labels),
        n_views=n_views,
        epoch=epoch,
        n_epochs=n_epochs,
        generator=torch.Generator().manual_seed(seed),
        **more,
    )


def features_of(n_rows: int, *, seed: int = 1, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(n_rows, DIM, dtype=dtype, generator=torch.Generator().manual_seed(seed))


def blobs(n: int = 240) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """K Gaussian clusters; (features, truth, labels): the first half of the classes is known, half of it labelled."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(K, DIM))
    truth = np.arange(n) % K
    values = (centres[truth] + 0.4 * rng.normal(size=(n, DIM))).astype(np.float32)
    return values, truth, np.where((truth < 3) & (np.arange(n) // K % 2 == 0), truth, -1)


@dataclass
class Images:
    """All images of a run, with features that are there already."""

    values: torch.Tensor
    labels: torch.Tensor
    n_known: int
    seed: int = 0

    def features(self) -> torch.Tensor:
        return self.values


def trainer_for(
    network: Network,
    values: np.ndarray,
    labels: np.ndarray,
    config: TrainingConfig,
    folder: Path,
    fingerprint: str = "x",
) -> Trainer:
    source = ReadyFeatures(Features(values, [str(i) for i in range(len(values))]))
    data = TrainingData(source, np.arange(len(values)), labels, n_known=int(labels.max()) + 1)
    return Trainer(
        network,
        data,
        config,
        device=torch.device("cpu"),
        checkpoint=folder / "c.safetensors",
        fingerprint=fingerprint,
    )


class Stop(Exception):
    """An interrupted training."""


def train_small(folder: Path, network: Network, epochs: int, *, stop_after: int | None = None) -> list:
    """Reports of the epochs; the checkpoint is in the folder, and a training resumes from it."""
    values, _, labels = blobs()
    folder.mkdir(exist_ok=True)
    reports = []

    def after_epoch(report) -> None:
        if stop_after is not None and report.epoch > stop_after:  # before the checkpoint of this epoch
            raise Stop
        reports.append(report)

    with suppress(Stop):
        config = TrainingConfig(epochs=epochs, batch_size=48, learning_rate=0.1, checkpoint_seconds=0)
        trainer_for(network, values, labels, config, folder).train(after_epoch)
    return reports


def state(network: Network) -> dict[str, bytes]:
    return {name: value.numpy().tobytes() for name, value in network.state_dict().items()}
