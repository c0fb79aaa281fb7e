"""The token cache: every image through the frozen trunk once, for one evaluation view and V random views.

A cache is a folder named after the data, with a key over everything that its tokens depend on: the backbone's weights,
where it is cut, the view recipe, the seed, the number of views, and how tokens are stored. Inside it a record is found by
its image's content.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from filelock import FileLock, Timeout
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from newkind.backbone.allocator import keep_large_blocks
from newkind.backbone.decoded_views import content_digest, views_or_skipped
from newkind.backbone.token_store import RecordLayout, TokenStore
from newkind.backbone.tokens import EVERY_ROW, EvaluationBatch, Tokens
from newkind.backbone.vit import Trunk
from newkind.data.catalog import Collection, Features, FileImages, Images, Skipped
from newkind.data.names import printable
from newkind.data.prefetch import map_ahead, n_cpus, prefetch
from newkind.data.views import ViewRecipe, evaluation_view, random_view, resize_for_views, view_generator
from newkind.errors import CacheError, DataError
from newkind.paths import cache_dir

__all__ = ["CacheKey", "CachePlan", "TokenCache", "build_cache", "image_views", "plan_cache", "seconds_per_view"]

GROUP = 8
"""Images that go through the trunk and onto the disk together. Results can depend on a batch's size in the last bit, so
groups are always the same, whether or not a build was interrupted."""
SPARE_BYTES = 2**30
"""Of free disk that a cache leaves to others."""


@dataclass(frozen=True, kw_only=True)
class CacheKey:
    """Everything that cached tokens depend on, apart from the images."""

    backbone: str
    weights_sha256: str
    n_tuned: int
    recipe: ViewRecipe
    n_views: int
    seed: int
    dtype: str = "float16"

    def folder(self, place: str, *, root: Path | None = None) -> Path:
        """Where the cache of the data at `place` lives. The folder's name starts with the data's, for people."""
        digest = hashlib.sha256(json.dumps([asdict(self), place], sort_keys=True).encode()).hexdigest()[:12]
        readable = "".join(c if c.isalnum() else "-" for c in Path(place).name or "data")[:40]
        return (root or cache_dir("tokens")) / f"{readable}-{digest}"


def place_of(collection: Collection) -> str:
    """What tells this data from other data: where its files are, or what it was called."""
    items = collection.catalog.items
    return printable(str(items.root.resolve()) if isinstance(items, FileImages) else collection.origin)


@dataclass(frozen=True, kw_only=True)
class CachePlan:
    """What a build would do, known before it starts."""

    key: CacheKey
    place: str
    folder: Path
    layout: RecordLayout
    digests: list[bytes]
    """Of every image; empty for one that cannot be read."""
    todo: list[int]
    """Images whose tokens are not there yet, each content once."""
    free_bytes: int

    @property
    def n_views_todo(self) -> int:
        return len(self.todo) * (self.layout.n_views + 1)

    @property
    def bytes_todo(self) -> int:
        return len(self.todo) * self.layout.record_bytes

    @property
    def fits(self) -> bool:
        return not self.todo or self.bytes_todo + SPARE_BYTES <= self.free_bytes


def plan_cache(
    collection: Collection, key: CacheKey, trunk: Trunk, *, root: Path | None = None, fewer_views: bool = True
) -> CachePlan:
    """Looks at the images' content and the free disk. With `fewer_views`, takes as many views as the disk has room for."""
    images = images_of(collection)
    digests = list(map_ahead(lambda i: content_digest(images, i), range(len(images)), n_threads=n_cpus(), ahead=256))
    while True:
        plan = _plan(place_of(collection), key, trunk, digests, root)
        begun = len(plan.todo) < len({digest for digest in digests if digest})
        if (
            plan.fits or begun or not fewer_views or key.n_views <= 2
        ):  # a cache that was begun is not left for a smaller one
            return plan
        key = CacheKey(**(_shallow(key) | {"n_views": key.n_views - 1}))


def _shallow(key: CacheKey) -> dict[str, Any]:
    return {name: getattr(key, name) for name in key.__dataclass_fields__}


def _plan(place: str, key: CacheKey, trunk: Trunk, digests: list[bytes], root: Path | None) -> CachePlan:
    layout = RecordLayout(
        n_views=key.n_views,
        n_tokens=trunk.n_tokens,
        dim=trunk.dim,
        dtype=key.dtype,
        keep_moments=trunk.keep_moments,
    )
    folder = key.folder(place, root=root)
    known: set[bytes] = {b""}
    if (folder / "meta.json").exists():
        store = TokenStore(folder, layout, about=_about(key, place))
        known |= {digest for digest in digests if store.slot_of(digest) is not None}
        store.close()
    todo = []
    for i in range(len(digests)):
        if digests[i] not in known:
            known.add(digests[i])
            todo.append(i)
    existing = next(place for place in (folder, *folder.parents) if place.exists())
    free = shutil.disk_usage(existing).free
    return CachePlan(key=key, place=place, folder=folder, layout=layout, digests=digests, todo=todo, free_bytes=free)


def _about(key: CacheKey, place: str) -> dict[str, Any]:
    return {"place": place, "group": GROUP, **asdict(key)}


def build_cache(
    collection: Collection,
    plan: CachePlan,
    trunk: Trunk,
    *,
    device: torch.device | str = "cpu",
    advance: Callable[[int], None],
) -> TokenCache:
    """Computes what the plan lacks. May be ended at any moment and called again: the bytes come out the same."""
    keep_large_blocks()
    images = images_of(collection)
    if not plan.fits:
        raise CacheError(
            f"The tokens need {plan.bytes_todo / 1e9:.1f} GB, but {plan.folder.parent} has {plan.free_bytes / 1e9:.1f} GB free.",
            fix="Free some disk, set NEWKIND_CACHE to another one, take fewer views, --dtype int8, or train online.",
        )
    broken = {i: Skipped(images.names[i], "cannot be read") for i, digest in enumerate(plan.digests) if not digest}
    with _alone_in(plan.folder) if plan.todo else nullcontext():
        store = TokenStore(plan.folder, plan.layout, about=_about(plan.key, plan.place))
        # Another process may have been here since the plan was made.
        todo = [i for i in plan.todo if store.slot_of(plan.digests[i]) is None]
        advance(len(plan.todo) - len(todo))
        try:
            for group in _groups(images, plan, todo, broken, advance):
                views = torch.cat([views for _, views in group])  # (G * (V + 1), 3, S, S)
                store.append([plan.digests[i] for i, _ in group], trunk(views.to(device)))
        except OSError as error:
            raise CacheError(
                f"The tokens could not be written to {plan.folder} ({error.strerror}); what was finished is kept.",
                fix="Free some disk and run the same command again.",
            ) from None
    slots = np.array([-1 if (s := store.slot_of(digest)) is None else s for digest in plan.digests], dtype=np.int64)
    skipped = tuple(
        broken.get(i, Skipped(images.names[i], "a copy of a broken image")) for i in np.flatnonzero(slots < 0).tolist()
    )
    return TokenCache(store, slots, skipped)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise CacheError(f"Another process is building {folder} right now.", fix="Wait for it to end.") from None
    with lock:
        yield


def images_of(collection: Collection) -> Images:
    """The pictures of a collection; ready features have none."""
    if isinstance(collection.catalog.items, Features):
        raise DataError("Ready features need no backbone and no token cache.")
    return collection.catalog.items


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


class _Wanted(NamedTuple):
    slots: NDArray[np.int64]
    views: NDArray[np.int64]


class TokenCache:
    """Cached tokens of a catalog's images, as a source of batches. Nothing in it knows of a method."""

    def __init__(self, store: TokenStore, slots: NDArray[np.int64], skipped: tuple[Skipped, ...]) -> None:
        self.store = store
        self.n_views = store.layout.n_views
        """Random views that are drawn from; a study may set it lower than what the store holds."""
        self.slots = slots
        """(N,): each image's record, -1 for one that could not be decoded."""
        self.skipped = skipped

    @property
    def usable(self) -> NDArray[np.bool_]:
        """(N,): images that have tokens."""
        return self.slots >= 0

    def content_hash(self) -> bytes:
        """Of what the cache holds for these images: their contents and everything their tokens depend on."""
        meta = (self.store.folder / "meta.json").read_bytes()
        return hashlib.sha256(meta + self.store.digests(self.slots)).digest()

    def training_batches(
        self,
        batches: Iterator[NDArray[np.int64]],
        *,
        n_views: int,
        seed: tuple[int, ...],
        rows: slice = EVERY_ROW,
    ) -> Iterator[Tokens]:
        """For each batch of image numbers (B,), `n_views` different views of each: Tokens of (n_views * B), view by view."""

        def drawn() -> Iterator[_Wanted]:
            for step, batch in enumerate(batches):
                rng = np.random.default_rng((*seed, step))
                order = rng.random((len(batch), self.n_views)).argsort(axis=1)  # (B, V): a permutation a row
                chosen = 1 + order[:, np.arange(n_views) % self.n_views]  # (B, n_views)
                yield _Wanted(np.tile(self.slots[batch[rows]], n_views), chosen[rows].T.reshape(-1))

        return self._read_ahead(drawn())

    def evaluation_batches(self, batches: Iterator[NDArray[np.int64]]) -> Iterator[EvaluationBatch]:
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
        """A thread reads ahead; the conversion to fp32 stays in the caller's thread. A second team of OpenMP threads beside
        the one that computes would take its cores away (CUB, ViT-S/14: 7.4 s an epoch against 5.5 s)."""
        for packed in prefetch(self.store.read_packed(*item) for item in wanted):
            yield self.store.layout.unpack(packed)


def seconds_per_view(trunk: Trunk, image_size: int, *, device: torch.device | str = "cpu") -> float:
    """What the trunk takes for a view, measured on a batch like those of a build: what an honest ETA is made of."""
    views = torch.zeros(2 * GROUP, 3, image_size, image_size, device=device)
    trunk(views[:1])
    start = time.perf_counter()
    trunk(views).cls.sum().item()  # the sum waits for the device
    return (time.perf_counter() - start) / len(views)
