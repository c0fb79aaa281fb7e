"""RS+: rank statistics (AutoNovel, Han et al. 2021) with one head for known and new categories.

    L = cross-entropy (labelled) + pair loss (unlabelled) + w(t) MSE(p, p'),  w(t) = lambda exp(-5 (1 - t/T)^2)

Choices made here: the head is a cosine classifier with a temperature; the features are those of the backbone, without the
original's ReLU, ranked by value; each ordered pair of views takes part (the original uses one), with the pair labels of its
first view; the cross-entropy is over all views.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Literal

import torch
from torch import Tensor

from newkind.errors import ConfigError
from newkind.losses.consistency import consistency_loss, ramp_up
from newkind.losses.pairwise import pair_loss
from newkind.losses.rank_statistics import same_dimensions, top_dimensions
from newkind.losses.supervised import supervised_loss
from newkind.methods.heads import CosineClassifier
from newkind.methods.method import Batch, LossTerms, MethodConfig, gather_views
from newkind.methods.prototypes import PrototypeMethod
from newkind.setting import setting

__all__ = ["RankStats", "RankStatsConfig"]


@dataclass(frozen=True, kw_only=True)
class RankStatsConfig(MethodConfig):
    """Settings of RS+. The defaults are those of the original for ten classes.

    Parameters
    ----------
    temperature : float, default=0.1
        Temperature of the softmax over cosines.
    top_k : int, default=5
        Number of largest feature dimensions that must agree.
    rank_by : {"value", "magnitude"}, default="value"
        How dimensions are ranked; after the original's ReLU both are the same.
    pair_weight : float, default=1.0
        Weight of the pair loss.
    consistency_weight : float, default=5.0
        Weight lambda of the consistency term: 5 for 10-class and 25 for 100-class data in the original.
    ramp_up_epochs : int, default=50
        Length T of the ramp-up: 50 for 10-class and 300 for 100-class data in the original; a shorter training ramps up
        over all of its epochs.
    """

    temperature: float = setting(0.1, above=0)
    top_k: int = setting(5, at_least=1)
    rank_by: Literal["value", "magnitude"] = "value"
    pair_weight: float = setting(1.0, at_least=0)
    consistency_weight: float = setting(5.0, at_least=0)
    ramp_up_epochs: int = setting(50, at_least=0)


class RankStats(PrototypeMethod):
    """Prototypes on the class feature, whose largest dimensions also show which samples belong together."""

    config: RankStatsConfig

    def __init__(self, dim: int, n_categories: int, config: RankStatsConfig) -> None:
        super().__init__(dim, n_categories, config)
        if config.top_k > dim:
            raise ConfigError(
                f"`top_k` is {config.top_k}, but features have only {dim} dimensions.",
                code="out-of-range",
                setting="top_k",
            )
        self.classifier = CosineClassifier(dim, n_categories)

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


def _pairs(p: Tensor, top: Tensor, free: Tensor, n_views: int) -> Tensor:
    """Pair loss of unlabelled samples, averaged over ordered pairs of views, of p (V * B, K), top (V * B, k), free (B,)."""
    p, top = p.view(n_views, -1, p.shape[1])[:, free], top.view(n_views, -1, top.shape[1])[:, free]  # (V, U, ...)
    same = [same_dimensions(view) for view in top]  # (U, U) each
    return torch.stack([pair_loss(p[a], p[b], same[a]) for a, b in permutations(range(n_views), 2)]).mean()
