"""The evaluation pass: what the network says of each image, kept small enough for a million of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from newkind import distributed
from newkind.backbone.tokens import TokenSource
from newkind.progress import quiet
from newkind.training.network import Network

__all__ = ["Predictions", "predict_images"]


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
    network.eval()
    mine = np.array_split(np.arange(len(images)), distributed.world_size())[distributed.rank()]
    batches = [mine[i : i + batch_size] for i in range(0, len(mine), batch_size)]
    rows = []
    tokens = source.evaluation_batches(images[batch] for batch in batches)
    for batch, token in zip(batches, tokens, strict=True):
        p = network.probabilities(token.to(device))  # (b, K)
        top = p.topk(min(2, p.shape[1]), dim=1)
        given = torch.as_tensor(labels[batch].astype(np.int64), device=device)
        own = p.gather(1, given.clamp_min(0)[:, None])[:, 0] * (given >= 0)
        rows.append(
            torch.stack(
                [
                    top.indices[:, 0].double(),
                    top.values[:, 0].double(),
                    top.indices[:, -1].double(),
                    top.values[:, -1].double(),
                    p[:, n_known:].sum(dim=1).double(),
                    own.double(),
                ],
                dim=1,
            ).cpu()
        )
        advance(len(batch))
    joined = torch.cat(rows) if rows else torch.zeros(0, 6, dtype=torch.float64)
    table = distributed.gather_uneven(joined.to(device) if device.type == "cuda" else joined).cpu().numpy()
    return Predictions(
        best=table[:, 0].astype(np.int64),
        best_probability=table[:, 1].astype(np.float32),
        second=table[:, 2].astype(np.int64),
        second_probability=table[:, 3].astype(np.float32),
        novelty=table[:, 4].astype(np.float32),
        given_probability=table[:, 5].astype(np.float32),
    )
