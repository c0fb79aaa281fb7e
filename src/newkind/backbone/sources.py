"""Choosing and opening a token source: ready features, online tokens or the token cache."""

from __future__ import annotations

import logging

from newkind import distributed
from newkind.backbone.cache_builder import build_cache
from newkind.backbone.cache_plan import CacheKey, CachePlan, plan_cache
from newkind.backbone.decoded_views import log_skipped
from newkind.backbone.loader import Backbone
from newkind.backbone.online import OnlineTokens
from newkind.backbone.ready import ReadyFeatures
from newkind.backbone.token_cache import TokenCache
from newkind.backbone.tokens import TokenSource
from newkind.backbone.vit import seconds_per_view
from newkind.config import BackboneConfig
from newkind.data import Collection, Features
from newkind.data.views import ViewRecipe
from newkind.errors import DataError
from newkind.progress import duration, progress_bar

__all__ = [
    "OnlineTokens",
    "ReadyFeatures",
    "TokenCache",
    "TokenSource",
    "announce_cache",
    "log_skipped",
    "open_cache",
    "open_source",
]

logger = logging.getLogger(__name__)


def open_source(
    collection: Collection,
    config: BackboneConfig,
    backbone: Backbone | None,
    *,
    online: bool = False,
    online_if_missing: bool = False,
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
    online_if_missing : bool, default=False
        Use the token cache if it is complete, or if completing it takes no more views than one pass over all images; otherwise
        online tokens. For a single pass over the images, whose tokens are not worth storing.

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
    if not online and not online_if_missing:
        return open_cache(collection, config, backbone)
    if not online:
        plan = _plan(collection, config, backbone)
        if plan.fits and plan.n_views_todo <= len(items):
            return open_cache(collection, config, backbone)
        seconds = len(items) * seconds_per_view(backbone.trunk, config.image_size, device=backbone.device)
        logger.info(_work(len(items), len(items), config, backbone, seconds) + ".")
    return OnlineTokens(items, backbone.trunk, ViewRecipe(image_size=config.image_size), device=backbone.device)


def open_cache(collection: Collection, config: BackboneConfig, backbone: Backbone) -> TokenCache:
    """Open the token cache of a collection of images, after computing the tokens that are missing.

    With several processes, the first process of each machine computes them and the others open the cache afterwards.

    Parameters
    ----------
    collection : Collection
        Images.
    config : BackboneConfig
        Configuration of the backbone and the token cache.
    backbone : Backbone
        Loaded backbone.

    Returns
    -------
    TokenCache
        With fewer views than `config.views` if the disk has no space for all.

    Raises
    ------
    CacheError
        If the token cache is damaged, does not fit on the disk, or is being built by another process.
    """
    cache = None
    if distributed.first_on_machine():
        plan = _plan(collection, config, backbone)
        _announce(plan, config, backbone)
        cache = _build(collection, backbone, plan)
    distributed.barrier()
    if cache is None:
        cache = _build(collection, backbone, _plan(collection, config, backbone))
    log_skipped(cache.skipped)
    return cache


def announce_cache(collection: Collection, config: BackboneConfig, backbone: Backbone) -> None:
    """Log what `open_source` would compute for the token cache: images, views, disk space and time.

    Parameters
    ----------
    collection : Collection
        Images.
    config : BackboneConfig
        Configuration of the backbone and the token cache.
    backbone : Backbone
        Loaded backbone.
    """
    _announce(_plan(collection, config, backbone), config, backbone)


def _plan(collection: Collection, config: BackboneConfig, backbone: Backbone) -> CachePlan:
    """Find which images are in the token cache and which are missing."""
    key = CacheKey(
        backbone=config.name,
        weights_sha256=backbone.sha256,
        n_tuned=config.tuned_blocks,
        recipe=ViewRecipe(image_size=config.image_size),
        n_views=config.views,
        seed=config.view_seed,
        dtype=config.dtype,
    )
    return plan_cache(collection, key, backbone.trunk)


def _build(collection: Collection, backbone: Backbone, plan: CachePlan) -> TokenCache:
    """Compute what is missing, with a progress bar."""
    with progress_bar("Computing features", len(plan.todo), show=bool(plan.todo)) as advance:
        return build_cache(collection, plan, backbone.trunk, device=backbone.device, advance=advance)


def _announce(plan: CachePlan, config: BackboneConfig, backbone: Backbone) -> None:
    """Log the work that a plan describes."""
    if plan.key.n_views < config.views:
        logger.warning(
            f"The disk has space for {plan.key.n_views} views per image instead of {config.views}; using those."
        )
    if not plan.todo:
        logger.info(f"Features of all {_counted(plan.n_stored, 'image')} are in the cache ({plan.folder}).")
        return
    if plan.n_stored:
        logger.info(f"Features of {_counted(plan.n_stored, 'image')} are in the cache already.")
    seconds = plan.n_views_todo * seconds_per_view(backbone.trunk, config.image_size, device=backbone.device)
    logger.info(
        f"{_work(len(plan.todo), plan.n_views_todo, config, backbone, seconds)}, "
        f"{plan.bytes_todo / 1e9:.1f} GB on disk ({plan.free_bytes / 1e9:.0f} GB free)."
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
