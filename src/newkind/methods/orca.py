"""ORCA (Cao et al. 2022): a margin that holds the known classes back until the new ones are learned.

    L = cross-entropy with margin (labelled) + [-log(p_i . p'_j)] (j: the partner of i) + [log K - H(mean p)]

The own class's cosine is raised by min(u, 1/2), where u = 1 - (mean largest probability of the unlabelled samples). The
partner of a labelled sample is a random one of its class, that of an unlabelled one its nearest neighbour in the batch.
Left open by the sources, and chosen here: u is the mean over the training views of the unlabelled samples that the last epoch
drew, instead of a pass over all of D^u (1 in the first epoch, which has no last one); each ordered pair of views takes part
(the original takes one), with neighbours among the features of its first view and the same drawn partners for all; the
cross-entropy and the mean prediction are over all views.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from newkind import distributed
from newkind.errors import ConfigError
from newkind.losses.entropy import mean_entropy_penalty
from newkind.losses.margins import confidence_sums, margin_loss
from newkind.losses.pairwise import partner_loss
from newkind.losses.partners import nearest_partners, random_partners
from newkind.methods.heads import CosineClassifier
from newkind.methods.method import Batch, LossTerms, Method, MethodConfig, gather_views

__all__ = ["ORCA", "ORCAConfig"]


@dataclass(frozen=True, kw_only=True)
class ORCAConfig(MethodConfig):
    """Every hyper-parameter; the defaults are the original's."""

    temperature: float = 0.1
    """Logits are cosines divided by it: 10 * cosine."""
    max_margin: float = 0.5
    """The margin on the cosine is min(u, max_margin), which is 10 * min(u, 0.5) on the logits; 0 for none."""
    pair_weight: float = 1.0
    entropy_weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.temperature > 0:
            raise ConfigError(f"temperature must be larger than 0; got {self.temperature}.")
        for name in ("max_margin", "pair_weight", "entropy_weight"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"{name} is 0 or larger; got {getattr(self, name)}.")


class ORCA(Method):
    """Prototypes on the class feature."""

    merges: ClassVar[bool] = True
    uncertainty: Tensor
    """(): u, as it was over the last epoch."""
    confidence: Tensor
    """(2,): the sum of the largest probabilities of this epoch's unlabelled views, and their number, a process."""

    def __init__(self, dim: int, config: ORCAConfig) -> None:
        super().__init__()
        self.config = config
        self.n_categories = config.n_categories
        self.classifier = CosineClassifier(dim, config.n_categories)
        self.register_buffer("uncertainty", torch.ones(()))
        self.register_buffer("confidence", torch.zeros(2))

    @property
    def temperature(self) -> float:
        return self.config.temperature

    def logits(self, features: Tensor) -> Tensor:
        return self.classifier(features)  # type: ignore[no-any-return]

    def begin_epoch(self, epoch: int) -> None:  # noqa: ARG002
        total, count = self.confidence
        if count > 0:
            self.uncertainty.copy_(1 - total / count)
        self.confidence.zero_()

    def loss_terms(self, features: Tensor, batch: Batch) -> LossTerms:
        config = self.config
        logits = gather_views(self.classifier(features), batch)  # (V * B, K)
        unit = gather_views(F.normalize(features.detach().float(), dim=-1), batch)  # (V * B, d)
        labels = batch.gather(batch.labels)  # (B,)
        log_p = (logits / config.temperature).log_softmax(dim=-1)
        all_labels = labels.repeat(batch.n_views)  # (V * B,)
        known = all_labels >= 0
        # Over the samples of all processes, so that all have the same margin.
        self.confidence += distributed.gather(confidence_sums(log_p[~known].exp())[None]).mean(dim=0)
        margin = self.uncertainty.clamp_max(config.max_margin)
        parts = {
            "supervised": margin_loss(logits[known], all_labels[known], margin=margin, temperature=config.temperature),
            "pairs": _pairs(log_p, unit, labels, batch),
            "entropy": mean_entropy_penalty(log_p.exp()),
        }
        return LossTerms(parts, {"supervised": 1.0, "pairs": config.pair_weight, "entropy": config.entropy_weight})

    def merge_categories(self, groups: list[list[int]], sizes: list[int]) -> None:
        self.classifier.merge(groups, sizes)
        self.n_categories = len(groups)


def _pairs(log_p: Tensor, unit: Tensor, labels: Tensor, batch: Batch) -> Tensor:
    """The partner loss, averaged over ordered pairs of views. log_p (V * B, K), unit (V * B, d), labels (B,)"""
    log_p, unit = log_p.view(batch.n_views, -1, log_p.shape[1]), unit.view(batch.n_views, -1, unit.shape[1])
    own = (labels >= 0).nonzero()[:, 0]  # (L,)
    drawn = own[random_partners(labels[own], batch.generator)]
    partners = []
    for view in unit:
        partner = nearest_partners(view)  # (B,)
        partner[own] = drawn
        partners.append(partner)
    pairs = permutations(range(batch.n_views), 2)
    return torch.stack([partner_loss(log_p[a], log_p[b][partners[a]]) for a, b in pairs]).mean()
