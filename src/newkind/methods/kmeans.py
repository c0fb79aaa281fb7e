"""k-means: the floor. Lloyd's algorithm on the frozen backbone's L2-normalised features; labels only name the clusters."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from newkind.methods.centres import Centres, ClusteringConfig
from newkind.methods.method import Batch, LossTerms, Method

__all__ = ["KMeans"]


class KMeans(Method):
    """Nothing is trained; `settle` clusters all images, labelled and unlabelled."""

    trains: ClassVar[bool] = False
    settles = True

    def __init__(self, dim: int, config: ClusteringConfig) -> None:
        super().__init__()
        self.config = config
        self.n_categories = config.n_categories
        self.centres = Centres(dim, config.n_categories)

    @property
    def temperature(self) -> float:
        return float(self.centres.scale)

    def logits(self, features: Tensor) -> Tensor:
        return self.centres(features)  # type: ignore[no-any-return]

    def loss_terms(self, features: Tensor, batch: Batch) -> LossTerms:
        raise NotImplementedError("k-means has nothing to train.")

    def settle(self, features: Tensor, labels: Tensor, *, n_known: int, seed: int) -> None:
        self.centres.fit(features, labels, n_known=n_known, config=self.config, seed=seed, clamp=False)
