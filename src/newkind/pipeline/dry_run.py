"""What a discovery would cost, for all efforts side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace

from newkind.backbone.cache_plan import image_digests
from newkind.backbone.loader import Backbone
from newkind.backbone.sources import plan_caches
from newkind.backbone.vit import seconds_per_view
from newkind.config import DiscoverConfig, EffortName
from newkind.data import Collection, Features
from newkind.effort import EFFORTS, Amount
from newkind.methods.registry import find_method
from newkind.pipeline.announce import announce_data, training_seconds
from newkind.pipeline.configure import first_config, with_effort
from newkind.pipeline.setup import Setup, check_request, fit_batch, load_setup

__all__ = ["EffortCost", "estimate_efforts"]


@dataclass(frozen=True, kw_only=True)
class EffortCost:
    """Estimated cost of a discovery, without what is in the cache already and without the clustering.

    Parameters
    ----------
    effort : str
        Name of the effort.
    n_views : int
        Number of views that go through the backbone.
    n_bytes : int
        Disk space of what is stored of them.
    first_seconds : float
        Time until the first answer.
    seconds : float
        Time of views and training.
    epochs : int
        Number of epochs.
    is_chosen : bool, default=False
        Whether it is the one that was asked for.
    """

    effort: str
    n_views: int
    n_bytes: int
    first_seconds: float
    seconds: float
    epochs: int
    is_chosen: bool = False


def estimate_efforts(collection: Collection, config: DiscoverConfig) -> list[EffortCost]:
    """Estimate the cost of every effort that the method has; the chosen one with its own views and epochs.

    Parameters
    ----------
    collection : Collection
        Images or features, some of them labelled.
    config : DiscoverConfig
        Configuration, as made by `configure`.

    Returns
    -------
    list of EffortCost
        From the least to the most.
    """
    check_request(collection, config)
    announce_data(collection)
    config = fit_batch(config, len(collection.catalog))
    digests = None if isinstance(collection.catalog.items, Features) else image_digests(collection)
    kind = find_method(config.method_name).method
    names: tuple[EffortName, ...] = ("thorough",) if kind.needs_training else tuple(EFFORTS)
    # A chosen effort without training has no tuned blocks.
    usual = replace(config, backbone=replace(config.backbone, tuned_blocks=max(config.backbone.tuned_blocks, 1)))
    configs = [
        config if name == config.effort else with_effort(collection, usual, Amount(effort=name)) for name in names
    ]
    setups = {each.backbone.tuned_blocks: load_setup(collection, each) for each in configs}
    return [replace(_cost(collection, each, setups, digests), is_chosen=each is config) for each in configs]


def _cost(
    collection: Collection, config: DiscoverConfig, setups: dict[int, Setup], digests: list[bytes] | None
) -> EffortCost:
    """Cost of one effort: its first answer, its final answer and its training. `setups` are by number of tuned blocks."""
    first = first_config(collection, config)
    setup = setups[config.backbone.tuned_blocks]
    per_view = 0.0
    if setup.backbone is not None:
        per_view = seconds_per_view(setup.backbone.trunk, config.backbone.image_size, device=setup.device)
    before = n_views, n_bytes = _missing(collection, config, setup.backbone, digests)
    if first is not None:
        before = _missing(collection, first, setups[0].backbone, digests)
        if config.backbone.tuned_blocks:  # otherwise, its view is one of those of the final answer
            n_views, n_bytes = n_views + before[0], n_bytes + before[1]
    return EffortCost(
        effort=config.effort,
        n_views=n_views,
        n_bytes=n_bytes,
        first_seconds=before[0] * per_view,
        seconds=n_views * per_view + training_seconds(collection, config, setup),
        epochs=config.training.epochs,
    )


def _missing(
    collection: Collection, config: DiscoverConfig, backbone: Backbone | None, digests: list[bytes] | None
) -> tuple[int, int]:
    """Number of views that are missing in the cache, and their bytes; none for ready features and online tokens."""
    if backbone is None or config.online:
        return 0, 0
    plans = plan_caches(collection, config.backbone, backbone, views=config.averaged_views, digests=digests)
    return sum(plan.n_views_todo for plan in plans), sum(plan.bytes_todo for plan in plans)
