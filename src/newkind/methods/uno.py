"""UNO+ (Fini et al. 2021): swapped prediction of Sinkhorn self-labels, with several heads that know all categories.

    L = mean over heads of swapped prediction + the same of heads with more prototypes (over-clustering)

The target of a labelled sample is its class, that of an unlabelled one its self-label, which may be any of the K categories.
Left open by the sources, and chosen here: every head is a cosine classifier for all K categories on the backbone's feature
(the original shares the prototypes of known classes and has an MLP in front of the others); there are as many over-clustering
heads, each with `overcluster_factor` * K prototypes of which the first are the known classes; Sinkhorn runs over the unlabelled
samples of each view, as in the original, or over all of them. With `n_heads=1` and `overcluster_factor=0` it is one head.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import ClassVar, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from newkind import distributed
from newkind.errors import ConfigError
from newkind.losses.sinkhorn import sinkhorn
from newkind.losses.swapped import swapped_prediction_loss
from newkind.methods.heads import CosineClassifier
from newkind.methods.method import Batch, LossTerms, Method, MethodConfig, gather_views

__all__ = ["UNO", "UNOConfig"]


@dataclass(frozen=True, kw_only=True)
class UNOConfig(MethodConfig):
    """Every hyper-parameter; the defaults are the original's."""

    temperature: float = 0.1
    """Of the predictions."""
    sinkhorn_temperature: float = 0.05
    sinkhorn_iterations: int = 3
    sinkhorn_over: Literal["unlabelled", "all"] = "unlabelled"
    """Which samples of a view share the categories equally."""
    n_heads: int = 4
    """The one with the lowest loss over the last epoch is read out."""
    overcluster_factor: int = 3
    """Prototypes of an over-clustering head, as a multiple of K; 0 for no such heads."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("temperature", "sinkhorn_temperature"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"{name} must be larger than 0; got {getattr(self, name)}.")
        if self.sinkhorn_over not in ("unlabelled", "all"):
            raise ConfigError(f"sinkhorn_over is unlabelled or all; got {self.sinkhorn_over}.")
        for name, least in (("sinkhorn_iterations", 1), ("n_heads", 1), ("overcluster_factor", 0)):
            if getattr(self, name) < least:
                raise ConfigError(f"{name} is at least {least}; got {getattr(self, name)}.")


class UNO(Method):
    """Heads for K categories, of which one is read out, and over-clustering heads that only help to train."""

    merges: ClassVar[bool] = True
    head_losses: Tensor
    """(n_heads,): what each head's loss has come to in this epoch."""

    def __init__(self, dim: int, config: UNOConfig) -> None:
        super().__init__()
        self.config = config
        self.n_categories = config.n_categories
        self.heads = nn.ModuleList(CosineClassifier(dim, config.n_categories) for _ in range(config.n_heads))
        n_over = config.n_heads if config.overcluster_factor else 0
        n_prototypes = config.n_categories * config.overcluster_factor
        self.over_heads = nn.ModuleList(CosineClassifier(dim, n_prototypes) for _ in range(n_over))
        self.register_buffer("head_losses", torch.zeros(config.n_heads))

    @property
    def temperature(self) -> float:
        return self.config.temperature

    @property
    def classifier(self) -> CosineClassifier:
        """The head that is read out."""
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
        # The same numbers in every process, so that all read out the same head.
        self.head_losses += distributed.gather(own[None].float()).mean(dim=0)
        parts = {"swapped": own.mean()} | ({"overclustered": over.mean()} if len(over) else {})
        return LossTerms(parts, {"swapped": 1.0, "overclustered": 1.0})

    def _swapped(self, logits: Tensor, labels: Tensor, n_views: int) -> Tensor:
        by_view = logits.reshape(n_views, -1, logits.shape[1])  # (V, B, K)
        targets = torch.stack([self._targets(view, labels) for view in by_view.detach()])
        return swapped_prediction_loss(by_view, targets, temperature=self.config.temperature)

    def _targets(self, logits: Tensor, labels: Tensor) -> Tensor:
        """(B, K) of one view -> (B, K): classes where they are given, self-labels elsewhere."""
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
        """Every head becomes the merged one that is read out; the over-clustering heads keep their first prototypes."""
        best = self.classifier
        best.merge(groups, sizes)
        self.n_categories = len(groups)
        for head in self.heads:
            head.prototypes = nn.Parameter(best.prototypes.detach().clone())
        n_kept = self.n_categories * self.config.overcluster_factor
        for head in self.over_heads:
            head.prototypes = nn.Parameter(cast(CosineClassifier, head).prototypes.detach()[:n_kept].clone())
