"""Building the token cache: every image through the frozen trunk once, for one evaluation view and V random views."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock, Timeout
from PIL import Image
from torch import Tensor

from newkind.atomic import write_errors
from newkind.backbone.allocator import keep_large_blocks
from newkind.backbone.cache_plan import GROUP, CacheKey, CachePlan, about, images_of
from newkind.backbone.decoded_views import views_or_skipped
from newkind.backbone.token_cache import TokenCache
from newkind.backbone.token_store import TokenStore
from newkind.backbone.vit import Trunk
from newkind.data import Collection, Images, Skipped
from newkind.data.prefetch import map_ahead, n_cpus
from newkind.data.views import evaluation_view, random_view, resize_for_views, view_generator
from newkind.errors import CacheError

__all__ = ["build_cache"]


def build_cache(
    collection: Collection,
    plan: CachePlan,
    trunk: Trunk,
    *,
    device: torch.device | str = "cpu",
    advance: Callable[[int], None],
) -> TokenCache:
    """Compute and store the tokens that a plan lacks.

    A build that was interrupted at any moment can be repeated; the bytes on disk will be the same.

    Parameters
    ----------
    collection : Collection
        Images.
    plan : CachePlan
        What to compute.
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
    images = images_of(collection)
    if not plan.fits:
        raise _no_space(plan)
    broken = {i: Skipped(images.names[i], "cannot be read") for i, digest in enumerate(plan.digests) if not digest}
    with _exclusive(plan.folder) if plan.todo else nullcontext():
        store = TokenStore(plan.folder, plan.layout, about=about(plan.key, plan.place))
        # Another process may have written since the plan was made.
        todo = [i for i in plan.todo if store.slot_of(plan.digests[i]) is None]
        advance(len(plan.todo) - len(todo))
        resume = "Free some disk space and run the same command again. Finished images are kept."
        with write_errors(plan.folder, error=CacheError, fix=resume):
            for group in _groups(images, plan, todo, broken, advance):
                views = torch.cat([views for _, views in group])  # (G * (V + 1), 3, S, S)
                store.append([plan.digests[i] for i, _ in group], trunk(views.to(device)))
    slots = np.array([-1 if (s := store.slot_of(digest)) is None else s for digest in plan.digests], dtype=np.int64)
    skipped = tuple(
        broken.get(i, Skipped(images.names[i], "a copy of a broken image")) for i in np.flatnonzero(slots < 0).tolist()
    )
    return TokenCache(store, slots, skipped)


def _no_space(plan: CachePlan) -> CacheError:
    """Error for a plan that does not fit on the disk."""
    return CacheError(
        f"The tokens need {plan.bytes_todo / 1e9:.1f} GB, but only {plan.free_bytes / 1e9:.1f} GB are free in "
        f"{plan.folder.parent}.",
        fix="Free some disk space, set the environment variable NEWKIND_CACHE to a folder on another disk, reduce `views`, "
        "set `dtype` to int8, or set `online`.",
        code="disk-space",
        needed=plan.bytes_todo,
        free=plan.free_bytes,
    )


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Hold the lock of a cache folder, or raise at once if another process holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise CacheError(
            f"Another process is building {folder}.", fix="Wait until it has finished.", code="locked", folder=folder
        ) from None
    with lock:
        yield


def image_views(image: Image.Image, key: CacheKey, digest: bytes) -> Tensor:
    """Evaluation view and V random views of one image, shape (V + 1, 3, S, S)."""
    resized = resize_for_views(image, key.recipe)
    views = [evaluation_view(resized, key.recipe)]
    views += [random_view(resized, key.recipe, view_generator(key.seed, digest, v)) for v in range(1, key.n_views + 1)]
    return torch.stack(views)


def _groups(
    images: Images, plan: CachePlan, todo: list[int], broken: dict[int, Skipped], advance: Callable[[int], None]
) -> Iterator[list[tuple[int, Tensor]]]:
    """Decoded images in order, GROUP at a time; those that cannot be decoded are put into `broken`."""

    def views_of(i: int) -> Tensor | Skipped:
        return views_or_skipped(images, i, lambda image: image_views(image, plan.key, plan.digests[i]))

    group: list[tuple[int, Tensor]] = []
    decoded = map_ahead(views_of, todo, n_threads=n_cpus(), ahead=2 * GROUP)
    for i, views in zip(todo, decoded, strict=True):
        if isinstance(views, Skipped):
            broken[i] = views
            advance(1)
            continue
        group.append((i, views))
        if len(group) == GROUP:
            yield group
            advance(len(group))
            group = []
    if group:
        yield group
        advance(len(group))
