"""Ready features as a token source: there is no backbone, and every view of an item is its feature."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from newkind import distributed
from newkind.backbone.tokens import EVALUATION, EVERY_ROW, Batches, EvaluationBatch, Seed, Tokens, Views
from newkind.data import Features, Skipped
from newkind.data.holdings import Holdings
from newkind.mapped import drop_pages

__all__ = ["ReadyFeatures"]


class ReadyFeatures:
    """Token source of features of any modality; see `TokenSource` for its methods.

    Parameters
    ----------
    features : Features of shape (N, d)
        Features that methods use as they are.
    """

    n_views = 0

    def __init__(self, features: Features) -> None:
        self.features = features
        self.usable: NDArray[np.bool_] = np.ones(len(features), dtype=bool)
        self.skipped: tuple[Skipped, ...] = ()
        self.holdings = Holdings.everywhere(len(features), distributed.world_size())

    def content_hash(self) -> bytes:
        """Digest of all features."""
        digest = hashlib.sha256(str(self.features.values.shape).encode())
        for start in range(0, len(self.features), 65536):
            digest.update(np.ascontiguousarray(self.features.values[start : start + 65536]).data)
            drop_pages(self.features.values)
        return digest.digest()

    def training_batches(
        self,
        batches: Batches,
        *,
        n_views: int,
        seed: Seed,  # noqa: ARG002 - nothing is random here
        rows: slice = EVERY_ROW,
    ) -> Iterator[Tokens]:
        """The features of each batch, `n_views` times; `cls` is the feature."""
        for batch in batches:
            yield self._tokens(np.tile(batch[rows], n_views))

    def evaluation_batches(self, batches: Batches, views: Views = EVALUATION) -> Iterator[EvaluationBatch]:
        """The features of each batch, once per view; `cls` is the feature."""
        for batch in batches:
            yield EvaluationBatch(np.arange(len(batch)), self._tokens(np.tile(batch, len(views))))
            drop_pages(self.features.values)

    def _tokens(self, items: NDArray[np.int64]) -> Tokens:
        """Features of items (B,) as Tokens with N = 0."""
        return Tokens.of_features(torch.from_numpy(np.ascontiguousarray(self.features.values[items], dtype=np.float32)))
