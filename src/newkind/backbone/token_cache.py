"""The token cache as a token source: cached tokens of a collection's images, read one step ahead."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from newkind.backbone.token_store import TokenStore
from newkind.backbone.tokens import EVERY_ROW, Batches, EvaluationBatch, Seed, Tokens
from newkind.data import Skipped
from newkind.data.prefetch import prefetch

__all__ = ["TokenCache"]


class _Wanted(NamedTuple):
    """Records (B,) and the view (B,) of each that is read."""

    slots: NDArray[np.int64]
    views: NDArray[np.int64]


class TokenCache:
    """Token source that reads cached tokens; see `TokenSource` for its methods.

    Parameters
    ----------
    store : TokenStore
        Records of one evaluation view and V random views per image.
    slots : ndarray of int64, shape (N,)
        Record of each image; -1 for an image that cannot be decoded.
    skipped : tuple of Skipped
        Images that cannot be decoded, with the reasons.

    Attributes
    ----------
    n_views : int
        Number of random views per image to draw from. A study may set it to less than the store has.
    """

    def __init__(self, store: TokenStore, slots: NDArray[np.int64], skipped: tuple[Skipped, ...]) -> None:
        self.store = store
        self.n_views = store.layout.n_views
        self.slots = slots
        self.skipped = skipped

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Whether each image has tokens, shape (N,)."""
        return self.slots >= 0

    def content_hash(self) -> bytes:
        """Digest of the content of these images and of everything that their tokens depend on."""
        meta = (self.store.folder / "meta.json").read_bytes()
        return hashlib.sha256(meta + self.store.digests(self.slots)).digest()

    def training_batches(
        self, batches: Batches, *, n_views: int, seed: Seed, rows: slice = EVERY_ROW
    ) -> Iterator[Tokens]:
        """Different random views of each image of a batch: Tokens of n_views * B views, view by view."""

        def drawn() -> Iterator[_Wanted]:
            for step, batch in enumerate(batches):
                rng = np.random.default_rng((*seed, step))
                order = rng.random((len(batch), self.n_views)).argsort(axis=1)  # (B, V): one permutation per row
                chosen = 1 + order[:, np.arange(n_views) % self.n_views]  # (B, n_views)
                yield _Wanted(np.tile(self.slots[batch[rows]], n_views), chosen[rows].T.reshape(-1))

        return self._read_ahead(drawn())

    def evaluation_batches(self, batches: Batches) -> Iterator[EvaluationBatch]:
        """Evaluation view of each image of a batch that has tokens."""
        rows: deque[NDArray[np.int64]] = deque()  # of the batches that are read ahead

        def wanted() -> Iterator[_Wanted]:
            for batch in batches:
                slots = self.slots[batch]
                rows.append(np.flatnonzero(slots >= 0))
                yield _Wanted(slots[slots >= 0], np.zeros(len(rows[-1]), dtype=np.int64))

        for tokens in self._read_ahead(wanted()):
            yield EvaluationBatch(rows.popleft(), tokens)

    def _read_ahead(self, wanted: Iterator[_Wanted]) -> Iterator[Tokens]:
        """Read in a thread, one step ahead, and convert to fp32 in the caller's thread.

        A second team of OpenMP threads for the conversion would take cores from the computation (CUB, ViT-S/14: 7.4 s per
        epoch instead of 5.5 s).
        """
        for packed in prefetch(self.store.read_packed(*item) for item in wanted):
            yield self.store.layout.unpack(packed)
