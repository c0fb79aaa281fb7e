"""The images that a method is trained on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from newkind.backbone.tokens import EVALUATION, TokenSource, Views
from newkind.training.inference import image_features
from newkind.training.network import Encoder

__all__ = ["ImageFeatures", "TrainingData"]


@dataclass(frozen=True)
class TrainingData:
    """Usable images of a collection, with the source of their tokens.

    Parameters
    ----------
    source : TokenSource
        Source of tokens.
    images : ndarray of int64, shape (n,)
        Numbers of the usable images in the source.
    labels : ndarray of int, shape (n,)
        Class indices, -1 for unlabelled.
    n_known : int
        Number of known classes.
    truth : ndarray of int, shape (n,), optional
        True classes, -1 where unknown; only for an oracle.
    views : tuple of int, default=(0,)
        Numbers of the views whose features are averaged.
    groups : ndarray of int64, shape (n,), optional
        Groups whose images share a category, -1 for none.
    """

    source: TokenSource
    images: NDArray[np.int64]
    labels: NDArray[np.integer]
    n_known: int
    truth: NDArray[np.integer] | None = None
    views: Views = EVALUATION
    groups: NDArray[np.int64] | None = None

    @property
    def is_unlabelled(self) -> NDArray[np.bool_]:
        """(n,)"""
        return self.labels < 0


class ImageFeatures:
    """All images as seen through a network in its current state; implements `methods.method.AllImages`.

    Features are computed when they are first asked for, by all processes together: every process has to ask.

    Parameters
    ----------
    encoder : Encoder
        Network that computes features.
    data : TrainingData
        The images.
    device : torch.device
        Device of the encoder.
    seed : int
        Seed of random choices.
    """

    def __init__(self, encoder: Encoder, data: TrainingData, *, device: torch.device, seed: int) -> None:
        self.labels = torch.as_tensor(data.labels.astype(np.int64))
        self.n_known = data.n_known
        self.seed = seed
        self._encoder, self._data, self._device = encoder, data, device
        self._features: Tensor | None = None

    def features(self) -> Tensor:
        """Features (n, d) on the CPU, averaged over the views of the data; in the main process only, (0, d) in others."""
        if self._features is None:
            data = self._data
            self._features = image_features(
                self._encoder, data.source, data.images, device=self._device, views=data.views
            )
        return self._features
