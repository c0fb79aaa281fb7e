"""Choosing and opening a token source: ready features, online tokens or the token cache."""

from __future__ import annotations

import logging

from newkind import distributed
from newkind.backbone.cache_builder import build_cache
from newkind.backbone.cache_plan import CacheKey, CachePlan, image_digests, plan_cache
from newkind.backbone.decoded_views import log_skipped
from newkind.backbone.loader import Backbone
from newkind.backbone.online import OnlineTokens
from newkind.backbone.ready import ReadyFeatures
from newkind.backbone.token_cache import TokenCache
from newkind.backbone.tokens import EVALUATION, TokenSource, Views
from newkind.backbone.vit import seconds_per_view
from newkind.config import BackboneConfig
from newkind.data import Collection, Features
from newkind.data.views import ViewRecipe, random_views
from newkind.errors import DataError
from newkind.progress import data_size, duration, progress_bar

__all__ = [
    "OnlineTokens",
    "ReadyFeatures",
    "TokenCache",
    "TokenSource",
    "announce_cache",
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
    or online tokens. With several processes, the first process of each machine builds the cache and the others open it.

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
    recipe = ViewRecipe(image_size=config.image_size)
    return OnlineTokens(items, backbone.trunk, recipe, device=backbone.device, seed=config.view_seed)


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
    have computed is used, and only missing views are added. With several processes, the first process of each machine
    computes them and the others open the cache afterwards.

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
    cache = None
    if distributed.first_on_machine():
        plans = plan_caches(collection, config, backbone, views=views, digests=digests)
        _announce(plans, config, backbone)
        cache = _build(collection, backbone, plans)
    distributed.barrier()
    if cache is None:
        cache = _build(collection, backbone, plan_caches(collection, config, backbone, views=views, digests=digests))
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
    _announce(plan_caches(collection, config, backbone, views=views), config, backbone)


def plan_caches(
    collection: Collection,
    config: BackboneConfig,
    backbone: Backbone,
    *,
    views: Views = EVALUATION,
    digests: list[bytes] | None = None,
) -> list[CachePlan]:
    """Find which images are in the token cache and which are missing: one plan for tokens, one per view for features."""
    recipe, digests = ViewRecipe(image_size=config.image_size), digests or image_digests(collection)
    if config.tuned_blocks == 0:
        keys = [
            CacheKey.of_feature(
                view,
                backbone=config.name,
                weights_sha256=backbone.sha256,
                recipe=recipe,
                seed=config.view_seed,
                precision=config.trunk_precision,
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
                precision=config.trunk_precision,
                patch_tokens=config.patch_tokens,
            )
        ]
    return [plan_cache(collection, key, backbone.trunk, digests=digests) for key in keys]


def _build(collection: Collection, backbone: Backbone, plans: list[CachePlan]) -> TokenCache:
    """Compute what is missing, with a progress bar."""
    n_images = _n_images(plans)
    with progress_bar("Computing features", n_images, show=bool(n_images)) as advance:
        return build_cache(collection, plans, backbone.trunk, device=backbone.device, advance=advance)


def _n_images(plans: list[CachePlan]) -> int:
    """Number of images that miss at least one view."""
    return len(set[int]().union(*(plan.todo for plan in plans)))


def _announce(plans: list[CachePlan], config: BackboneConfig, backbone: Backbone) -> None:
    """Log the work that plans describe."""
    first, n_images = plans[0], _n_images(plans)
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
    seconds = n_views * seconds_per_view(backbone.trunk, config.image_size, device=backbone.device)
    logger.info(
        f"{_work(n_images, n_views, config, backbone, seconds)}, "
        f"{data_size(sum(plan.bytes_todo for plan in plans))} on disk ({first.free_bytes / 1e9:.0f} GB free)."
    )


def _work(n_images: int, n_views: int, config: BackboneConfig, backbone: Backbone, seconds: float) -> str:
    """Announcement of a computation, without the full stop."""
    return (
        f"Computing features of {_counted(n_images, 'image')} ({_counted(n_views, 'view')}) with {config.name} "
        f"on {backbone.device}, about {duration(seconds)}"
    )


def _counted(n: int, noun: str) -> str:
    """Number and noun, in singular or plural."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
