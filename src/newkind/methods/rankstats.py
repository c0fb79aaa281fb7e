"""RS+: rank statistics (AutoNovel, Han et al. 2021) with one head for known and new categories.

    L = cross-entropy (labelled) + pair loss (unlabelled) + w(t) MSE(p, p'),  w(t) = lambda exp(-5 (1 - t/T)^2)

Left open by the sources, and chosen here: the head is a cosine classifier at a temperature; the features are those of the
backbone, without the original's ReLU, ranked by value; each ordered pair of views takes part (the original takes one), with
the pair labels of its first view; the cross-entropy is over all views.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import ClassVar, Literal

import torch
from torch import Tensor

from newkind.errors import ConfigError
from newkind.losses.consistency import consistency_loss, ramp_up
from newkind.losses.pairwise import pair_loss
from newkind.losses.rank_statistics import same_dimensions, top_dimensions
from newkind.losses.supervised import supervised_loss
from newkind.methods.heads import CosineClassifier
from newkind.methods.method import Batch, LossTerms, Method, MethodConfig, gather_views

__all__ = ["RankStats", "RankStatsConfig"]


@dataclass(frozen=True, kw_only=True)
class RankStatsConfig(MethodConfig):
    """Every hyper-parameter; the defaults are the original's for ten classes."""

    temperature: float = 0.1
    """Of the softmax over cosines."""
    top_k: int = 5
    """How many feature dimensions must be the same ones."""
    rank_by: Literal["value", "magnitude"] = "value"
    """By what dimensions are ranked; after the original's ReLU the two are one."""
    pair_weight: float = 1.0
    """Of the pair loss."""
    consistency_weight: float = 5.0
    """lambda: 5 for 10-class and 25 for 100-class data in the original."""
    ramp_up_epochs: int = 50
    """T: 50 for 10-class and 300 for 100-class data in the original. A shorter training ramps up over all of it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.temperature > 0:
            raise ConfigError(f"temperature must be larger than 0; got {self.temperature}.")
        if self.top_k < 1:
            raise ConfigError(f"top_k is at least 1; got {self.top_k}.")
        if self.rank_by not in ("value", "magnitude"):
            raise ConfigError(f"rank_by is value or magnitude; got {self.rank_by}.")
        for name in ("pair_weight", "consistency_weight", "ramp_up_epochs"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"{name} is 0 or larger; got {getattr(self, name)}.")


class RankStats(Method):
    """Prototypes on the class feature, which also tells which samples belong together."""

    merges: ClassVar[bool] = True

    def __init__(self, dim: int, config: RankStatsConfig) -> None:
        super().__init__()
        if config.top_k > dim:
            raise ConfigError(f"top_k is {config.top_k}, but features have only {dim} dimensions.")
        self.config = config
        self.n_categories = config.n_categories
        self.classifier = CosineClassifier(dim, config.n_categories)

    @property
    def temperature(self) -> float:
        return self.config.temperature

    def logits(self, features: Tensor) -> Tensor:
        return self.classifier(features)  # type: ignore[no-any-return]

    def loss_terms(self, features: Tensor, batch: Batch) -> LossTerms:
        config = self.config
        logits = gather_views(self.classifier(features), batch)  # (V * B, K)
        top = top_dimensions(features, top_k=config.top_k, by_magnitude=config.rank_by == "magnitude")
        top = gather_views(top, batch)  # (V * B, top_k)
        labels = batch.gather(batch.labels)  # (B,)
        p = (logits / config.temperature).softmax(dim=-1)
        all_labels = labels.repeat(batch.n_views)  # (V * B,)
        known = all_labels >= 0
        parts = {
            "supervised": supervised_loss(logits[known], all_labels[known], temperature=config.temperature),
            "pairs": _pairs(p, top, labels < 0, batch.n_views),
            "consistency": consistency_loss(p, batch.n_views),
        }
        growth = ramp_up(batch.epoch, n_epochs=min(config.ramp_up_epochs, batch.n_epochs))
        weights = {"pairs": config.pair_weight, "consistency": config.consistency_weight * growth}
        return LossTerms(parts, weights | {"supervised": 1.0})

    def merge_categories(self, groups: list[list[int]], sizes: list[int]) -> None:
        self.classifier.merge(groups, sizes)
        self.n_categories = len(groups)


def _pairs(p: Tensor, top: Tensor, free: Tensor, n_views: int) -> Tensor:
    """The pair loss of the unlabelled samples, averaged over ordered pairs of views. p (V * B, K), top (V * B, k), free (B,)"""
    p, top = p.view(n_views, -1, p.shape[1])[:, free], top.view(n_views, -1, top.shape[1])[:, free]  # (V, U, ...)
    same = [same_dimensions(view) for view in top]  # (U, U) each
    return torch.stack([pair_loss(p[a], p[b], same[a]) for a, b in permutations(range(n_views), 2)]).mean()
