"""Choosing and opening a token source: ready features, online tokens or the token cache."""

from __future__ import annotations

import logging
from dataclasses import replace

from newkind import distributed
from newkind.backbone.build_time import measure_rates
from newkind.backbone.cache_builder import build_cache
from newkind.backbone.cache_plan import CacheKey, CachePlan, image_digests, images_of, joint_digests, plan_cache
from newkind.backbone.decoded_views import log_skipped
from newkind.backbone.disks import Disks
from newkind.backbone.division import Division, divide
from newkind.backbone.loader import Backbone
from newkind.backbone.online import OnlineTokens
from newkind.backbone.ready import ReadyFeatures
from newkind.backbone.token_cache import TokenCache
from newkind.backbone.tokens import EVALUATION, TokenSource, Views
from newkind.config import BackboneConfig
from newkind.data import Collection, Features
from newkind.data.views import random_views
from newkind.errors import DataError
from newkind.paths import cache_dir
from newkind.progress import data_size, duration, progress_bar

__all__ = [
    "OnlineTokens",
    "ReadyFeatures",
    "TokenCache",
    "TokenSource",
    "announce_cache",
    "announce_download",
    "log_skipped",
    "open_cache",
    "open_source",
    "plan_caches",
]

logger = logging.getLogger(__name__)


def open_source(
    collection: Collection,
    config: BackboneConfig,
    backbone: Backbone | None,
    *,
    online: bool = False,
    views: Views = EVALUATION,
    digests: list[bytes] | None = None,
) -> TokenSource:
    """Open the token source of a collection.

    A collection of features is its own source. Images have a token cache, whose missing part is announced and computed here,
    or online tokens. With several processes, each computes its share of the cache.

    Parameters
    ----------
    collection : Collection
        Images or features.
    config : BackboneConfig
        Configuration of the backbone and the token cache.
    backbone : Backbone, optional
        Loaded backbone; None for features.
    online : bool, default=False
        Compute tokens in every pass instead of using a token cache.
    views, digests : optional
        As in `open_cache`.

    Returns
    -------
    TokenSource
        `ReadyFeatures`, `OnlineTokens` or `TokenCache`.

    Raises
    ------
    DataError
        With code `no-backbone` for images without a backbone.
    CacheError
        If the token cache is damaged, does not fit on the disk, or is being built by another process.
    """
    items = collection.catalog.items
    if isinstance(items, Features):
        return ReadyFeatures(items)
    if backbone is None:
        raise DataError("Images need a backbone.", fix="Load one with `load_backbone`.", code="no-backbone")
    if not online:
        return open_cache(collection, config, backbone, views=views, digests=digests)
    return OnlineTokens(items, backbone.trunk, backbone.recipe, device=backbone.device, seed=config.view_seed)


def open_cache(
    collection: Collection,
    config: BackboneConfig,
    backbone: Backbone,
    *,
    views: Views = EVALUATION,
    digests: list[bytes] | None = None,
) -> TokenCache:
    """Open the token cache of a collection of images, after computing what is missing.

    If nothing in the backbone is tuned, it contains features instead of tokens, in one store per view: what other calls
    have computed is used, and only missing views are added. With several processes, of one or several machines, each computes
    its share; an image is computed once and stays on the disk of that process.

    Parameters
    ----------
    collection : Collection
        Images.
    config : BackboneConfig
        Configuration of the backbone and the token cache.
    backbone : Backbone
        Loaded backbone.
    views : tuple of int, default=(0,)
        Numbers of the views whose features are needed, beside `config.views` random views. Tokens are always of the
        evaluation view and the random views.
    digests : list of bytes, optional
        Result of `image_digests`, if it was computed before.

    Returns
    -------
    TokenCache
        With fewer views than `config.views` if the disk has no space for all tokens.

    Raises
    ------
    CacheError
        If the token cache is damaged, does not fit on the disk, or is being built by another process.
    """
    digests = digests or joint_digests(collection)
    disks = Disks.find(cache_dir("tokens"))
    plans = plan_caches(collection, config, backbone, views=views, digests=digests, disks=disks)
    division = divide(collection, plans, disks)
    _announce(collection, division, config, backbone)
    show = distributed.main_process() and division.n_images > 0
    with progress_bar("Computing features", division.n_images, show=show) as advance:
        cache = build_cache(collection, division, backbone.trunk, device=backbone.device, advance=advance)
    log_skipped(cache.skipped)
    return cache


def announce_cache(
    collection: Collection, config: BackboneConfig, backbone: Backbone, *, views: Views = EVALUATION
) -> None:
    """Log what `open_source` would compute for the token cache: images, views, disk space and time.

    Parameters
    ----------
    collection : Collection
        Images.
    config : BackboneConfig
        Configuration of the backbone and the token cache.
    backbone : Backbone
        Loaded backbone.
    views : tuple of int, default=(0,)
        As in `open_cache`.
    """
    plans = plan_caches(collection, config, backbone, views=views)
    announce_download(config, backbone)
    _announce(collection, divide(collection, plans), config, backbone)


def plan_caches(
    collection: Collection,
    config: BackboneConfig,
    backbone: Backbone,
    *,
    views: Views = EVALUATION,
    digests: list[bytes] | None = None,
    disks: Disks | None = None,
) -> list[CachePlan]:
    """Find which images are in the token cache and which are missing: one plan for tokens, one per view for features.

    What is on other disks than that of this process counts as missing; with `disks`, all processes plan the same views.
    """
    recipe, digests = backbone.recipe, digests or image_digests(collection)
    if config.tuned_blocks == 0:
        keys = [
            CacheKey.of_feature(
                view,
                backbone=config.name,
                weights_sha256=backbone.sha256,
                recipe=recipe,
                seed=config.view_seed,
                precision=config.precision,
            )
            for view in sorted({*views, *random_views(config.views)})
        ]
    else:
        keys = [
            CacheKey(
                backbone=config.name,
                weights_sha256=backbone.sha256,
                n_tuned=config.tuned_blocks,
                recipe=recipe,
                n_views=config.views,
                seed=config.view_seed,
                dtype=config.dtype,
                precision=config.precision,
                patch_tokens=config.patch_tokens or 0,
            )
        ]
    disks = disks or Disks()
    plans = [plan_cache(collection, key, backbone.trunk, digests=digests, share=disks.share) for key in keys]
    if (n_views := _joint_n_views(plans[0], disks)) != plans[0].key.n_views:
        key = replace(plans[0].key, n_views=n_views)
        exact = plan_cache(collection, key, backbone.trunk, digests=digests, share=0)  # whether or not it fits here
        return [replace(exact, share=disks.share)]
    return plans


def _joint_n_views(plan: CachePlan, disks: Disks) -> int:
    """Number of random views that every disk has space for; that of a cache which was begun on some disk."""
    if len(disks.of_process) == 1:
        return plan.key.n_views
    own = plan.key.n_views.to_bytes(4, "little") + bytes([plan.n_stored > 0])
    found = [(int.from_bytes(row[:4], "little"), bool(row[4])) for row in distributed.gather_bytes(own)]
    return max((n for n, is_begun in found if is_begun), default=min(n for n, _ in found))


def announce_download(config: BackboneConfig, backbone: Backbone) -> None:
    """Log that weights would be downloaded, if random ones were loaded in their place."""
    if backbone.missing_megabytes:
        logger.info(
            f"The weights of {config.name} (about {backbone.missing_megabytes:,.0f} MB) are not on this machine and would be "
            "downloaded. Times are measured with random weights."
        )


def _announce(collection: Collection, division: Division, config: BackboneConfig, backbone: Backbone) -> None:
    """Log the work of all processes together."""
    plans, n_images = division.plans, division.n_images
    first, n_processes = plans[0], len(division.disks.of_process)
    if first.key.view is None and first.key.n_views < config.views:
        logger.warning(
            f"The disk has space for {first.key.n_views} views per image instead of {config.views}; using those."
        )
    if not n_images:
        logger.info(f"Features of all {_counted(first.n_stored, 'image')} are in the cache ({first.folder}).")
        return
    if n_stored := sum(plan.n_stored * len(plan.key.views) for plan in plans):
        logger.info(f"{_counted(n_stored, 'view')} of these images are in the cache already.")
    n_views = sum(plan.n_views_todo for plan in plans)
    if not distributed.main_process():
        return
    todo = sorted(set[int]().union(*(plan.todo for plan in plans)))
    rates = measure_rates(images_of(collection), todo, backbone, config.image_size)
    seconds = rates.seconds(n_images, n_views) / n_processes
    logger.info(
        f"{_work(n_images, n_views, config, backbone, seconds)}"
        f"{f' in {n_processes} processes' if n_processes > 1 else ''}, "
        f"{data_size(sum(plan.bytes_todo for plan in plans))} on disk ({first.free_bytes / 1e9:.0f} GB free)."
    )


def _work(n_images: int, n_views: int, config: BackboneConfig, backbone: Backbone, seconds: float) -> str:
    """Announcement of a computation, without the full stop."""
    return (
        f"Computing features of {_counted(n_images, 'image')} ({_counted(n_views, 'view')}) with {config.name} "
        f"on {backbone.device} in {config.precision}, about {duration(seconds)}"
    )


def _counted(n: int, noun: str) -> str:
    """Number and noun, in singular or plural."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
