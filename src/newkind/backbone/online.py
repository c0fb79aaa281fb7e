"""Tokens computed while they are used: new random views in every epoch, as in the paper."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from newkind import distributed
from newkind.backbone.decoded_views import content_digest, log_skipped, opened_with_digest
from newkind.backbone.tokens import EVALUATION, EVERY_ROW, Batches, EvaluationBatch, Seed, Tokens, Views
from newkind.backbone.vit import Trunk
from newkind.data import Images, Skipped
from newkind.data.holdings import Holdings
from newkind.data.image_check import check_image
from newkind.data.prefetch import map_ahead, n_cpus
from newkind.data.views import ViewRecipe, numbered_view, random_view, resize_for_views
from newkind.progress import progress_bar

__all__ = ["OnlineTokens"]

R = TypeVar("R")
AHEAD = 64
"""Images that are decoded before the trunk asks for them."""


class OnlineTokens:
    """Token source that decodes images and runs the trunk in every pass; see `TokenSource` for its methods.

    Whether an image can be used is found when it is first decoded. `evaluation_batches` decodes each image once; `usable`,
    `skipped` and `content_hash` check those images that it has not decoded yet, with a progress bar.

    Parameters
    ----------
    images : Images
        Images to decode.
    trunk : Trunk
        Frozen part of the backbone, on `device`.
    recipe : ViewRecipe
        Recipe of the views.
    device : torch.device or str, default="cpu"
        Device of the trunk.
    seed : int, default=0
        Seed of numbered random views, which are the same as in a token cache of this seed.
    """

    n_views = None

    def __init__(
        self,
        images: Images,
        trunk: Trunk,
        recipe: ViewRecipe,
        *,
        device: torch.device | str = "cpu",
        seed: int = 0,
    ) -> None:
        self.images = images
        self.trunk = trunk
        self.recipe = recipe
        self.device = device
        self.seed = seed
        self.holdings = Holdings.everywhere(len(images), distributed.world_size())
        self._is_checked = np.zeros(len(images), dtype=bool)
        self._broken: dict[int, Skipped] = {}
        self._digests: dict[int, bytes] = {}

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Whether each image can be decoded, shape (N,)."""
        self._check_rest()
        usable = np.ones(len(self.images), dtype=bool)
        usable[list(self._broken)] = False
        return usable

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """Images that cannot be decoded, with the reasons."""
        self._check_rest()
        return tuple(self._broken[i] for i in sorted(self._broken))

    def content_hash(self) -> bytes:
        """Digest of the content of all usable images."""
        self._check_rest()
        digest = hashlib.sha256()
        for i in range(len(self.images)):
            if i not in self._broken:
                digest.update(self._digests[i] if i in self._digests else content_digest(self.images, i))
        return digest.digest()

    def training_batches(
        self, batches: Batches, *, n_views: int, seed: Seed, rows: slice = EVERY_ROW
    ) -> Iterator[Tokens]:
        """New random views of each image of a batch: Tokens of n_views * B views, view by view."""

        def views_of(step: int, position: int, index: int) -> Tensor:
            image = self.images.open_reduced(index, shorter_side=self.recipe.decoded)
            resized = resize_for_views(image, self.recipe)
            rng = np.random.default_rng((*seed, step, position))
            return torch.stack([random_view(resized, self.recipe, rng) for _ in range(n_views)])

        for views in _decode_batches(batches, views_of, rows):
            stacked = torch.stack(views, dim=1).flatten(0, 1)  # (n_views * B, 3, S, S)
            yield self.trunk(stacked.to(self.device))

    def evaluation_batches(self, batches: Batches, views: Views = EVALUATION) -> Iterator[EvaluationBatch]:
        """Numbered views of each image of a batch that can be decoded."""

        def checked_views(_: int, position: int, index: int) -> tuple[int, Tensor | None]:
            found = opened_with_digest(self.images, index, shorter_side=self.recipe.decoded)
            self._is_checked[index] = True
            if isinstance(found, Skipped):
                self._broken[index] = found
                return position, None
            image, self._digests[index] = found
            resized = resize_for_views(image, self.recipe)
            made = [numbered_view(resized, self.recipe, v, seed=self.seed, content=self._digests[index]) for v in views]
            return position, torch.stack(made)

        for decoded in _decode_batches(batches, checked_views, EVERY_ROW):
            rows = [position for position, made in decoded if made is not None]
            seen = [made for _, made in decoded if made is not None]
            size = self.recipe.image_size
            # (n_views * b, 3, S, S)
            stacked = torch.stack(seen, dim=1).flatten(0, 1) if seen else torch.empty(0, 3, size, size)
            yield EvaluationBatch(np.array(rows, dtype=np.int64), self.trunk(stacked.to(self.device)))

    def _check_rest(self) -> None:
        """Decode the images that were not decoded yet (JPEG files at an eighth of their size), to find the broken ones."""
        rest = np.flatnonzero(~self._is_checked).tolist()
        if not rest:
            return
        looks = map_ahead(lambda i: check_image(self.images, i), rest, n_threads=n_cpus(), ahead=256)
        with progress_bar("Checking images", len(rest)) as advance:
            for i, look in zip(rest, looks, strict=True):
                self._digests[i] = look.digest
                if look.error:
                    self._broken[i] = Skipped(self.images.names[i], look.error)
                advance(1)
        self._is_checked[rest] = True
        log_skipped(tuple(self._broken[i] for i in rest if i in self._broken))


def _decode_batches(batches: Batches, decode: Callable[[int, int, int], R], rows: slice) -> Iterator[list[R]]:
    """Results of `decode(number of the batch, position in it, image number)` for the `rows` of each batch, from threads."""
    sizes: list[int] = []

    def items() -> Iterator[tuple[int, int, int]]:
        for step, batch in enumerate(batches):
            wanted = list(enumerate(batch.tolist()))[rows]
            sizes.append(len(wanted))
            yield from ((step, position, index) for position, index in wanted)

    group: list[R] = []
    step = 0
    for result in map_ahead(lambda item: decode(*item), items(), n_threads=n_cpus(), ahead=AHEAD):
        group.append(result)
        if len(group) == sizes[step]:
            yield group
            group, step = [], step + 1
