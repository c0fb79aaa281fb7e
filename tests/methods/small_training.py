"""For the tests of methods: plain softmax, small batches, and a training on small clusters."""

from contextlib import suppress
from pathlib import Path

import numpy as np
import torch

from newkind.backbone.ready import ReadyFeatures
from newkind.config import TrainingConfig
from newkind.data import Features
from newkind.methods.method import Batch, Method
from newkind.methods.registry import build_method, method_config
from newkind.training.network import Network
from newkind.training.trainer import train

K, DIM = 6, 16
SMALL = {"debiaspl": {"projector_hidden": 32, "projector_out": 8}, "simgcd": {"projector_hidden": 32}}
"""Settings that make a method small."""


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def small_method(name: str, *, n_categories: int = K, seed: int = 0, **settings) -> Method:
    torch.manual_seed(seed)
    config = method_config(name, n_categories=n_categories, settings=SMALL.get(name, {}) | settings)
    return build_method(name, DIM, config)


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


class Stop(Exception):
    """A training that is broken off."""


def train_small(folder: Path, network: Network, epochs: int, *, stop_after: int | None = None) -> list:
    """The reports of its epochs; the checkpoint is in the folder, and a training goes on from it."""
    values, _, labels = blobs()
    folder.mkdir(exist_ok=True)
    reports = []

    def after_epoch(report) -> None:
        reports.append(report)
        if report.epoch == stop_after:
            raise Stop

    with suppress(Stop):
        train(
            network,
            ReadyFeatures(Features(values, [str(i) for i in range(len(values))])),
            labels,
            TrainingConfig(epochs=epochs, batch_size=48, checkpoint_seconds=0),
            images=np.arange(len(values)),
            device=torch.device("cpu"),
            checkpoint=folder / "c.safetensors",
            fingerprint="x",
            after_epoch=after_epoch,
        )
    return reports


def state(network: Network) -> dict[str, bytes]:
    return {name: value.numpy().tobytes() for name, value in network.state_dict().items()}
