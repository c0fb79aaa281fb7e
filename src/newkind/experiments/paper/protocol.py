"""What is the same for every cell of a study, and the words with which each table says so."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite

from newkind.config import BackboneConfig, TrainingConfig
from newkind.data import Features
from newkind.errors import ConfigError
from newkind.experiments.paper.dataset import BenchData
from newkind.methods.registry import find_method
from newkind.methods.simgcd import BENCHMARK_EPSILON, simgcd_recipe

__all__ = ["SELECTION", "Protocol", "read_epsilons", "read_methods"]

logger = logging.getLogger(__name__)

SELECTION = "last epoch, one matching over all unlabelled images, nothing chosen by a label"


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How every cell is trained; the defaults are those of the published runs, but for the backbone."""

    n_seeds: int = 3
    """Seeds 0, 1, ..."""
    epochs: int = 200
    batch_size: int = 128
    trunk: BackboneConfig = field(default_factory=BackboneConfig)
    recipe: str = "release"
    """SimGCD's."""
    online: bool = False
    """Fresh views every epoch instead of the token cache."""
    methods: tuple[str, ...] = ()
    """Empty: those that the study is about."""
    epsilons: tuple[float, ...] = ()
    """Weights of the entropy term; empty: those that the study is about."""

    def __post_init__(self) -> None:
        if self.n_seeds < 1:
            raise ConfigError(f"At least 1 seed is needed; got {self.n_seeds}.")
        for method in self.methods:
            find_method(method)
        TrainingConfig(epochs=self.epochs, batch_size=self.batch_size)
        simgcd_recipe(self.recipe, n_categories=2)

    @property
    def seeds(self) -> range:
        return range(self.n_seeds)

    def about(self, datas: Sequence[BenchData], *, k_rule: str, seeds: Sequence[int]) -> dict[str, str]:
        """For the head of every table."""
        epsilons = [f"{BENCHMARK_EPSILON.get(data.benchmark, 1.0):g}" for data in datas]
        several = len(seeds) > 1
        return {
            "data": "; ".join(data.sentence() for data in datas),
            "backbone": _each(datas, self._backbone),
            "image_size": _each(datas, lambda data: "none" if data.is_ready else f"{self.trunk.image_size} pixels"),
            "views": _each(datas, self._views),
            "epochs": f"{self.epochs}, batches of {self.batch_size}",
            "recipe": f"SimGCD's {self.recipe}; epsilon {' / '.join(epsilons)} where the table does not say otherwise",
            "k_rule": k_rule,
            "selection": SELECTION,
            "seeds": ", ".join(map(str, seeds))
            + ("; mean ± sample standard deviation, in percent" if several else "; a single run, in percent"),
        }

    def _backbone(self, data: BenchData) -> str:
        items = data.collection.catalog.items
        if isinstance(items, Features):
            return f"none (ready features of {items.values.shape[1]} numbers; only heads are trained)"
        random = " with random weights" if self.trunk.random_weights else ""
        blocks = "the last block" if self.trunk.n_tuned == 1 else f"the last {self.trunk.n_tuned} blocks"
        return f"{self.trunk.name}{random}, {blocks} tuned"

    def _views(self, data: BenchData) -> str:
        if data.is_ready:
            return "none"
        return "fresh in every epoch" if self.online else f"{self.backbone.views} of each image, cached"


def _each(datas: Sequence[BenchData], say: Callable[[BenchData], str]) -> str:
    """One text if it is the same for all data."""
    return "; ".join(dict.fromkeys(logger.info(data) for data in datas))


def read_methods(text: str) -> tuple[str, ...]:
    """simgcd,gcd as on a command line, each once."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def read_epsilons(text: str) -> tuple[float, ...]:
    """0,1,2 as on a command line, each once."""
    found = []
    for part in (part.strip() for part in text.split(",") if part.strip()):
        try:
            value = float(part)
        except ValueError:
            value = -1.0
        if not (isfinite(value) and value >= 0):
            raise ConfigError(f"Weights of the entropy term are numbers of 0 or more, as 0,1,2; got '{part}'.")
        found.append(value)
    return tuple(dict.fromkeys(found))
