"""Tokens between the frozen trunk and the tuned blocks, and the interface of everything that provides them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from newkind.data import Skipped
from newkind.data.holdings import Holdings

__all__ = [
    "EVALUATION",
    "EVERY_ROW",
    "Batches",
    "EvaluationBatch",
    "Seed",
    "TokenSource",
    "Tokens",
    "Views",
    "join_tokens",
]

EVERY_ROW = slice(None)
Views: TypeAlias = tuple[int, ...]
"""Numbers of views: 0 is the evaluation view, 1 and above are random views."""
EVALUATION: Views = (0,)
Batches: TypeAlias = Iterator[NDArray[np.int64]]
"""Image numbers (B,) of each batch."""
Seed: TypeAlias = tuple[int, ...]
"""Seed of a NumPy generator."""


@dataclass(frozen=True)
class Tokens:
    """Tokens that enter the first tuned block, for B views; or features, if nothing in the backbone is trained.

    Parameters
    ----------
    xhat : Tensor of shape (B, N, d)
        LayerNorm of the tokens without its affine part; the class token is the first. N = 0 for features.
    cls : Tensor of shape (B, d)
        Class token before the LayerNorm, or the feature.
    moments : Tensor of shape (B, N, 2), optional
        Mean and standard deviation of each token before the LayerNorm. Only needed if more than one block is tuned.
    sizes : Tensor of shape (B, N), optional
        Number of tokens that each token is the mean of. Default: one.
    """

    xhat: Tensor
    cls: Tensor
    moments: Tensor | None = None
    sizes: Tensor | None = None

    @classmethod
    def of_features(cls, features: Tensor) -> Tokens:
        """Features (B, d) as tokens with N = 0."""
        return cls(features.new_empty(features.shape[0], 0, features.shape[1]), features)

    def __len__(self) -> int:
        return len(self.cls)

    def raw(self) -> Tensor:
        """Tokens before the LayerNorm, computed from `xhat` and `moments`.

        Returns
        -------
        Tensor of shape (B, N, d)
        """
        if self.moments is None:
            raise ValueError("these tokens have no moments")
        return self.xhat * self.moments[..., 1:] + self.moments[..., :1]

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> Tokens:
        """Copy to a device.

        Parameters
        ----------
        device : torch.device or str
            Target device.
        non_blocking : bool, default=False
            As in `torch.Tensor.to`.

        Returns
        -------
        Tokens
        """
        moved = (
            t if t is None else t.to(device, non_blocking=non_blocking)
            for t in (self.xhat, self.cls, self.moments, self.sizes)
        )
        return Tokens(*moved)  # type: ignore[arg-type]


def join_tokens(parts: list[Tokens]) -> Tokens:
    """Concatenate tokens along the batch.

    Parameters
    ----------
    parts : list of Tokens
        At least one.

    Returns
    -------
    Tokens
    """
    if len(parts) == 1:
        return parts[0]
    moments = [part.moments for part in parts if part.moments is not None]
    sizes = [part.sizes for part in parts if part.sizes is not None]
    return Tokens(
        torch.cat([part.xhat for part in parts]),
        torch.cat([part.cls for part in parts]),
        torch.cat(moments) if moments else None,
        torch.cat(sizes) if sizes else None,
    )


class EvaluationBatch(NamedTuple):
    """Numbered views of those images of a batch that can be read.

    Parameters
    ----------
    rows : ndarray of int64, shape (b,)
        Positions of these images in the batch, ascending. All positions if every image can be read.
    tokens : Tokens of n_views * b views
        Tokens in the order of `rows`: all images' first views, then all images' second views, and so on.
    """

    rows: NDArray[np.int64]
    tokens: Tokens


class TokenSource(Protocol):
    """Batches of tokens: from the token cache, computed online, or ready features. Methods do not know which."""

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Whether each image can be used, shape (N,)."""
        ...

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """Images that cannot be used, with the reasons."""
        ...

    @property
    def holdings(self) -> Holdings:
        """Which process can read which images."""
        ...

    @property
    def n_views(self) -> int | None:
        """Number of different random views per image: None if unlimited, 0 for ready features."""
        ...

    def content_hash(self) -> bytes:
        """Digest of the content of all images, the same for every source of the same usable images."""
        ...

    def training_batches(
        self, batches: Batches, *, n_views: int, seed: Seed, rows: slice = EVERY_ROW
    ) -> Iterator[Tokens]:
        """Random views of each image of a batch.

        Parameters
        ----------
        batches : iterator of ndarray of int64, shape (B,)
            Image numbers of each batch. All images must be usable, and held by this process in the `rows` that it wants.
        n_views : int
            Number of views per image.
        seed : tuple of int
            Seed of the random choice.
        rows : slice, default=slice(None)
            Rows of each batch that are wanted. The views drawn for a row do not depend on `rows`, so several processes
            with a part of the batch each see the same views as one process with the whole batch.

        Yields
        ------
        Tokens of n_views * B views
            All images' first views, then all images' second views, and so on.
        """
        ...

    def evaluation_batches(self, batches: Batches, views: Views = EVALUATION) -> Iterator[EvaluationBatch]:
        """Numbered views of each image of a batch, without the images that cannot be read.

        Parameters
        ----------
        batches : iterator of ndarray of int64, shape (B,)
            Image numbers of each batch, held by this process. They need not be usable; nothing is decoded twice.
        views : tuple of int, default=(0,)
            Numbers of the views. Ready features have only one view, which they give for every number.

        Yields
        ------
        EvaluationBatch
            One per batch, without rows if no image of the batch can be read.
        """
        ...
