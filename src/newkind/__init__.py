"""Newkind discovers categories: it assigns partly labelled images to the known classes and to new ones it finds."""

import logging
from typing import Any

__all__ = [
    "BackboneConfig",
    "Discovery",
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
    "BackboneConfig": "newkind.config",
    "Discovery": "newkind.discovery",
    "SemiSupervisedKMeans": "newkind.clustering.semi_supervised_kmeans",
    "SimGCD": "newkind.sklearn",
    "TrainingConfig": "newkind.config",
    "continue_run": "newkind.api",
    "discover": "newkind.api",
    "estimate_n_categories": "newkind.api",
    "load": "newkind.api",
    "predict": "newkind.api",
    "tune": "newkind.api",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import newkind` stays light."""
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'newkind' has no attribute '{name}'")


def __dir__() -> list[str]:
    """List the public names, also those that are not imported yet."""
    return sorted({*globals(), *__all__})
