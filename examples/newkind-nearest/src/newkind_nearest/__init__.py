"""Nearest class means: an example of a method for Newkind in a package of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from newkind.clustering import k_means
from newkind.methods.method import AllImages, Batch, LossTerms, Method, MethodConfig
from newkind.setting import setting

__all__ = ["NearestConfig", "NearestMeans"]


@dataclass(frozen=True, kw_only=True)
class NearestConfig(MethodConfig):
    """Settings of nearest class means.

    Parameters
    ----------
    sharpness : float, default=20.0
        Factor of the cosines before the softmax.
    n_init : int, default=5
        Number of restarts of k-means.
    """

    sharpness: float = setting(20.0, above=0)
    n_init: int = setting(5, at_least=1)


class NearestMeans(Method):
    """Means of the labelled images of known classes; k-means of all images that are far from them for the new ones."""

    title = "Nearest means"
    config_class = NearestConfig
    trains: ClassVar[bool] = False
    needs_training: ClassVar[bool] = False
    means: Tensor

    def __init__(self, dim: int, n_categories: int, config: Any) -> None:
        super().__init__(dim, n_categories, config)
        self.register_buffer("means", torch.zeros(n_categories, dim))  # buffers are saved with the run

    def start(self, images: AllImages) -> None:
        x = F.normalize(images.features(), dim=1)  # (n, d)
        if not len(x):  # one process has the features of all; the means are copied to the others
            return
        known = torch.stack([x[images.labels == k].mean(dim=0) for k in range(images.n_known)])
        known = F.normalize(known, dim=1)
        nearest = (x @ known.T).max(dim=1).values
        n_new = self.n_categories - images.n_known
        is_far = (images.labels < 0) & (nearest <= nearest[images.labels < 0].median())
        if n_new == 0 or int(is_far.sum()) < n_new:
            is_far = images.labels < 0
        new = k_means(x[is_far], n_new, n_init=self.config.n_init, seed=images.seed).centers if n_new else x[:0]
        self.means.copy_(torch.cat([known, F.normalize(new.to(x), dim=1)]))

    def loss_terms(self, features: Tensor, batch: Batch) -> LossTerms:  # noqa: ARG002
        return LossTerms({"none": features.sum() * 0}, {"none": 0.0})

    def logits(self, features: Tensor) -> Tensor:
        return self.config.sharpness * F.normalize(features, dim=1) @ self.means.T.to(features)
