"""Fresh views every epoch, as the paper trains: decoded in threads, through the frozen trunk without gradient."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from newkind.backbone.tokens import EVERY_ROW, Tokens
from newkind.backbone.vit import Trunk
from newkind.data.catalog import Images, Skipped
from newkind.data.inspection import look_at
from newkind.data.prefetch import map_ahead, n_cpus
from newkind.data.views import ViewRecipe, evaluation_view, random_view, resize_for_views

__all__ = ["OnlineTokens"]


class OnlineTokens:
    """The same source of batches as a TokenCache, computed on the fly. Every image is decoded once before, to find
    those that cannot be."""

    def __init__(self, images: Images, trunk: Trunk, recipe: ViewRecipe, *, device: torch.device | str = "cpu") -> None:
        self.images = images
        self.trunk = trunk
        self.recipe = recipe
        self.device = device
        looks = map_ahead(lambda i: look_at(images, i), range(len(images)), n_threads=n_cpus(), ahead=256)
        errors: dict[int, str] = {}
        digest = hashlib.sha256()
        for i, look in enumerate(looks):
            digest.update(look.digest)
            if look.error:
                errors[i] = look.error
        self._content_hash = digest.digest()
        self.usable: NDArray[np.bool_] = np.ones(len(images), dtype=bool)
        self.usable[list(errors)] = False
        self.skipped = tuple(Skipped(images.names[i], error) for i, error in errors.items())

    def content_hash(self) -> bytes:
        """Of the images that can be used."""
        return self._content_hash

    def training_batches(
        self,
        batches: Iterator[NDArray[np.int64]],
        *,
        n_views: int,
        seed: tuple[int, ...],
        rows: slice = EVERY_ROW,
    ) -> Iterator[Tokens]:
        """For each batch of image numbers (B,), `n_views` fresh views of each: Tokens of (n_views * B), view by view."""

        def views_of(item: tuple[int, int, int]) -> Tensor:
            step, position, index = item
            resized = resize_for_views(self.images.open(index), self.recipe)
            rng = np.random.default_rng((*seed, step, position))
            return torch.stack([random_view(resized, self.recipe, rng) for _ in range(n_views)])

        yield from self._through_trunk(batches, views_of, rows)

    def evaluation_batches(self, batches: Iterator[NDArray[np.int64]]) -> Iterator[Tokens]:
        """The evaluation view of each image of a batch: Tokens of (B)."""

        def view_of(item: tuple[int, int, int]) -> Tensor:
            return evaluation_view(resize_for_views(self.images.open(item[2]), self.recipe), self.recipe)[None]

        yield from self._through_trunk(batches, view_of, EVERY_ROW)

    def _through_trunk(
        self, batches: Iterator[NDArray[np.int64]], views_of: Callable[[tuple[int, int, int]], Tensor], rows: slice
    ) -> Iterator[Tokens]:
        """`views_of` gets (step, position in the batch, image number) in a decoding thread."""
        sizes: list[int] = []

        def items() -> Iterator[tuple[int, int, int]]:
            for step, batch in enumerate(batches):
                wanted = list(enumerate(batch))[rows]
                sizes.append(len(wanted))
                yield from ((step, position, int(index)) for position, index in wanted)

        decoded = map_ahead(views_of, items(), n_threads=n_cpus(), ahead=64)
        group: list[Tensor] = []
        step = 0
        for views in decoded:
            group.append(views)
            if len(group) == sizes[step]:
                stacked = torch.stack(group, dim=1).flatten(0, 1)  # (n_views * B, 3, S, S)
                yield self.trunk(stacked.to(self.device))
                group, step = [], step + 1
