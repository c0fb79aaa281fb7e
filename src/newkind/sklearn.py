"""Methods as scikit-learn estimators: `SimGCD(n_categories=...).fit(X, y)`, with y = -1, None, NaN or "" for unlabelled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from newkind.estimator import DiscoveryEstimator

if TYPE_CHECKING:
    from newkind.clustering.semi_supervised_kmeans import SemiSupervisedKMeans

__all__ = [
    "GCD",
    "ORCA",
    "UNO",
    "DebiasPL",
    "DiscoveryEstimator",
    "KMeans",
    "RankStats",
    "SemiSupervisedKMeans",
    "SimGCD",
]


class SimGCD(DiscoveryEstimator):
    """SimGCD: a parametric classifier on tuned features. See `DiscoveryEstimator` for parameters and attributes.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = np.arange(120) % 4
    >>> X = rng.normal(size=(4, 16))[truth] + 0.1 * rng.normal(size=(120, 16))
    >>> y = np.where((truth < 2) & (np.arange(120) < 60), truth, -1)  # two known classes, half labelled
    >>> model = SimGCD(n_categories=4, epochs=2, device="cpu").fit(X, y)
    >>> model.classes_.tolist()
    [0, 1, 2, 3]
    >>> model.labels_.shape
    (120,)
    """

    _method = "simgcd"


class GCD(DiscoveryEstimator):
    """GCD: contrastive training, then semi-supervised k-means. See `DiscoveryEstimator` for parameters and attributes."""

    _method = "gcd"


class KMeans(DiscoveryEstimator):
    """k-means on frozen features. See `DiscoveryEstimator` for parameters and attributes."""

    _method = "kmeans"


class RankStats(DiscoveryEstimator):
    """RS+: rank statistics. See `DiscoveryEstimator` for parameters and attributes."""

    _method = "rankstats"


class UNO(DiscoveryEstimator):
    """UNO+: swapped prediction of self-labels. See `DiscoveryEstimator` for parameters and attributes."""

    _method = "uno"


class ORCA(DiscoveryEstimator):
    """ORCA: an adaptive margin. See `DiscoveryEstimator` for parameters and attributes."""

    _method = "orca"


class DebiasPL(DiscoveryEstimator):
    """DebiasPL: debiased pseudo-labels. See `DiscoveryEstimator` for parameters and attributes."""

    _method = "debiaspl"


def __getattr__(name: str) -> Any:
    """Import `SemiSupervisedKMeans`, which needs torch, on first use."""
    if name != "SemiSupervisedKMeans":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from newkind.clustering.semi_supervised_kmeans import SemiSupervisedKMeans

    return SemiSupervisedKMeans


def __dir__() -> list[str]:
    return sorted(__all__)
