"""UNO+ (Fini et al. 2021): swapped prediction of Sinkhorn self-labels, with several heads for all categories.

    L = mean over heads of swapped prediction + the same for heads with more prototypes (over-clustering)

The target of a labelled sample is its class; the target of an unlabelled sample is its self-label, which may be any of the
K categories. Choices made here: every head is a cosine classifier for all K categories on the feature of the backbone (the
original shares the prototypes of known classes and has an MLP in front of the others); there are as many over-clustering
heads, each with `overcluster_factor` * K prototypes, of which the first are the known classes; Sinkhorn runs over the
unlabelled samples of each view, as in the original, or over all samples. `n_heads=1` with `overcluster_factor=0` is one head.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import ClassVar, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from newkind import distributed
from newkind.losses.sinkhorn import sinkhorn
from newkind.losses.swapped import swapped_prediction_loss
from newkind.methods.heads import CosineClassifier
from newkind.methods.method import Batch, LossTerms, Method, MethodConfig, gather_views
from newkind.setting import setting

__all__ = ["UNO", "UNOConfig"]


@dataclass(frozen=True, kw_only=True)
class UNOConfig(MethodConfig):
    """Settings of UNO+. The defaults are those of the original.

    Parameters
    ----------
    temperature : float, default=0.1
        Temperature of the predictions.
    sinkhorn_temperature : float, default=0.05
        Temperature of the self-labels.
    sinkhorn_iterations : int, default=3
        Number of Sinkhorn iterations.
    sinkhorn_over : {"unlabelled", "all"}, default="unlabelled"
        Samples of a view over which categories are used equally.
    n_heads : int, default=4
        Number of heads; the one with the lowest loss over the last epoch is used for predictions.
    overcluster_factor : int, default=3
        Number of prototypes of an over-clustering head, as a multiple of K; 0 for no such heads.
    """

    temperature: float = setting(0.1, above=0)
    sinkhorn_temperature: float = setting(0.05, above=0)
    sinkhorn_iterations: int = setting(3, at_least=1)
    sinkhorn_over: Literal["unlabelled", "all"] = "unlabelled"
    n_heads: int = setting(4, at_least=1)
    overcluster_factor: int = setting(3, at_least=0)


class UNO(Method):
    """Heads for K categories, of which one is used for predictions, and over-clustering heads that only help to train.

    Attributes
    ----------
    head_losses : Tensor of shape (n_heads,)
        Sum of each head's loss over the current epoch.
    """

    spare_prototypes: ClassVar[bool] = True
    config: UNOConfig
    head_losses: Tensor

    def __init__(self, dim: int, n_categories: int, config: UNOConfig) -> None:
        super().__init__(dim, n_categories, config)
        self.heads = nn.ModuleList(CosineClassifier(dim, n_categories) for _ in range(config.n_heads))
        n_over = config.n_heads if config.overcluster_factor else 0
        n_prototypes = n_categories * config.overcluster_factor
        self.over_heads = nn.ModuleList(CosineClassifier(dim, n_prototypes) for _ in range(n_over))
        self.register_buffer("head_losses", torch.zeros(config.n_heads))

    @property
    def temperature(self) -> float:
        return self.config.temperature

    @property
    def classifier(self) -> CosineClassifier:
        """The head that is used for predictions."""
        return cast(CosineClassifier, self.heads[int(self.head_losses.argmin())])

    def logits(self, features: Tensor) -> Tensor:
        return self.classifier(features)  # type: ignore[no-any-return]

    def begin_epoch(self, epoch: int) -> None:  # noqa: ARG002
        self.head_losses.zero_()

    def loss_terms(self, features: Tensor, batch: Batch) -> LossTerms:
        heads = [*self.heads, *self.over_heads]
        joined = gather_views(torch.cat([head(features) for head in heads], dim=-1), batch)  # (V * B, all prototypes)
        labels = batch.gather(batch.labels)  # (B,)
        ends = list(accumulate(len(cast(CosineClassifier, head).prototypes) for head in heads))
        each = [joined[:, start:end] for start, end in pairwise([0, *ends])]
        losses = torch.stack([self._swapped(logits, labels, batch.n_views) for logits in each])  # (heads,)
        own, over = losses[: len(self.heads)], losses[len(self.heads) :]
        # Gathered, so that all processes use the same head for predictions.
        self.head_losses += distributed.gather(own[None].float()).mean(dim=0)
        parts = {"swapped": own.mean()} | ({"overclustered": over.mean()} if len(over) else {})
        return LossTerms(parts, {"swapped": 1.0, "overclustered": 1.0})

    def _swapped(self, logits: Tensor, labels: Tensor, n_views: int) -> Tensor:
        by_view = logits.reshape(n_views, -1, logits.shape[1])  # (V, B, K)
        targets = torch.stack([self._targets(view, labels) for view in by_view.detach()])
        return swapped_prediction_loss(by_view, targets, temperature=self.config.temperature)

    def _targets(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Targets (B, K) from logits (B, K) of one view: classes where they are given, self-labels elsewhere."""
        config, free = self.config, labels < 0
        targets = F.one_hot(labels.clamp_min(0), logits.shape[1]).float()
        taking_part = free if config.sinkhorn_over == "unlabelled" else torch.ones_like(free)
        own = sinkhorn(
            logits[taking_part].float(),
            temperature=config.sinkhorn_temperature,
            n_iterations=config.sinkhorn_iterations,
        )
        targets[free] = own[free[taking_part]]
        return targets

    @torch.no_grad()
    def merge_categories(self, groups: list[list[int]], sizes: list[int]) -> None:
        """Every head becomes the merged one that is used for predictions; over-clustering heads keep their first prototypes."""
        best = self.classifier
        best.merge(groups, sizes)
        self.n_categories = len(groups)
        for head in self.heads:
            head.prototypes = nn.Parameter(best.prototypes.detach().clone())
        n_kept = self.n_categories * self.config.overcluster_factor
        for head in self.over_heads:
            head.prototypes = nn.Parameter(cast(CosineClassifier, head).prototypes.detach()[:n_kept].clone())
