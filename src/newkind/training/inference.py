"""The evaluation pass: what the network says of each image, kept small enough for a million of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from newkind import distributed
from newkind.backbone.tokens import TokenSource
from newkind.progress import quiet
from newkind.training.network import Network

__all__ = ["Predictions", "image_features", "predict_features", "predict_images"]


@dataclass(frozen=True)
class Predictions:
    """For n images: the best and the second category with their probabilities, and more."""

    best: NDArray[np.int64]
    best_probability: NDArray[np.float32]
    second: NDArray[np.int64]
    second_probability: NDArray[np.float32]
    novelty: NDArray[np.float32]
    """The probability of all new categories together."""
    given_probability: NDArray[np.float32]
    """Of the given label; 0 for an unlabelled image."""


@torch.no_grad()
def predict_images(
    network: Network,
    source: TokenSource,
    images: NDArray[np.int64],
    *,
    labels: NDArray[np.integer],
    n_known: int,
    device: torch.device,
    batch_size: int = 256,
    advance: Callable[[int], None] = quiet,
) -> Predictions:
    """images (n,): numbers into the source; labels (n,): given ones, or -1. Sharded over processes, without duplicates."""
    rows = []
    for batch, features in _features(network, source, images, device=device, batch_size=batch_size):
        p = network.category_probabilities(features)  # (b, K)
        rows.append(_condense(p, torch.as_tensor(labels[batch].astype(np.int64)), n_known))
        advance(len(batch))
    return _unpack(_gathered(rows, len(Predictions.__annotations__), torch.float64, device))


@torch.no_grad()
def image_features(
    network: Network,
    source: TokenSource,
    images: NDArray[np.int64],
    *,
    device: torch.device,
    batch_size: int = 256,
    n_looks: int = 0,
    seed: int = 0,
    advance: Callable[[int], None] = quiet,
) -> Tensor:
    """(n, d): the class feature of each image, on the CPU; each process computes a part and gets all.

    Of the evaluation view, or its mean with those of `n_looks` random views.
    """
    rows = []
    looks = _random_looks(network, source, images, n_looks, seed=seed, device=device, batch_size=batch_size)
    for batch, features in _features(network, source, images, device=device, batch_size=batch_size):
        if n_looks:
            features = (features + next(looks)) / (1 + n_looks)
        rows.append(features.float().cpu())
        advance(len(batch))
    return _gathered(rows, rows[0].shape[1] if rows else 0, torch.float32, device)


def _random_looks(
    network: Network,
    source: TokenSource,
    images: NDArray[np.int64],
    n_looks: int,
    *,
    seed: int,
    device: torch.device,
    batch_size: int,
) -> Iterator[Tensor]:
    """The sum (b, d) of the features of `n_looks` random views, batch by batch as `_features` yields them."""
    batches = _own_batches(len(images), batch_size)
    tokens = source.training_batches((images[batch] for batch in batches), n_views=n_looks, seed=(seed, 0))
    for batch, token in zip(batches, tokens, strict=True):
        yield network.features(token.to(device)).view(n_looks, len(batch), -1).sum(dim=0)


@torch.no_grad()
def predict_features(
    network: Network, features: Tensor, *, labels: NDArray[np.integer], n_known: int, device: torch.device
) -> Predictions:
    """As `predict_images`, from features (n, d) that are there already."""
    given = torch.as_tensor(labels.astype(np.int64))
    rows = [
        _condense(network.category_probabilities(features[i : i + 4096].to(device)), given[i : i + 4096], n_known)
        for i in range(0, len(features), 4096)
    ]
    return _unpack(torch.cat(rows) if rows else torch.zeros(0, len(Predictions.__annotations__), dtype=torch.float64))


def _features(
    network: Network, source: TokenSource, images: NDArray[np.int64], *, device: torch.device, batch_size: int
) -> Iterator[tuple[NDArray[np.int64], Tensor]]:
    """This process's share: (rows of `images`, features) a batch."""
    network.eval()
    batches = _own_batches(len(images), batch_size)
    seen = source.evaluation_batches(images[batch] for batch in batches)
    for batch, (rows, tokens) in zip(batches, seen, strict=True):
        yield batch[rows], network.features(tokens.to(device))


def _own_batches(n_images: int, batch_size: int) -> list[NDArray[np.int64]]:
    mine = np.array_split(np.arange(n_images), distributed.world_size())[distributed.rank()]
    return [mine[i : i + batch_size] for i in range(0, len(mine), batch_size)]


def _condense(p: Tensor, given: Tensor, n_known: int) -> Tensor:
    """(b, K) probabilities and (b,) given labels to (b, 6): the columns of Predictions, in its order."""
    given = given.to(p.device)
    top = p.topk(min(2, p.shape[1]), dim=1)
    own = p.gather(1, given.clamp_min(0)[:, None])[:, 0] * (given >= 0)
    columns = [top.indices[:, 0], top.values[:, 0], top.indices[:, -1], top.values[:, -1], p[:, n_known:].sum(dim=1)]
    return torch.stack([column.double() for column in [*columns, own]], dim=1).cpu()


def _gathered(rows: list[Tensor], width: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """All processes' rows, on the CPU."""
    joined = torch.cat(rows) if rows else torch.zeros(0, width, dtype=dtype)
    return distributed.gather_uneven(joined.to(device) if device.type == "cuda" else joined).cpu()


def _unpack(table: Tensor) -> Predictions:
    columns = table.numpy().T
    return Predictions(
        best=columns[0].astype(np.int64),
        best_probability=columns[1].astype(np.float32),
        second=columns[2].astype(np.int64),
        second_probability=columns[3].astype(np.float32),
        novelty=columns[4].astype(np.float32),
        given_probability=columns[5].astype(np.float32),
    )
