"""Clustering of features: k-means, a mixture with target sizes, whitening, and the number of categories."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from newkind.clustering.estimate import Estimate
    from newkind.clustering.kmeans import Clusters, assign, k_means, known_first
    from newkind.clustering.known_sizes import KnownSizes, estimate_known_sizes
    from newkind.clustering.mixture import Mixture, TargetSizes, fit_mixture, refine_mixture, target_sizes
    from newkind.clustering.n_categories import estimate_n_categories
    from newkind.clustering.published_search import estimate_by_search
    from newkind.clustering.semi_supervised_kmeans import SemiSupervisedKMeans
    from newkind.clustering.ward import WardTree, ward_tree
    from newkind.clustering.whitening import within_class_whitening

__all__ = [
    "Clusters",
    "Estimate",
    "KnownSizes",
    "Mixture",
    "SemiSupervisedKMeans",
    "TargetSizes",
    "WardTree",
    "assign",
    "estimate_by_search",
    "estimate_known_sizes",
    "estimate_n_categories",
    "fit_mixture",
    "k_means",
    "known_first",
    "refine_mixture",
    "target_sizes",
    "ward_tree",
    "within_class_whitening",
]

_MODULES = {
    "Clusters": "kmeans",
    "Estimate": "estimate",
    "KnownSizes": "known_sizes",
    "Mixture": "mixture",
    "SemiSupervisedKMeans": "semi_supervised_kmeans",
    "TargetSizes": "mixture",
    "WardTree": "ward",
    "assign": "kmeans",
    "estimate_by_search": "published_search",
    "estimate_known_sizes": "known_sizes",
    "estimate_n_categories": "n_categories",
    "fit_mixture": "mixture",
    "k_means": "kmeans",
    "known_first": "kmeans",
    "refine_mixture": "mixture",
    "target_sizes": "mixture",
    "ward_tree": "ward",
    "within_class_whitening": "whitening",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `Estimate` costs no import of torch."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
