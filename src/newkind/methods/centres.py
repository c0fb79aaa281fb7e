"""Categories as cluster centres among L2-normalised features: the last stage of GCD, and all of k-means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor, nn
from torch.nn import functional as F

from newkind import distributed
from newkind.clustering.kmeans import k_means, known_first
from newkind.methods.method import AllImages, Method, MethodConfig
from newkind.setting import setting

__all__ = ["CentreMethod", "Centres", "ClusteringConfig", "fit_temperature"]

COLDEST, HOTTEST = 1e-3, 1.0
"""Bounds of the temperature of squared distances, which lie in [0, 4] for unit vectors."""

MOST_GIVEN = 20_000
"""Largest number of labelled images that the temperature is fitted to."""


@dataclass(frozen=True, kw_only=True)
class ClusteringConfig(MethodConfig):
    """Settings of k-means.

    Parameters
    ----------
    n_init : int, default=10
        Number of restarts, of which the one with the lowest inertia is used (100 in the published runs of GCD).
    max_iter : int, default=200
        Maximum number of iterations per restart.
    """

    n_init: int = setting(10, at_least=1, at_most=1000)
    max_iter: int = setting(200, at_least=1, at_most=10**6)


class Centres(nn.Module):
    """K centres, and the temperature that turns distances into probabilities.

    Parameters
    ----------
    dim : int
        Dimension of the features.
    n_categories : int
        Number of centres K.
    """

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

    def fit(self, features: Tensor, images: AllImages, config: ClusteringConfig, *, clamp: bool) -> None:
        """Compute the centres; centre i < n_known is known class i.

        Parameters
        ----------
        features : Tensor of shape (n, d)
            Features of all images.
        images : AllImages
            Their labels, the number of known classes and the seed.
        config : ClusteringConfig
            Settings of k-means.
        clamp : bool
            Whether labelled samples stay in their class (semi-supervised k-means). Otherwise labels have no part in the
            clustering, and each known class gets the cluster with most of its labelled samples afterwards.
        """
        labels, n_known, k = images.labels, images.n_known, len(self.centers)
        x = F.normalize(features.float(), dim=-1)
        found = k_means(
            x,
            k,
            labels=labels if clamp else None,
            n_known=n_known if clamp else 0,
            n_init=config.n_init,
            max_iter=config.max_iter,
            seed=images.seed,
        )
        centers = found.centers if clamp else found.centers[known_first(found.labels, labels, k, n_known)]
        self.centers.copy_(centers)
        given = torch.nonzero(labels >= 0)[:, 0]
        if len(given) > MOST_GIVEN:  # one number needs no more
            order = np.random.default_rng((images.seed, 0xCE7)).permutation(len(given))[:MOST_GIVEN]
            given = given[torch.from_numpy(order)]
        logits = self(x[given].to(self.centers.device)).cpu()
        self.scale.fill_(fit_temperature(logits, labels[given]))


class CentreMethod(Method):
    """Base class of methods that cluster all images at the end. Subclasses set `centres`, `config` and `n_categories`."""

    clamp: ClassVar[bool]
    """Whether labelled samples stay in their class."""
    config: ClusteringConfig
    centres: Centres

    @property
    def temperature(self) -> float:
        return float(self.centres.scale)

    def logits(self, features: Tensor) -> Tensor:
        return self.centres(features)  # type: ignore[no-any-return]

    def settle(self, images: AllImages) -> None:
        features = images.features()
        if distributed.main_process():
            self.centres.fit(features, images, self.config, clamp=self.clamp)


def fit_temperature(logits: Tensor, labels: Tensor) -> float:
    """Temperature that maximises the likelihood of labels (n,) under logits (n, K)."""
    if len(labels) == 0:
        return 0.1
    found = minimize_scalar(
        lambda log_t: float(F.cross_entropy(logits.double() / float(np.exp(log_t)), labels.long())),
        bounds=(np.log(COLDEST), np.log(HOTTEST)),
        method="bounded",
    )
    return float(np.exp(found.x))
