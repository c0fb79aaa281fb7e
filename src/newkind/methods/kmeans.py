"""k-means on the L2-normalised features of the frozen backbone: the baseline. Labels only name the clusters."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from newkind.errors import ConfigError
from newkind.methods.centres import CentreMethod, Centres, ClusteringConfig
from newkind.methods.method import AllImages, Batch, LossTerms

__all__ = ["KMeans"]


class KMeans(CentreMethod):
    """Clusters all images, labelled and unlabelled; nothing is trained."""

    trains: ClassVar[bool] = False
    needs_training: ClassVar[bool] = False
    clamp: ClassVar[bool] = False

    def __init__(self, dim: int, n_categories: int, config: ClusteringConfig) -> None:
        super().__init__(dim, n_categories, config)
        self.centres = Centres(dim, n_categories)

    def start(self, images: AllImages) -> None:
        self.settle(images)

    def loss_terms(self, features: Tensor, batch: Batch) -> LossTerms:  # noqa: ARG002
        raise ConfigError("k-means has nothing to train.", code="nothing-to-train")
