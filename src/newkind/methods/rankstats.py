"""RS+: rank statistics (AutoNovel, Han et al. 2021) with one head for known and new categories.

    L = cross-entropy (labelled) + pair loss (unlabelled) + w(t) MSE(p, p'),  w(t) = lambda exp(-5 (1 - t/T)^2)

| | original | here | why |
|---|---|---|---|
| head | one linear layer for known, one for new classes, after a ReLU | one for all categories (RS+), after a ReLU (`head`, `relu`) | new classes are not told apart beforehand |
| pairs | of unlabelled samples | the same (`pairs_over`; a public script for this setting pairs all) | |
| views | pair labels and cross-entropy from the first of two views | every ordered pair of views takes part | more views are possible |
| consistency | of both heads, weight 5 (CIFAR-10), 25 (CIFAR-100) | of the one head, 5 (a public script counts it twice: weight 10) | settings of ten classes |
| ramp-up | 50 of 200 epochs (CIFAR-10), 300 of 400 (CIFAR-100) | 50 epochs | |
| learning rate | 0.1 for 128 images | 0.001 | with 0.1 nearly all images end in one to four categories |
| schedule | two steps | cosine | one schedule for all methods |
| weight decay | 1e-4 | the same | |

The head is linear, and class features of DINOv2 ViT-S/14 have a length of 35 after the ReLU, so that steps at a rate of 0.1 saturate the
softmax. Held-out known classes of a set of clothing (20 epochs, two folds), All: 43 with 0.1 and with 0.01, 53 with 0.001, 48 with 0.0001.
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
from newkind.methods.heads import CosineClassifier, LinearClassifier
from newkind.methods.method import Batch, LossTerms, MethodConfig, gather_views
from newkind.methods.prototypes import PrototypeMethod
from newkind.optimizer_config import OptimizerConfig
from newkind.setting import setting

__all__ = ["RankStats", "RankStatsConfig"]


@dataclass(frozen=True, kw_only=True)
class RankStatsConfig(MethodConfig):
    """Settings of RS+. The defaults are those of the original for ten classes, with one head.

    Parameters
    ----------
    head : {"linear", "cosine"}, default="linear"
        Classifier: a linear layer, or cosines with prototypes.
    relu : bool, default=True
        Whether features pass a ReLU before they are ranked and classified.
    temperature : float, default=1.0
        Temperature of the softmax over logits; 0.1 is usual for cosines.
    top_k : int, default=5
        Number of largest feature dimensions that must agree.
    rank_by : {"value", "magnitude"}, default="value"
        How dimensions are ranked; after the original's ReLU both are the same.
    pairs_over : {"unlabelled", "all"}, default="unlabelled"
        Samples whose pairs take part.
    pair_weight : float, default=1.0
        Weight of the pair loss.
    consistency_weight : float, default=5.0
        Weight lambda of the consistency term: 5 for 10-class and 25 for 100-class data in the original.
    ramp_up_epochs : int, default=50
        Length T of the ramp-up: 50 for 10-class and 300 for 100-class data in the original; a shorter training ramps up
        over all of its epochs.
    """

    head: Literal["linear", "cosine"] = "linear"
    relu: bool = True
    temperature: float = setting(1.0, above=0)
    top_k: int = setting(5, at_least=1, at_most=10**6)
    rank_by: Literal["value", "magnitude"] = "value"
    pairs_over: Literal["unlabelled", "all"] = "unlabelled"
    pair_weight: float = setting(1.0, at_least=0)
    consistency_weight: float = setting(5.0, at_least=0)
    ramp_up_epochs: int = setting(50, at_least=0, at_most=10**6)


class RankStats(PrototypeMethod):
    """Prototypes on the class feature, whose largest dimensions also show which samples belong together."""

    optimizer: ClassVar[OptimizerConfig] = OptimizerConfig(learning_rate=0.001, weight_decay=1e-4, decay_vectors=True)
    config: RankStatsConfig

    def __init__(self, dim: int, n_categories: int, config: RankStatsConfig) -> None:
        super().__init__(dim, n_categories, config)
        if config.top_k > dim:
            raise ConfigError(
                f"`top_k` is {config.top_k}, but features have only {dim} dimensions.",
                code="out-of-range",
                setting="top_k",
            )
        kind = LinearClassifier if config.head == "linear" else CosineClassifier
        self.classifier = kind(dim, n_categories)

    def logits(self, features: Tensor) -> Tensor:
        return super().logits(features.relu() if self.config.relu else features)

    def loss_terms(self, features: Tensor, batch: Batch) -> LossTerms:
        config = self.config
        features = features.relu() if config.relu else features
        logits = gather_views(self.classifier(features), batch)  # (V * B, K)
        top = top_dimensions(features, top_k=config.top_k, by_magnitude=config.rank_by == "magnitude")
        top = gather_views(top, batch)  # (V * B, top_k)
        labels = batch.gather(batch.labels)  # (B,)
        p = (logits / config.temperature).softmax(dim=-1)
        all_labels = labels.repeat(batch.n_views)  # (V * B,)
        known = all_labels >= 0
        parts = {
            "supervised": supervised_loss(logits[known], all_labels[known], temperature=config.temperature),
            "pairs": _pairs(p, top, (labels < 0) | (config.pairs_over == "all"), batch.n_views),
            "consistency": consistency_loss(p, batch.n_views),
        }
        growth = ramp_up(batch.epoch, n_epochs=min(config.ramp_up_epochs, batch.n_epochs))
        weights = {"pairs": config.pair_weight, "consistency": config.consistency_weight * growth}
        return LossTerms(parts, weights | {"supervised": 1.0})


def _pairs(p: Tensor, top: Tensor, part: Tensor, n_views: int) -> Tensor:
    """Pair loss of the samples `part` (B,), averaged over ordered pairs of views, of p (V * B, K) and top (V * B, k)."""
    p, top = p.view(n_views, -1, p.shape[1])[:, part], top.view(n_views, -1, top.shape[1])[:, part]  # (V, U, ...)
    same = [same_dimensions(view) for view in top]  # (U, U) each
    return torch.stack([pair_loss(p[a], p[b], same[a]) for a, b in permutations(range(n_views), 2)]).mean()
