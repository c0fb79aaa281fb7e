"""GCD (Vaze et al. 2022): contrastive training of the representation, then semi-supervised k-means on its features.

    L = (1 - lambda) InfoNCE + lambda SupCon

| | original | here | why |
|---|---|---|---|
| what is contrasted | 65,536 outputs of a last layer | the same (`projector_width`) | its cosines are computed without forming the outputs |
| weight decay | on all parameters | the same | |
| restarts of k-means | 100 of 200 iterations in the published runs, 10 of 10 by default | 10 of 200 (`n_init`) | time |
| reported state | best Old accuracy on test images | last epoch | a choice by Old accuracy favours known classes |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from newkind.methods.centres import CentreMethod, Centres, ClusteringConfig
from newkind.methods.method import Batch, LossTerms, gather_views
from newkind.methods.representation import RepresentationConfig, build_projector, representation_parts
from newkind.optimizer_config import OptimizerConfig
from newkind.setting import setting

__all__ = ["GCD", "GCDConfig"]


@dataclass(frozen=True, kw_only=True)
class GCDConfig(RepresentationConfig, ClusteringConfig):
    """Settings of both stages. The defaults are those of the published runs, except for the number of restarts.

    Parameters
    ----------
    projector_width : int, default=65536
        Number of outputs of a last layer with unit rows behind the projector, whose directions are contrasted instead; 0
        for no such layer.
    """

    projector_width: int = setting(65536, at_least=0, at_most=2**20)


class GCD(CentreMethod):
    """(1 - lambda) InfoNCE + lambda SupCon on a projector; categories are centres among the features of the backbone."""

    clamp: ClassVar[bool] = True
    costly_readout: ClassVar[bool] = True
    optimizer: ClassVar[OptimizerConfig] = OptimizerConfig(decay_vectors=True)
    config: GCDConfig

    def __init__(self, dim: int, n_categories: int, config: GCDConfig) -> None:
        super().__init__(dim, n_categories, config)
        self.projector = build_projector(dim, config)
        self.centres = Centres(dim, n_categories)

    def loss_terms(self, features: Tensor, batch: Batch) -> LossTerms:
        parts = representation_parts(gather_views(self.projector(features), batch), batch, self.config)
        u, s = 1 - self.config.supervised_weight, self.config.supervised_weight
        return LossTerms(parts, {"infonce": u, "supcon": s})
