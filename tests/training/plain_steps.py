"""A training written once more in plain torch: features, SGD by hand, cosine schedule. For test_steps_of_methods.py.

Nothing here uses Newkind's losses, heads, schedules or optimizer. What is drawn at random (batches, ORCA's partners) is given.
"""

from collections.abc import Callable, Iterator
from math import cos, pi
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from newkind.backbone.ready import ReadyFeatures
from newkind.backbone.tokens import Tokens
from newkind.config import TrainingConfig
from newkind.data import Features
from newkind.data.sampling import epoch_batches
from newkind.training.data import TrainingData
from newkind.training.network import Network
from newkind.training.trainer import Trainer

N, DIM, K, N_KNOWN, BATCH, EPOCHS = 20, 12, 6, 3, 10, 3
"""Images, dimension, categories, known classes, batch size, epochs: three epochs of two steps."""
Parameters = dict[str, Tensor]


class Tuned(nn.Module):
    """Stands for the tuned block: a matrix with decay, a vector without."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Linear(DIM, DIM)

    def forward(self, tokens: Tokens) -> Tensor:
        return self.block(tokens.cls).tanh()


def views_of(images: np.ndarray) -> tuple[Tensor, Tensor]:
    """Two views (B, d) of images, in float64."""
    x = torch.from_numpy(np.random.default_rng(5).normal(size=(2, N, DIM)))
    x[1] = x[0] + 0.3 * x[1]
    return x[0, images], x[1, images]


class TwoViews(ReadyFeatures):
    """Features with two different views per image."""

    def training_batches(self, batches: Any, *, n_views: int, seed: Any, rows: slice = slice(None)) -> Iterator[Tokens]:
        for batch in batches:
            yield Tokens.of_features(torch.cat(views_of(batch[rows])))


def labels() -> np.ndarray:
    """Half of the images are unlabelled, the others of three known classes."""
    return np.where(np.arange(N) % 2 == 0, np.arange(N) // 2 % N_KNOWN, -1)


def train(network: Network, folder: Path, **training: Any) -> None:
    """Newkind's own training of a network, in place."""
    source = TwoViews(Features(views_of(np.arange(N))[0].numpy().astype(np.float32), [str(i) for i in range(N)]))
    data = TrainingData(source, np.arange(N), labels(), n_known=N_KNOWN)
    config = TrainingConfig(epochs=EPOCHS, batch_size=BATCH, **training)
    trainer = Trainer(
        network, data, config, device=torch.device("cpu"), checkpoint=folder / "c.safetensors", fingerprint="x"
    )
    trainer.train(lambda _: None)


def plain_features(p: Parameters, x: Tensor) -> Tensor:
    return (x @ p["tuned.block.weight"].T + p["tuned.block.bias"]).tanh()


def cosines(x: Tensor, rows: Tensor) -> Tensor:
    """(M, d), (K, d) -> (M, K)."""
    return (x / x.norm(dim=1, keepdim=True)) @ (rows / rows.norm(dim=1, keepdim=True)).T


def plain_train(
    p: Parameters,
    loss: Callable[[Parameters, tuple[Tensor, Tensor], Tensor, int, int], Tensor],
    *,
    rate: float,
    decay: float,
    decay_vectors: bool,
    after_step: Callable[[Parameters], None] = lambda _: None,
) -> Parameters:
    """The same training by hand: parameters after it, from those at its start.

    `loss` gets the parameters, both views (B, d) of a batch, its labels, the epoch and the number of the step in it.
    """
    p = {name: value.detach().clone().requires_grad_() for name, value in p.items()}
    velocity: Parameters = {}
    for epoch in range(EPOCHS):
        base = rate * BATCH / 128
        now = 1e-3 * base + (base - 1e-3 * base) * (1 + cos(pi * epoch / EPOCHS)) / 2
        for step, batch in enumerate(epoch_batches(labels(), batch_size=BATCH, seed=0, epoch=epoch)):
            total = loss(p, views_of(batch), torch.from_numpy(labels()[batch]), epoch, step)
            gradients = torch.autograd.grad(total, list(p.values()), allow_unused=True)
            for (name, value), gradient in zip(p.items(), gradients, strict=True):
                change = torch.zeros_like(value) if gradient is None else gradient.clone()
                if value.ndim > 1 or decay_vectors:
                    change += decay * value.detach()
                velocity[name] = change if name not in velocity else 0.9 * velocity[name] + change
                with torch.no_grad():
                    value -= now * velocity[name]
            after_step(p)
    return p
