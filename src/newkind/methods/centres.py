"""Categories as cluster centres among L2-normalised features: what GCD ends with, and all that k-means is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor, nn
from torch.nn import functional as F

from newkind.clustering.kmeans import k_means, known_first
from newkind.errors import ConfigError
from newkind.methods.method import MethodConfig

__all__ = ["Centres", "ClusteringConfig", "fit_temperature"]

COLDEST, HOTTEST = 1e-3, 1.0
"""Between which the temperature of squared distances is looked for; those of unit vectors lie in [0, 4]."""


@dataclass(frozen=True, kw_only=True)
class ClusteringConfig(MethodConfig):
    """How the centres are found."""

    n_init: int = 10
    """Restarts, of which the one with the lowest inertia is kept (100 in the published runs of GCD)."""
    max_iter: int = 200
    size_cap: float | None = None
    """No category may hold more than this many times N / K images; None for no cap, as published."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_init < 1 or self.max_iter < 1:
            raise ConfigError(f"n_init and max_iter are at least 1; got {self.n_init} and {self.max_iter}.")


class Centres(nn.Module):
    """K centres, and the temperature with which distances become probabilities."""

    centers: Tensor
    scale: Tensor

    def __init__(self, dim: int, n_categories: int) -> None:
        super().__init__()
        self.register_buffer("centers", torch.zeros(n_categories, dim))
        self.register_buffer("scale", torch.tensor(0.1))

    def forward(self, features: Tensor) -> Tensor:
        """(M, d) -> (M, K): minus the squared distance of the normalised feature to each centre, up to a constant."""
        x, c = F.normalize(features.float(), dim=-1), self.centers
        return 2 * x @ c.T - (c * c).sum(dim=1)

    def fit(
        self, features: Tensor, labels: Tensor, *, n_known: int, config: ClusteringConfig, seed: int, clamp: bool
    ) -> None:
        """Finds the centres; centre i < n_known is known class i.

        `clamp`: labelled samples stay in their class (semi-supervised k-means). Otherwise labels have no part in the
        clustering, and afterwards each known class takes the cluster that most of its labelled samples are in.
        """
        x = F.normalize(features.float(), dim=-1)
        found = k_means(
            x,
            config.n_categories,
            labels=labels if clamp else None,
            n_known=n_known if clamp else 0,
            n_init=config.n_init,
            max_iter=config.max_iter,
            size_cap=config.size_cap,
            seed=seed,
        )
        centers = found.centers
        if not clamp:
            centers = centers[known_first(found.labels, labels, config.n_categories, n_known)]
        self.centers.copy_(centers)
        self.scale.fill_(fit_temperature(self(x[labels >= 0]), labels[labels >= 0]))


def fit_temperature(logits: Tensor, labels: Tensor) -> float:
    """The temperature under which the labelled samples' classes are most likely. logits (n, K), labels (n,)."""
    if len(labels) == 0:
        return 0.1
    found = minimize_scalar(
        lambda log_t: float(F.cross_entropy(logits.double() / float(np.exp(log_t)), labels.long())),
        bounds=(np.log(COLDEST), np.log(HOTTEST)),
        method="bounded",
    )
    return float(np.exp(found.x))
