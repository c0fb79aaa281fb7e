"""Building the token cache: every image is decoded once, and its views go through the frozen trunk."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import torch
from filelock import Timeout
from PIL import Image
from torch import Tensor

from newkind import distributed
from newkind.atomic import file_lock, make_folder, write_errors
from newkind.backbone.allocator import keep_large_blocks
from newkind.backbone.cache_plan import CacheKey, CachePlan, about, fit, images_of
from newkind.backbone.decoded_views import views_or_skipped
from newkind.backbone.division import Division
from newkind.backbone.token_cache import StoredViews, TokenCache
from newkind.backbone.token_store import TokenStore
from newkind.backbone.tokens import Tokens
from newkind.backbone.vit import Trunk
from newkind.data import Collection, Images, Skipped
from newkind.data.holdings import Holdings
from newkind.data.prefetch import map_ahead, n_cpus
from newkind.data.views import numbered_view, resize_for_views
from newkind.errors import CacheError
from newkind.schema import parse_json

__all__ = ["build_cache"]

RESUME = "Then run the same command again. Finished images are kept."


def build_cache(
    collection: Collection,
    division: Division,
    trunk: Trunk,
    *,
    device: torch.device | str = "cpu",
    advance: Callable[[int], None],
) -> TokenCache:
    """Compute and store the tokens of this process's share, wait for the others, and open the cache.

    Each image is decoded once for all plans. A build that was interrupted at any moment can be repeated; the bytes of every
    record will be the same, and with the same number of processes those of all files.

    Parameters
    ----------
    collection : Collection
        Images.
    division : Division
        What to compute, with one plan for tokens, or one per view for features.
    trunk : Trunk
        Frozen part of the backbone, on `device`.
    device : torch.device or str, default="cpu"
        Device of the trunk.
    advance : callable
        Called in the main process with the number of images that were finished by all processes.

    Returns
    -------
    TokenCache

    Raises
    ------
    CacheError
        With code `disk-space` if the tokens do not fit on the disk, `cannot-write` if writing fails, `locked` if another
        job builds the same cache, or an error of `TokenStore`.
    """
    keep_large_blocks()
    images, plans, rank = images_of(collection), division.plans, division.disks.rank
    if not fit(plans):
        raise _no_space(plans)
    broken: dict[int, Skipped] = {}
    with distributed.joint_progress(advance) as count, ExitStack() as locks:
        if division.groups:
            for plan in plans:
                if plan.todo:
                    locks.enter_context(_exclusive(plan.folder, rank))
            parts = [_Part(plan, _store(plan, part=rank)) for plan in plans]
            _fill(images, parts, division.groups, lambda views: trunk(views.to(device)), broken, count)
    return _opened(images, division, broken)


def _store(plan: CachePlan, *, part: int = 0) -> TokenStore:
    """The store of a plan, with what all processes have written to it until now."""
    return TokenStore(plan.folder, plan.layout, about=about(plan.key, plan.place), part=part)


def _opened(images: Images, division: Division, broken: dict[int, Skipped]) -> TokenCache:
    """The finished cache: where every image is, and why others cannot be used; all processes have to ask."""
    digests = division.plans[0].digests
    stored = []
    for plan in division.plans:
        store = _store(plan)
        slots = np.array([-1 if (slot := store.slot_of(d)) is None else slot for d in digests], dtype=np.int64)
        stored.append(StoredViews(store, slots, plan.key.views))
    held = division.disks.gather_masks(np.all([part.slots >= 0 for part in stored], axis=0), same=True)  # (D, N)
    holdings = Holdings.of_disks(held, division.disks.of_process)
    reasons = {i: Skipped(images.names[i], "cannot be read") for i, digest in enumerate(digests) if not digest}
    mine = json.dumps({str(i): [skipped.reason, skipped.code] for i, skipped in broken.items()})
    for found in distributed.gather_bytes(mine.encode()):
        theirs = parse_json(found, dict[str, list[str]])
        reasons |= {int(i): Skipped(images.names[int(i)], reason, code) for i, (reason, code) in theirs.items()}
    skipped = tuple(
        reasons.get(i, Skipped(images.names[i], "a copy of a broken image"))
        for i in np.flatnonzero(~holdings.usable).tolist()
    )
    return TokenCache(stored, digests, skipped, holdings)


class _Part:
    """A store that is being filled: images that it lacks, and decoded views that wait for the end of their group."""

    def __init__(self, plan: CachePlan, store: TokenStore) -> None:
        self.plan, self.store = plan, store
        self.waiting: list[tuple[int, Tensor]] = []

    def lacks(self, image: int) -> bool:
        """Whether the views of an image are to be computed; another job may have written since the plan was made."""
        return self.store.slot_of(self.plan.digests[image]) is None

    def write(self, trunk: Callable[[Tensor], Tokens]) -> None:
        """Compute and write what is waiting."""
        if not self.waiting:
            return
        views = torch.cat([views for _, views in self.waiting])  # (G * V, 3, S, S)
        with write_errors(self.plan.folder, error=CacheError, fix=RESUME):
            self.store.append([self.plan.digests[i] for i, _ in self.waiting], trunk(views))
        self.waiting.clear()


def _fill(
    images: Images,
    parts: list[_Part],
    groups: Sequence[Sequence[int]],
    trunk: Callable[[Tensor], Tokens],
    broken: dict[int, Skipped],
    advance: Callable[[int], None],
) -> None:
    """Decode every image of the groups once, and write group by group; images that cannot be decoded go to `broken`."""

    def views_of(i: int) -> list[tuple[_Part, Tensor]] | Skipped:
        wanted = [part for part in parts if part.lacks(i)]
        if not wanted:
            return []
        return views_or_skipped(
            images,
            i,
            lambda image: list(
                zip(wanted, image_views(image, [p.plan.key for p in wanted], wanted[0].plan.digests[i]), strict=True)
            ),
            shorter_side=parts[0].plan.key.recipe.decoded,
        )

    in_order = [i for group in groups for i in group]
    decoded = map_ahead(views_of, in_order, n_threads=n_cpus(), ahead=2 * parts[0].plan.key.group)
    for group in groups:
        for i in group:
            found = next(decoded)
            if isinstance(found, Skipped):
                broken[i] = found
            else:
                for part, views in found:
                    part.waiting.append((i, views))
            advance(1)
        for part in parts:
            part.write(trunk)


def _no_space(plans: Sequence[CachePlan]) -> CacheError:
    """Error for plans that do not fit on the disk."""
    plan, needed = plans[0], round(sum(plan.bytes_todo * plan.share for plan in plans))
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
def _exclusive(folder: Path, part: int) -> Iterator[None]:
    """Hold the lock of a part of a cache folder, or raise at once if another process holds it."""
    with write_errors(folder, error=CacheError, fix=RESUME):
        make_folder(folder)
        lock = file_lock(folder / (f"lock-{part:05d}" if part else "lock"))
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
