"""Planning the token cache: which images have no tokens yet, and how much disk space they need.

A cache is a folder named after the data, with a key of everything that its tokens depend on: the weights of the backbone,
where it is split, the precision of its frozen blocks, the view recipe, the seed, the number of views, and the storage dtype. Inside it, a record is found by the
content of its image. Features have one such folder per view, so that views can be added later.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from newkind import distributed
from newkind.backbone.decoded_views import DIGEST_BYTES, content_digest
from newkind.backbone.record_layout import RecordLayout
from newkind.backbone.token_store import TokenStore
from newkind.backbone.vit import Trunk
from newkind.config import Precision
from newkind.data import Collection, Features, FileImages, Images, printable
from newkind.data.prefetch import map_ahead, n_cpus
from newkind.data.views import ViewRecipe, random_views
from newkind.errors import DataError
from newkind.paths import cache_dir

__all__ = ["CacheKey", "CachePlan", "image_digests", "joint_digests", "plan_cache"]

GROUP = 8
"""Images that pass the trunk and are written to disk together. The last bit of a result can depend on the batch size, so groups
are always the same, whoever computes them and whether or not a build was interrupted."""
FEATURE_GROUP = 32
"""The same for features, of which a view has a hundredth of the bytes: writing 8 records at a time would wait for the disk."""
SPARE_BYTES = 2**30
"""Free disk space that a cache leaves to others."""
UNREADABLE = bytes(DIGEST_BYTES)
MIN_VIEWS = 2
"""Views that a training step needs."""


@dataclass(frozen=True, kw_only=True)
class CacheKey:
    """Everything that cached tokens depend on, except the images.

    Parameters
    ----------
    backbone : str
        Name of the backbone in timm.
    weights_sha256 : str
        Digest of its weights.
    n_tuned : int
        Number of tuned blocks, before which the backbone is split.
    recipe : ViewRecipe
        Recipe of the views.
    n_views : int
        Number of random views per image, V.
    seed : int
        Seed of the random views.
    dtype : {"float16", "int8", "float32"}, default="float16"
        Storage dtype of the tokens; float32 for features.
    view : int, optional
        Number of the only view of a record, for features. Default: the evaluation view and V random views.
    precision : {"fp32", "bf16", "int8"}, default="fp32"
        Precision of the frozen blocks.
    patch_tokens : int, default=0
        Number of patch tokens per view after merging; 0 for all.
    """

    backbone: str
    weights_sha256: str
    n_tuned: int
    recipe: ViewRecipe
    n_views: int
    seed: int
    dtype: str = "float16"
    view: int | None = None
    precision: Precision = "fp32"
    patch_tokens: int = 0

    @classmethod
    def of_feature(
        cls,
        view: int,
        *,
        backbone: str,
        weights_sha256: str,
        recipe: ViewRecipe,
        seed: int,
        precision: Precision = "fp32",
    ) -> CacheKey:
        """Key of the features of one view; only random views depend on the seed."""
        return cls(
            backbone=backbone,
            weights_sha256=weights_sha256,
            n_tuned=0,
            recipe=recipe,
            n_views=0,
            seed=seed if view else 0,
            dtype="float32",
            view=view,
            precision=precision,
        )

    @property
    def views(self) -> tuple[int, ...]:
        """Numbers of the views of a record, in order."""
        return (0, *random_views(self.n_views)) if self.view is None else (self.view,)

    @property
    def group(self) -> int:
        """Number of images that are computed and written together."""
        return GROUP if self.view is None else FEATURE_GROUP

    def settings(self) -> dict[str, Any]:
        """All fields as JSON; without defaults of fields that are newer than some caches."""
        newer = {"view": None, "precision": "fp32", "patch_tokens": 0}
        return {name: value for name, value in asdict(self).items() if name not in newer or value != newer[name]}

    def folder(self, place: str) -> Path:
        """Folder of the cache.

        Parameters
        ----------
        place : str
            Name of the data, for example its folder. The name of the cache folder starts with the last part of it.

        Returns
        -------
        Path
        """
        digest = hashlib.sha256(json.dumps([self.settings(), place], sort_keys=True).encode()).hexdigest()[:12]
        readable = "".join(c if c.isalnum() else "-" for c in Path(place).name or "data")[:40]
        content = "" if self.view is None else f"view{self.view}-"
        return cache_dir("tokens") / f"{readable}-{content}{digest}"


@dataclass(frozen=True, kw_only=True)
class CachePlan:
    """What a build has to compute.

    Parameters
    ----------
    key : CacheKey
        Key of the cache.
    place : str
        Name of the data.
    folder : Path
        Folder of the cache.
    layout : RecordLayout
        Layout of a record.
    digests : list of bytes
        Digest of the content of each image; empty for an image that cannot be read.
    todo : list of int
        Images without tokens, each content once.
    free_bytes : int
        Free disk space.
    share : float, default=1
        Share of `todo` that is stored on this disk.
    """

    key: CacheKey
    place: str
    folder: Path
    layout: RecordLayout
    digests: list[bytes]
    todo: list[int]
    free_bytes: int
    share: float = 1.0

    @property
    def n_views_todo(self) -> int:
        """Number of views to compute."""
        return len(self.todo) * (self.layout.n_views + 1)

    @property
    def n_stored(self) -> int:
        """Number of different images that have tokens already."""
        return len({digest for digest in self.digests if digest}) - len(self.todo)

    @property
    def bytes_todo(self) -> int:
        """Disk space of what is to be computed."""
        return len(self.todo) * self.layout.record_bytes

    @property
    def fits(self) -> bool:
        """Whether the disk has space for it."""
        return fit([self])


def fit(plans: Sequence[CachePlan]) -> bool:
    """Whether the disk has space for all of these plans."""
    needed = sum(plan.bytes_todo * plan.share for plan in plans)
    return needed == 0 or needed + SPARE_BYTES <= plans[0].free_bytes


def image_digests(collection: Collection) -> list[bytes]:
    """Digest of the content of each image, from one read of all files; empty for an image that cannot be read."""
    images = images_of(collection)
    return list(map_ahead(lambda i: content_digest(images, i), range(len(images)), n_threads=n_cpus(), ahead=256))


def joint_digests(collection: Collection) -> list[bytes]:
    """As `image_digests`, with the files divided among the processes, all of which have to ask.

    Raises
    ------
    DataError
        With code `other-data` if the processes have different images or labels.
    """
    images, catalog = images_of(collection), collection.catalog
    own = hashlib.sha256(catalog.labels.astype("<i8").tobytes())
    for name in (*catalog.class_names, *images.names):
        own.update(name.encode("utf-8", "surrogatepass") + b"\0")
    if len(set(distributed.gather_bytes(own.digest()))) > 1:
        raise DataError(
            "The machines have different data: the names of the images or the labels differ.",
            fix="Copy the same files to every machine.",
            code="other-data",
        )
    mine = np.array_split(np.arange(len(images)), distributed.world_size())[distributed.rank()].tolist()
    found = map_ahead(lambda i: content_digest(images, i), mine, n_threads=n_cpus(), ahead=256)
    joined = b"".join(distributed.gather_bytes(b"".join(digest or UNREADABLE for digest in found)))
    digests = (joined[at : at + DIGEST_BYTES] for at in range(0, len(joined), DIGEST_BYTES))
    return [b"" if digest == UNREADABLE else digest for digest in digests]


def plan_cache(
    collection: Collection,
    key: CacheKey,
    trunk: Trunk,
    *,
    digests: list[bytes] | None = None,
    share: float = 1.0,
) -> CachePlan:
    """Find which images have no tokens yet. If the disk has no space for all views, plan as many as fit.

    Parameters
    ----------
    collection : Collection
        Images.
    key : CacheKey
        Key of the cache.
    trunk : Trunk
        Frozen part of the backbone.
    digests : list of bytes, optional
        Result of `image_digests`. Default: computed here.
    share : float, default=1
        Share of the missing images that is stored on this disk.

    Returns
    -------
    CachePlan

    Raises
    ------
    DataError
        With code `no-images` for a collection of features.
    """
    digests = image_digests(collection) if digests is None else digests
    while True:
        plan = replace(_plan(_place_of(collection), key, trunk, digests), share=share)
        # A cache that was begun is completed rather than replaced by a smaller one.
        if plan.fits or plan.n_stored or key.n_views <= MIN_VIEWS:
            return plan
        key = replace(key, n_views=key.n_views - 1)


def images_of(collection: Collection) -> Images:
    """Images of a collection; features have none."""
    if isinstance(collection.catalog.items, Features):
        raise DataError("Features need neither a backbone nor a token cache.", code="no-images")
    return collection.catalog.items


def _place_of(collection: Collection) -> str:
    """Name that distinguishes this data from other data, from any working directory: the folder of its files, or where it was opened."""
    items = collection.catalog.items
    if isinstance(items, FileImages):
        return printable(str(items.root.resolve()))
    return printable(collection.location or collection.origin)


def _plan(place: str, key: CacheKey, trunk: Trunk, digests: list[bytes]) -> CachePlan:
    """Plan for exactly this key."""
    layout = RecordLayout(
        n_views=key.n_views,
        n_tokens=trunk.n_tokens,
        dim=trunk.dim,
        dtype=key.dtype,
        keep_moments=trunk.keep_moments,
        keep_sizes=trunk.n_patches > 0,
    )
    folder = key.folder(place)
    store = TokenStore(folder, layout, about=about(key, place))
    known = {b"", *(digest for digest in digests if store.slot_of(digest) is not None)}
    todo = []
    for i, digest in enumerate(digests):
        if digest not in known:
            known.add(digest)
            todo.append(i)
    existing = next(parent for parent in (folder, *folder.parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    return CachePlan(key=key, place=place, folder=folder, layout=layout, digests=digests, todo=todo, free_bytes=free)


def about(key: CacheKey, place: str) -> dict[str, Any]:
    """What `meta.json` says about the records."""
    return {"place": place, "group": key.group, **key.settings()}
