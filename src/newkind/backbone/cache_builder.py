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
from newkind.backbone.decoded_views import opened_with_digest
from newkind.backbone.division import Division
from newkind.backbone.token_cache import StoredViews, TokenCache
from newkind.backbone.token_store import TokenStore
from newkind.backbone.tokens import Tokens
from newkind.backbone.vit import Trunk
from newkind.data import Collection, Images, Skipped, printable
from newkind.data.holdings import Holdings
from newkind.data.prefetch import map_ahead, n_cpus
from newkind.data.views import numbered_view, resize_for_views
from newkind.errors import CacheError, DataError
from newkind.schema import parse_json

__all__ = ["build_cache"]

FIX = (
    "The environment variable NEWKIND_CACHE sets the folder of the cache. Then run the same command again. Finished "
    "images are kept."
)


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
    DataError
        With code `changed-image` if an image is not the one that the plans were made for.
    """
    keep_large_blocks()
    images, broken = images_of(collection), dict[int, Skipped]()
    if not fit(division.plans):
        raise _no_space(division.plans)
    with distributed.joint_progress(advance) as count, ExitStack() as locks:
        problem = _locked(division, locks) if division.n_images else None
        parts = [_Part(plan, _store(plan, part=division.disks.rank)) for plan in division.plans]
        if problem is not None:
            _only_broken(images, parts, division.groups, broken, problem)
        elif division.groups:
            _fill(images, parts, division.groups, lambda views: trunk(views.to(device)), broken, count)
    return _opened(images, division, broken)


def _locked(division: Division, locks: ExitStack) -> CacheError | None:
    """Hold the locks of what this process will write; or why some process cannot write, the same error in all of them."""
    own: list[str] = []
    try:
        for plan in division.plans if division.groups else ():
            if plan.todo:
                locks.enter_context(_exclusive(plan.folder, division.disks.rank))
    except CacheError as error:
        if error.code != "cannot-write":
            raise
        own = [error.what, error.fix, str(error.facts["path"])]
    found = (parse_json(each, list[str]) for each in distributed.gather_bytes(json.dumps(own).encode()))
    what, fix, folder = next(filter(None, found), ["", "", ""])
    return CacheError(what, fix=fix, code="cannot-write", path=Path(folder)) if what else None


def _only_broken(
    images: Images,
    parts: list[_Part],
    groups: Sequence[Sequence[int]],
    broken: dict[int, Skipped],
    problem: CacheError,
) -> None:
    """Raise `problem` in all processes, unless all that is missing are images that cannot be decoded; these go to `broken`."""
    has_readable = False
    for i in (i for group in groups for i in group if any(part.lacks(i) for part in parts)):
        found = opened_with_digest(images, i, shorter_side=parts[0].plan.key.recipe.decoded)
        if not isinstance(found, Skipped):
            has_readable = True
            break
        broken[i] = found
    if distributed.gather(torch.tensor([has_readable])).any():
        raise problem


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
        with write_errors(self.plan.folder, error=CacheError, fix=FIX):
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
        found = opened_with_digest(images, i, shorter_side=wanted[0].plan.key.recipe.decoded)
        if isinstance(found, Skipped):
            return found
        image, digest = found
        if digest != wanted[0].plan.digests[i]:
            raise _changed(images.names[i])
        return list(zip(wanted, image_views(image, [part.plan.key for part in wanted], digest), strict=True))

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


def _changed(name: str) -> DataError:
    """Error for an image that is not the one whose digest was computed: its features would be stored as those of another."""
    return DataError(
        f"{printable(name)} has another content than when it was first read.",
        fix="Run the same command again. On several machines, every file has to be the same on all of them.",
        code="changed-image",
        name=name,
    )


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
    with write_errors(folder, error=CacheError, fix=FIX):
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
