"""The token cache as a token source: cached tokens or features of a collection's images, read one step ahead."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from newkind.backbone.token_store import TokenStore
from newkind.backbone.tokens import EVALUATION, EVERY_ROW, Batches, EvaluationBatch, Seed, Tokens, Views
from newkind.data import Skipped
from newkind.data.holdings import Holdings
from newkind.data.prefetch import prefetch
from newkind.errors import CacheError

__all__ = ["StoredViews", "TokenCache"]


class StoredViews(NamedTuple):
    """A store with the same views of every image.

    Parameters
    ----------
    store : TokenStore
        Records of these views.
    slots : ndarray of int64, shape (N,)
        Record of each image; -1 for an image that cannot be decoded, or is on the disk of another machine.
    views : tuple of int
        Numbers of the views of a record, in order.
    """

    store: TokenStore
    slots: NDArray[np.int64]
    views: Views


class _Wanted(NamedTuple):
    """Images (B,) and the number of the view (B,) of each that is read."""

    images: NDArray[np.int64]
    views: NDArray[np.int64]


class TokenCache:
    """Token source that reads cached tokens; see `TokenSource` for its methods.

    Parameters
    ----------
    parts : sequence of StoredViews
        One store with tokens of several views, or one store per view with features.
    digests : sequence of bytes, length N
        Digest of the content of each image.
    skipped : tuple of Skipped
        Images that cannot be decoded, with the reasons.
    holdings : Holdings
        Which process reads which images.

    Attributes
    ----------
    n_views : int
        Number of random views per image to draw from. A study may set it to less than there are.
    """

    def __init__(
        self,
        parts: Sequence[StoredViews],
        digests: Sequence[bytes],
        skipped: tuple[Skipped, ...],
        holdings: Holdings,
    ) -> None:
        self.parts = tuple(parts)
        self.skipped = skipped
        self.holdings = holdings
        self._digests = digests
        self.random = np.array(sorted(v for part in parts for v in part.views if v > 0), dtype=np.int64)
        self.n_views = len(self.random)
        self._places = {view: (part, i) for part in parts for i, view in enumerate(part.views)}

    @property
    def store(self) -> TokenStore:
        """The first store."""
        return self.parts[0].store

    @property
    def slots(self) -> NDArray[np.int64]:
        """Record of each image in the first store, shape (N,)."""
        return self.parts[0].slots

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Whether each image has tokens, on this disk or another, shape (N,)."""
        return self.holdings.usable

    def content_hash(self) -> bytes:
        """Digest of the content of the usable images."""
        return hashlib.sha256(b"".join(self._digests[i] for i in np.flatnonzero(self.usable).tolist())).digest()

    def stored(self, views: Views) -> Views:
        """Those of `views` that are in the cache: a disk without space has fewer random views."""
        return tuple(view for view in views if view in self._places)

    def training_batches(
        self, batches: Batches, *, n_views: int, seed: Seed, rows: slice = EVERY_ROW
    ) -> Iterator[Tokens]:
        """Different random views of each image of a batch: Tokens of n_views * B views, view by view."""

        def drawn() -> Iterator[_Wanted]:
            for step, batch in enumerate(batches):
                rng = np.random.default_rng((*seed, step))
                order = rng.random((len(batch), self.n_views)).argsort(axis=1)  # (B, V): one permutation per row
                chosen = self.random[order[:, np.arange(n_views) % self.n_views]]  # (B, n_views)
                yield _Wanted(np.tile(batch[rows], n_views), chosen[rows].T.reshape(-1))

        if not self.n_views:
            raise CacheError("A training needs random views.", fix="Set `views` to at least 2.", code="out-of-range")
        return self._read_ahead(drawn())

    def evaluation_batches(self, batches: Batches, views: Views = EVALUATION) -> Iterator[EvaluationBatch]:
        """Numbered views of each image of a batch that has tokens."""
        rows: deque[NDArray[np.int64]] = deque()  # of the batches that are read ahead
        usable = self.usable

        def wanted() -> Iterator[_Wanted]:
            for batch in batches:
                rows.append(np.flatnonzero(usable[batch]))
                yield _Wanted(np.tile(batch[rows[-1]], len(views)), np.repeat(views, len(rows[-1])))

        for tokens in self._read_ahead(wanted()):
            yield EvaluationBatch(rows.popleft(), tokens)

    def close(self) -> None:
        """Close all files; they are opened again when needed."""
        for part in self.parts:
            part.store.close()

    def _read_ahead(self, wanted: Iterator[_Wanted]) -> Iterator[Tokens]:
        """Read in a thread, one step ahead, and convert to fp32 in the caller's thread.

        A second team of OpenMP threads for the conversion would take cores from the computation (CUB, ViT-S/14: 7.4 s per
        epoch instead of 5.5 s).
        """
        for packed in prefetch(self._read(item) for item in wanted):
            yield self.store.layout.unpack(packed)

    def _read(self, wanted: _Wanted) -> NDArray[np.void]:
        """Stored views (B,) as they are on disk."""
        places = [self._places[int(view)] for view in wanted.views]
        index = np.array([i for _, i in places], dtype=np.int64)
        if len(self.parts) == 1:
            return self.store.read_packed(self.slots[wanted.images], index)
        packed = np.empty(len(places), dtype=self.store.layout.view_dtype())
        for part in self.parts:
            own = np.array([place[0] is part for place in places], dtype=bool)
            packed[own] = part.store.read_packed(part.slots[wanted.images[own]], index[own])
        return packed
