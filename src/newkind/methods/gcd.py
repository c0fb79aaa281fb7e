"""GCD (Vaze et al. 2022): contrastive training of the representation, then semi-supervised k-means on its features."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from newkind.methods.centres import Centres, ClusteringConfig
from newkind.methods.method import Batch, LossTerms, Method, gather_views
from newkind.methods.representation import RepresentationConfig, build_projector, representation_parts

__all__ = ["GCD", "GCDConfig"]


@dataclass(frozen=True, kw_only=True)
class GCDConfig(RepresentationConfig, ClusteringConfig):
    """Both stages; the defaults are those of the published runs, but for the number of restarts."""


class GCD(Method):
    """(1 - lambda) InfoNCE + lambda SupCon on a projector; categories are centres among the backbone's features."""

    settles = True

    def __init__(self, dim: int, config: GCDConfig) -> None:
        super().__init__()
        self.config = config
        self.n_categories = config.n_categories
        self.projector = build_projector(dim, config)
        self.centres = Centres(dim, config.n_categories)

    @property
    def temperature(self) -> float:
        return float(self.centres.scale)

    def logits(self, features: Tensor) -> Tensor:
        return self.centres(features)  # type: ignore[no-any-return]

    def loss_terms(self, features: Tensor, batch: Batch) -> LossTerms:
        parts = representation_parts(gather_views(self.projector(features), batch), batch, self.config)
        u, s = 1 - self.config.supervised_weight, self.config.supervised_weight
        return LossTerms(parts, {"infonce": u, "supcon": s})

    def settle(self, features: Tensor, labels: Tensor, *, n_known: int, seed: int) -> None:
        self.centres.fit(features, labels, n_known=n_known, config=self.config, seed=seed, clamp=True)
