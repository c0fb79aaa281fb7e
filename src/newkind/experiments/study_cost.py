"""Estimated time and disk space of many runs, from rates measured on this machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from newkind.backbone.build_time import measure_rates
from newkind.backbone.cache_plan import image_digests, images_of
from newkind.backbone.loader import Backbone
from newkind.backbone.sources import plan_caches
from newkind.config import DiscoverConfig, to_json
from newkind.experiments.cells import Cell
from newkind.pipeline.announce import training_seconds
from newkind.pipeline.setup import Setup, fit_batch, load_setup

__all__ = ["StudyCost", "estimate_cost"]


@dataclass(frozen=True, kw_only=True)
class StudyCost:
    """Estimated cost of runs, without what is in the cache already and without the clustering.

    Parameters
    ----------
    device : str
        Device whose rates were measured.
    n_views : int
        Number of views that go through the backbone.
    n_bytes : int
        Disk space of what is stored of them.
    view_seconds : float
        Time of these views. Runs on the same data share them.
    training_seconds : float
        Time of all epochs.
    random_weights : bool
        Whether the weights are not on this machine, so that the rates are those of random weights.
    """

    device: str
    n_views: int
    n_bytes: int
    view_seconds: float
    training_seconds: float
    random_weights: bool

    @property
    def seconds(self) -> float:
        """Time of views and training."""
        return self.view_seconds + self.training_seconds


def estimate_cost(cells: Iterable[Cell]) -> StudyCost:
    """Measure a few views and one training step per kind of run, and multiply.

    Parameters
    ----------
    cells : iterable of Cell
        Runs that are not finished.

    Returns
    -------
    StudyCost
    """
    found = _Estimate()
    for cell in cells:
        found.add(cell)
    return StudyCost(
        device=found.device,
        n_views=found.n_views,
        n_bytes=found.n_bytes,
        view_seconds=found.view_seconds,
        training_seconds=found.training_seconds,
        random_weights=found.random_weights,
    )


class _Estimate:
    """Sums over runs; what they share is measured and counted once."""

    def __init__(self) -> None:
        self.n_views = self.n_bytes = 0
        self.view_seconds = self.training_seconds = 0.0
        self.device, self.random_weights = "cpu", False
        self._setups: dict[str, Setup] = {}
        self._trainings: dict[str, float] = {}
        self._digests: dict[str, list[bytes]] = {}
        self._counted: set[str] = set()
        self._stores: dict[Path, int] = {}

    def add(self, cell: Cell) -> None:
        """Add one run."""
        config = fit_batch(cell.config, len(cell.collection.catalog))
        place = f"{cell.digest} {to_json(config.backbone)}"
        if place not in self._setups:
            self._setups[place] = load_setup(cell.collection, config, download=False)
        setup = self._setups[place]
        self.device = setup.device.type
        if setup.backbone is not None and setup.backbone.missing_megabytes:
            self.random_weights = True
        key = f"{place} {to_json(replace(config, training=replace(config.training, seed=0)))}"
        if key not in self._trainings:
            self._trainings[key] = training_seconds(cell.collection, config, setup)
        self.training_seconds += self._trainings[key]
        views = f"{place} {config.averaged_views}"
        if setup.backbone is not None and not config.online and views not in self._counted:
            self._counted.add(views)
            self._add_views(cell, config, setup.backbone)

    def _add_views(self, cell: Cell, config: DiscoverConfig, backbone: Backbone) -> None:
        """Add the views that are missing in the cache."""
        if cell.digest not in self._digests:
            self._digests[cell.digest] = image_digests(cell.collection)
        digests = self._digests[cell.digest]
        plans = plan_caches(cell.collection, config.backbone, backbone, views=config.averaged_views, digests=digests)
        new = [plan for plan in plans if plan.n_views_todo > self._stores.get(plan.folder, 0)]  # runs share stores
        if not new:
            return
        n_views = sum(plan.n_views_todo for plan in new)
        self._stores |= {plan.folder: plan.n_views_todo for plan in new}
        self.n_views += n_views
        self.n_bytes += sum(plan.bytes_todo for plan in new)
        todo = sorted(set[int]().union(*(plan.todo for plan in new)))
        rates = measure_rates(images_of(cell.collection), todo, backbone, config.backbone.image_size)
        self.view_seconds += rates.seconds(len(todo), n_views)
