"""Features and predictions of images, in memory that allows a million of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from newkind import distributed
from newkind.backbone.tokens import EVALUATION, TokenSource, Views
from newkind.progress import quiet
from newkind.training.group_evidence import GroupEvidence
from newkind.training.network import Encoder, Network

__all__ = [
    "Layout",
    "Predictions",
    "image_features",
    "predict_features",
    "predict_readable",
    "shared_predictions",
    "view_mean",
]

BATCH = 256
PART = 4096
"""Rows of ready features whose probabilities are computed at a time."""


@dataclass(frozen=True)
class Predictions:
    """Predictions for n images.

    Parameters
    ----------
    best : ndarray of int64, shape (n,)
        Category with the highest probability.
    best_probability : ndarray of float32, shape (n,)
        Its probability.
    second : ndarray of int64, shape (n,)
        Category with the second highest probability.
    second_probability : ndarray of float32, shape (n,)
        Its probability.
    novelty : ndarray of float32, shape (n,)
        Probability of all new categories together.
    given_probability : ndarray of float32, shape (n,)
        Probability of the given label; 0 for an unlabelled image.
    outlier : ndarray of bool, shape (n,), optional
        Whether the image fits no category; None if the method has no rule for it.
    """

    best: NDArray[np.int64]
    best_probability: NDArray[np.float32]
    second: NDArray[np.int64]
    second_probability: NDArray[np.float32]
    novelty: NDArray[np.float32]
    given_probability: NDArray[np.float32]
    outlier: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class Layout:
    """Which prototypes of a classifier make up which category.

    Parameters
    ----------
    category_of : Tensor of int64, shape (K,)
        Category of each prototype, or `n_categories` for none. Probabilities of prototypes of one category add up.
    is_new : Tensor of bool, shape (n_categories,)
        Whether each category is new; a category may have no prototype.
    """

    category_of: Tensor
    is_new: Tensor

    @classmethod
    def plain(cls, n_categories: int, n_known: int) -> Layout:
        """One prototype per category, known classes first."""
        return cls(torch.arange(n_categories), torch.arange(n_categories) >= n_known)

    def probabilities(self, p: Tensor) -> Tensor:
        """Probabilities (b, n_categories) of categories, from those of prototypes p (b, K)."""
        n = len(self.is_new)
        if torch.equal(self.category_of.cpu(), torch.arange(n)):
            return p
        return p.new_zeros(len(p), n + 1).index_add_(1, self.category_of.to(p.device), p)[:, :n]


@torch.no_grad()
def image_features(
    encoder: Encoder,
    source: TokenSource,
    images: NDArray[np.int64],
    *,
    device: torch.device,
    views: Views = EVALUATION,
    batch_size: int = BATCH,
) -> Tensor:
    """Class features (n, d), averaged over views, on the CPU.

    Parameters
    ----------
    encoder : Encoder
        Encoder on `device`.
    source : TokenSource
        Source of tokens.
    images : ndarray of int64, shape (n,)
        Numbers of usable images in the source.
    device : torch.device
        Device to compute on.
    views : tuple of int, default=(0,)
        Numbers of the views.
    batch_size : int, default=256
        Number of views per batch.

    Returns
    -------
    Tensor of shape (n, d)
        In the main process; of shape (0, d) in the others. Each process computes the images that it holds.
    """
    encoder.eval()
    shares = source.holdings.divided(images)
    mine, size = shares[distributed.rank()], max(batch_size // len(views), 1)
    batches = [mine[i : i + size] for i in range(0, len(mine), size)]
    found = source.evaluation_batches((images[batch] for batch in batches), views)
    rows = (view_mean(encoder.features(batch.tokens.to(device)), len(views)).float().cpu() for batch in found)
    return _collected(_joined(rows, len(mine)), shares)


def view_mean(features: Tensor, n_views: int) -> Tensor:
    """Mean (b, d) over the views of features (n_views * b, d), ordered by view."""
    return features if n_views == 1 else features.view(n_views, len(features) // n_views, -1).mean(dim=0)


@torch.no_grad()
def predict_features(
    network: Network,
    features: Tensor,
    *,
    labels: NDArray[np.integer],
    layout: Layout,
    device: torch.device,
    groups: NDArray[np.int64] | None = None,
) -> Predictions:
    """Predictions from features.

    Parameters
    ----------
    network : Network
        Network on `device`.
    features : Tensor of shape (n, d)
        Class features.
    labels : ndarray of int, shape (n,)
        Categories of labelled images, -1 for unlabelled.
    layout : Layout
        Categories of the prototypes.
    device : torch.device
        Device to compute on.
    groups : ndarray of int64, shape (n,), optional
        Groups whose images share a category, by the evidence of all of them; -1 for none.

    Returns
    -------
    Predictions
    """
    given = torch.as_tensor(labels.astype(np.int64))
    parts = [slice(i, i + PART) for i in range(0, len(features), PART)]
    evidence = None if groups is None else GroupEvidence(groups, given)
    if evidence is not None:
        for part in parts:
            evidence.add(layout.probabilities(network.category_probabilities(features[part].to(device))), part)
    rows = []
    for part in parts:
        own = features[part].to(device)
        p = layout.probabilities(network.category_probabilities(own))  # (b, n_categories)
        rows.append(_condense(network, own, p if evidence is None else evidence.share(p, part), given[part], layout))
    return _unpack(rows)


@torch.no_grad()
def predict_readable(
    network: Network,
    source: TokenSource,
    n_images: int,
    *,
    layout: Layout,
    device: torch.device,
    views: Views = EVALUATION,
    groups: NDArray[np.int64] | None = None,
    advance: Callable[[int], None] = quiet,
) -> tuple[NDArray[np.int64], Predictions]:
    """Predictions for all images of a source that can be read, in one pass.

    Parameters
    ----------
    network : Network
        Network on `device`.
    source : TokenSource
        Source of tokens.
    n_images : int
        Number of images in the source.
    layout : Layout
        Categories of the prototypes.
    device : torch.device
        Device to compute on.
    views : tuple of int, default=(0,)
        Numbers of the views whose features are averaged.
    groups : ndarray of int64, shape (n_images,), optional
        Groups whose images share a category, by the evidence of those that can be read; -1 for none.
    advance : callable, optional
        Called with the number of images of each finished batch.

    Returns
    -------
    ndarray of int64, shape (n,)
        Numbers of the images that could be read.
    Predictions
        Their predictions, in the same order.
    """
    network.eval()
    batches = np.array_split(np.arange(n_images), range(0, n_images, max(BATCH // len(views), 1))[1:])
    readable: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
    rows: list[Tensor] = []
    kept: list[Tensor] = []  # features, for groups, whose evidence is known at the end
    for batch, found in zip(batches, source.evaluation_batches(iter(batches), views), strict=True):
        if len(found.rows):
            features = view_mean(network.features(found.tokens.to(device)), len(views))  # (b, d)
            readable.append(batch[found.rows])
            if groups is None:
                p = layout.probabilities(network.category_probabilities(features))  # (b, n_categories)
                rows.append(_condense(network, features, p, torch.full((len(found.rows),), -1), layout))
            else:
                kept.append(features.cpu())
        advance(len(batch))
    images = np.concatenate(readable)
    if groups is None or not kept:
        return images, _unpack(rows)
    labels, own = np.full(len(images), -1), groups[images]
    features = torch.cat(kept)
    return images, predict_features(network, features, labels=labels, layout=layout, device=device, groups=own)


def _condense(network: Network, features: Tensor, p: Tensor, given: Tensor, layout: Layout) -> Tensor:
    """The columns of Predictions (b, 7), in its order, from features (b, d), probabilities (b, n_categories) and given labels (b,).

    The last column is -1 for no rule of outliers.
    """
    outlier = network.method.is_outlier(features)
    given = given.to(p.device)
    top = p.topk(min(2, p.shape[1]), dim=1)
    own = p.gather(1, given.clamp_min(0)[:, None])[:, 0] * (given >= 0)
    columns = [
        top.indices[:, 0],
        top.values[:, 0],
        top.indices[:, -1],
        top.values[:, -1],
        p[:, layout.is_new.to(p.device)].sum(dim=1),
    ]
    columns += [own, torch.full_like(own, -1) if outlier is None else outlier]
    return torch.stack([column.cpu().double() for column in columns], dim=1)  # some accelerators have no float64


def _joined(parts: Iterator[Tensor], n_rows: int) -> Tensor:
    """The `n_rows` of all parts, which are in memory once."""
    joined, end = torch.zeros(0, 0), 0
    for part in parts:
        if not end:
            joined = torch.empty(n_rows, part.shape[1])
        joined[end : end + len(part)] = part
        end += len(part)
    return joined


def _collected(own: Tensor, shares: list[NDArray[np.int64]]) -> Tensor:
    """Rows of all processes in the main process, where `shares` are their positions; no rows in the others."""
    if len(shares) == 1:
        return own
    dim = int(distributed.gather(torch.tensor([own.shape[1]])).max())  # a process may have no rows
    rows = torch.empty(sum(map(len, shares)) if distributed.main_process() else 0, dim)
    parts = distributed.collect(own.view(len(own), dim), [len(share) for share in shares])
    for rank, part in enumerate(parts):
        rows[torch.from_numpy(shares[rank])] = part
    return rows


def shared_predictions(predictions: Predictions | None, n_images: int) -> Predictions:
    """Predictions of the main process in every process; the others have none to give."""
    table = torch.zeros(n_images, 7, dtype=torch.float64)
    if predictions is not None:
        for column, field in enumerate(fields(Predictions)):
            values = getattr(predictions, field.name)
            table[:, column] = torch.full((n_images,), -1.0) if values is None else torch.from_numpy(values)
    return _unpack([distributed.broadcast(table)])


def _unpack(rows: list[Tensor]) -> Predictions:
    table = torch.cat(rows) if rows else torch.zeros(0, 7, dtype=torch.float64)
    columns = table.numpy().T
    return Predictions(
        best=columns[0].astype(np.int64),
        best_probability=columns[1].astype(np.float32),
        second=columns[2].astype(np.int64),
        second_probability=columns[3].astype(np.float32),
        novelty=columns[4].astype(np.float32),
        given_probability=columns[5].astype(np.float32),
        outlier=None if (columns[6] < 0).any() else columns[6] > 0,
    )
