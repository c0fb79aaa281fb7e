"""Building the token cache: every image is decoded once, and its views go through the frozen trunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock, Timeout
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from newkind.atomic import make_folder, write_errors
from newkind.backbone.allocator import keep_large_blocks
from newkind.backbone.cache_plan import CacheKey, CachePlan, about, fit, images_of
from newkind.backbone.decoded_views import views_or_skipped
from newkind.backbone.token_cache import StoredViews, TokenCache, usable_images
from newkind.backbone.token_store import TokenStore
from newkind.backbone.tokens import Tokens
from newkind.backbone.vit import Trunk
from newkind.data import Collection, Images, Skipped
from newkind.data.prefetch import map_ahead, n_cpus
from newkind.data.views import numbered_view, resize_for_views
from newkind.errors import CacheError

__all__ = ["build_cache"]

RESUME = "Then run the same command again. Finished images are kept."


def build_cache(
    collection: Collection,
    plans: Sequence[CachePlan],
    trunk: Trunk,
    *,
    device: torch.device | str = "cpu",
    advance: Callable[[int], None],
) -> TokenCache:
    """Compute and store the tokens that plans lack; each image is decoded once for all of them.

    A build that was interrupted at any moment can be repeated; the bytes on disk will be the same.

    Parameters
    ----------
    collection : Collection
        Images.
    plans : sequence of CachePlan
        What to compute: one plan for tokens, or one per view for features. All have the same digests.
    trunk : Trunk
        Frozen part of the backbone, on `device`.
    device : torch.device or str, default="cpu"
        Device of the trunk.
    advance : callable
        Called with the number of images that were finished.

    Returns
    -------
    TokenCache

    Raises
    ------
    CacheError
        With code `disk-space` if the tokens do not fit on the disk, `cannot-write` if writing fails, `locked` if another
        process builds the same cache, or an error of `TokenStore`.
    """
    keep_large_blocks()
    images, digests = images_of(collection), plans[0].digests
    if not fit(plans):
        raise _no_space(plans)
    broken = {i: Skipped(images.names[i], "cannot be read") for i, digest in enumerate(digests) if not digest}
    with ExitStack() as locks:
        for plan in plans:
            if plan.todo:
                locks.enter_context(_exclusive(plan.folder))
        parts = [_Part(plan, TokenStore(plan.folder, plan.layout, about=about(plan.key, plan.place))) for plan in plans]
        _fill(images, parts, lambda views: trunk(views.to(device)), broken, advance)
    stored = [StoredViews(part.store, part.slots(), part.plan.key.views) for part in parts]
    skipped = tuple(
        broken.get(i, Skipped(images.names[i], "a copy of a broken image"))
        for i in np.flatnonzero(~usable_images(stored)).tolist()
    )
    return TokenCache(stored, skipped)


class _Part:
    """A store that is being filled: images that it lacks, and decoded views that wait for a complete group."""

    def __init__(self, plan: CachePlan, store: TokenStore) -> None:
        self.plan, self.store = plan, store
        # Another process may have written since the plan was made.
        self.todo = {i for i in plan.todo if store.slot_of(plan.digests[i]) is None}
        self.waiting: list[tuple[int, Tensor]] = []

    def add(self, image: int, views: Tensor) -> bool:
        """Keep the views (V, 3, S, S) of an image; whether the group is complete."""
        self.waiting.append((image, views))
        return len(self.waiting) == self.plan.key.group

    def write(self, trunk: Callable[[Tensor], Tokens]) -> None:
        """Compute and write what is waiting."""
        if not self.waiting:
            return
        views = torch.cat([views for _, views in self.waiting])  # (G * V, 3, S, S)
        with write_errors(self.plan.folder, error=CacheError, fix=RESUME):
            self.store.append([self.plan.digests[i] for i, _ in self.waiting], trunk(views))
        self.waiting.clear()

    def slots(self) -> NDArray[np.int64]:
        """Record of each image (N,), -1 if it has none."""
        found = map(self.store.slot_of, self.plan.digests)
        return np.array([-1 if slot is None else slot for slot in found], dtype=np.int64)


def _fill(
    images: Images,
    parts: list[_Part],
    trunk: Callable[[Tensor], Tokens],
    broken: dict[int, Skipped],
    advance: Callable[[int], None],
) -> None:
    """Decode every missing image once, in order, and write complete groups; images that cannot be decoded go to `broken`.

    Each store has groups of its own, so that its bytes do not depend on which other views are computed at the same time.
    """

    def views_of(i: int) -> list[tuple[_Part, Tensor]] | Skipped:
        wanted = [part for part in parts if i in part.todo]
        return views_or_skipped(
            images,
            i,
            lambda image: list(
                zip(wanted, image_views(image, [p.plan.key for p in wanted], wanted[0].plan.digests[i]), strict=True)
            ),
            shorter_side=parts[0].plan.key.recipe.decoded,
        )

    todo = sorted(set().union(*(part.todo for part in parts)))
    advance(len(set().union(*(part.plan.todo for part in parts))) - len(todo))
    ahead = 2 * max(part.plan.key.group for part in parts)
    for i, found in zip(todo, map_ahead(views_of, todo, n_threads=n_cpus(), ahead=ahead), strict=True):
        if isinstance(found, Skipped):
            broken[i] = found
        else:
            for part, views in found:
                if part.add(i, views):
                    part.write(trunk)
        advance(1)
    for part in parts:
        part.write(trunk)


def _no_space(plans: Sequence[CachePlan]) -> CacheError:
    """Error for plans that do not fit on the disk."""
    plan, needed = plans[0], sum(plan.bytes_todo for plan in plans)
    return CacheError(
        f"The tokens need {needed / 1e9:.1f} GB, but only {plan.free_bytes / 1e9:.1f} GB are free in "
        f"{plan.folder.parent}.",
        fix="Free some disk space, set the environment variable NEWKIND_CACHE to a folder on another disk, reduce `views`, "
        "set `dtype` to int8, or set `online`.",
        code="disk-space",
        needed=needed,
        free=plan.free_bytes,
    )


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Hold the lock of a cache folder, or raise at once if another process holds it."""
    lock = FileLock(folder / "lock")
    with write_errors(folder, error=CacheError, fix=RESUME):
        make_folder(folder)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise CacheError(
                f"Another process is building {folder}.",
                fix="Wait until it has finished.",
                code="locked",
                folder=folder,
            ) from None
    with lock:
        yield


def image_views(image: Image.Image, keys: Sequence[CacheKey], digest: bytes) -> list[Tensor]:
    """Views (V, 3, S, S) of one image for the record of each key. All keys have the same recipe."""
    resized = resize_for_views(image, keys[0].recipe)
    return [
        torch.stack([numbered_view(resized, key.recipe, v, seed=key.seed, content=digest) for v in key.views])
        for key in keys
    ]
