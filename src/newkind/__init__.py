"""Newkind discovers categories: it assigns partly labelled images to the known classes and to new ones it finds."""

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from newkind.api import continue_run, discover, estimate_n_categories, load, predict, tune
    from newkind.clustering.semi_supervised_kmeans import SemiSupervisedKMeans
    from newkind.config import BackboneConfig, TrainingConfig
    from newkind.discovery import Discovery
    from newkind.sklearn import GCD, ORCA, UNO, DebiasPL, KMeans, RankStats, SimGCD

__all__ = [
    "GCD",
    "ORCA",
    "UNO",
    "BackboneConfig",
    "DebiasPL",
    "Discovery",
    "KMeans",
    "RankStats",
    "SemiSupervisedKMeans",
    "SimGCD",
    "TrainingConfig",
    "__version__",
    "continue_run",
    "discover",
    "estimate_n_categories",
    "load",
    "predict",
    "tune",
]

__version__ = "0.1.0"

logging.getLogger(__name__).addHandler(logging.NullHandler())

_HOMES = {
    "BackboneConfig": "config",
    "Discovery": "discovery",
    "SemiSupervisedKMeans": "clustering.semi_supervised_kmeans",
    "TrainingConfig": "config",
    **dict.fromkeys(("DebiasPL", "GCD", "KMeans", "ORCA", "RankStats", "SimGCD", "UNO"), "sklearn"),
    **dict.fromkeys(("continue_run", "discover", "estimate_n_categories", "load", "predict", "tune"), "api"),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import newkind` stays light."""
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(f"newkind.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'newkind' has no attribute '{name}'")


def __dir__() -> list[str]:
    """List the public names, also those that are not imported yet."""
    return sorted(__all__)
