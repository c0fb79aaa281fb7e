"""Newkind sorts a partly labelled pile of images into the known categories and the new ones it discovers."""

from typing import Any

__all__ = ["SemiSupervisedKMeans", "SimGCD", "__version__", "discover", "load", "tune"]

__version__ = "0.1.0"

_HOMES = {
    "SemiSupervisedKMeans": "newkind.clustering.semi_supervised_kmeans",
    "SimGCD": "newkind.sklearn",
    "discover": "newkind.api",
    "load": "newkind.api",
    "tune": "newkind.api",
}


def __getattr__(name: str) -> Any:
    """Imports what is asked for when it is asked for: `import newkind` itself stays light."""
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'newkind' has no attribute '{name}'")
