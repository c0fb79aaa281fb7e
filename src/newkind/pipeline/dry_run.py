"""What a discovery would cost, for all efforts side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace

from newkind.backbone.build_time import ViewRates, measure_rates
from newkind.backbone.cache_plan import CachePlan, image_digests, images_of
from newkind.backbone.sources import announce_download, plan_caches
from newkind.config import DiscoverConfig, EffortName
from newkind.data import Collection, Features
from newkind.effort import EFFORTS, Amount
from newkind.methods.registry import find_method
from newkind.pipeline.announce import announce_data, n_steps, training_seconds
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
    first_seconds : float or None
        Time until the first answer; None if there is none before the final one.
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
    first_seconds: float | None
    seconds: float
    epochs: int
    is_chosen: bool = False


def estimate_efforts(collection: Collection, config: DiscoverConfig, *, first_answer: bool = True) -> list[EffortCost]:
    """Estimate the cost of every effort that the method has; the chosen one with its own views and epochs.

    Weights that are not on this machine are not downloaded: random ones take the same time.

    Parameters
    ----------
    collection : Collection
        Images or features, some of them labelled.
    config : DiscoverConfig
        Configuration, as made by `configure`.
    first_answer : bool, default=True
        Whether a first answer is computed if there is one that is sooner than the final one.

    Returns
    -------
    list of EffortCost
        From the least to the most.
    """
    check_request(collection, config)
    announce_data(collection)
    config = fit_batch(config, len(collection.catalog))
    kind = find_method(config.method_name).method
    names: tuple[EffortName, ...] = ("thorough",) if kind.needs_training else tuple(EFFORTS)
    # A chosen effort without training has no tuned blocks.
    usual = replace(config, backbone=replace(config.backbone, tuned_blocks=max(config.backbone.tuned_blocks, 1)))
    configs = [
        config if name == config.effort else with_effort(collection, usual, Amount(effort=name)) for name in names
    ]
    measured = _Measured(collection, configs)
    costs = []
    for each in configs:
        first = first_config(collection, each) if first_answer else None
        costs.append(replace(measured.cost(each, first), is_chosen=each is config))
    return costs


class _Measured:
    """What the efforts have in common: digests of the images, and backbone and rates per number of tuned blocks."""

    def __init__(self, collection: Collection, configs: list[DiscoverConfig]) -> None:
        self.collection = collection
        self.setups: dict[int, Setup] = {}
        for config in configs:
            if config.backbone.tuned_blocks not in self.setups:
                self.setups[config.backbone.tuned_blocks] = load_setup(collection, config, download=False)
        loaded = {n_tuned: setup.backbone for n_tuned, setup in self.setups.items() if setup.backbone is not None}
        self.digests = image_digests(collection) if loaded else []
        self.rates: dict[int, ViewRates] = {}
        for n_tuned, backbone in loaded.items():
            readable = [i for i, digest in enumerate(self.digests) if digest]
            size = configs[0].backbone.image_size
            self.rates[n_tuned] = measure_rates(images_of(collection), readable, backbone, size)
        if (one := next(iter(loaded.values()), None)) is not None:
            announce_download(configs[0].backbone, one)

    def cost(self, config: DiscoverConfig, first: DiscoverConfig | None) -> EffortCost:
        """Cost of one effort: its first answer, its final answer and its training."""
        early = [] if first is None else self._plans(first)
        stored = {plan.folder for plan in early}  # the view of a first answer can be one of those of the final answer
        rest = [plan for plan in self._plans(config) if plan.folder not in stored]
        first_seconds = None if first is None else self._seconds(first, early)
        passes, training = _online_passes(self.collection, config), config.training
        n_online = passes * len(config.averaged_views) * len(self.collection.catalog)
        seconds = (first_seconds or 0.0) + self._seconds(config, rest)
        if n_online:
            seconds += self._rates(config).seconds(passes * len(self.collection.catalog), n_online)
            per_step = training.views_per_step * training.optimizer.batch_size
            n_online += training.epochs * n_steps(self.collection, config) * per_step
        return EffortCost(
            effort=config.effort,
            n_views=sum(plan.n_views_todo for plan in early + rest) + n_online,
            n_bytes=sum(plan.bytes_todo for plan in early + rest),
            first_seconds=first_seconds,
            seconds=seconds + training_seconds(self.collection, config, self.setups[config.backbone.tuned_blocks]),
            epochs=training.epochs,
        )

    def _plans(self, config: DiscoverConfig) -> list[CachePlan]:
        """What is missing in the cache; nothing for ready features and online tokens."""
        backbone = self.setups[config.backbone.tuned_blocks].backbone
        if backbone is None or config.online:
            return []
        views = config.averaged_views
        return plan_caches(self.collection, config.backbone, backbone, views=views, digests=self.digests)

    def _seconds(self, config: DiscoverConfig, plans: list[CachePlan]) -> float:
        """Time of computing what is missing."""
        if not plans:
            return 0.0
        n_images = len(set[int]().union(*(plan.todo for plan in plans)))
        return self._rates(config).seconds(n_images, sum(plan.n_views_todo for plan in plans))

    def _rates(self, config: DiscoverConfig) -> ViewRates:
        return self.rates[config.backbone.tuned_blocks]


def _online_passes(collection: Collection, config: DiscoverConfig) -> int:
    """How often the averaged views of all images are computed online: for the estimate, the start, evaluations and the last predictions."""
    if not config.online or isinstance(collection.catalog.items, Features):
        return 0
    n_evaluations = 0
    if collection.truth is not None or not find_method(config.method_name).method.costly_readout:
        n_evaluations = -(-config.training.epochs // config.training.evaluate_every)
    return 2 + (not config.n_categories.from_truth) + n_evaluations
