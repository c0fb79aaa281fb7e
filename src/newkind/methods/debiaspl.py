"""DebiasPL (Wang et al. 2022): pseudo-labels of a slow teacher, freed of its bias, on GCD's representation.

    L = (1 - lambda) InfoNCE + lambda SupCon + cross-entropy (labelled) + w CE(z + tau log q, pseudo-label) (unlabelled)

q is the running mean of the teacher's predictions on unlabelled samples; the pseudo-label is argmax softmax(z' - tau log q),
z' the teacher's logits, where its probability reaches the threshold. As in the original, a batch is labelled under the q of
the batches before it and learned under the q that it is part of.
Left open by the sources, and chosen here: the original labels a weak view and learns on a strong one, but here all views are
random in the same way, so each view learns what the teacher says of another one, over all ordered pairs of views; logits are
cosines divided by a temperature; the representation terms have the weights of GCD, the classification terms 1 and w; the
network itself is read out, not its teacher.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from newkind import distributed
from newkind.errors import ConfigError
from newkind.losses.debias import pseudo_label_loss, pseudo_labels, running_mean
from newkind.losses.supervised import supervised_loss
from newkind.methods.heads import CosineClassifier
from newkind.methods.method import Batch, LossTerms, Method, gather_views
from newkind.methods.representation import RepresentationConfig, build_projector, representation_parts

__all__ = ["DebiasPL", "DebiasPLConfig"]


@dataclass(frozen=True, kw_only=True)
class DebiasPLConfig(RepresentationConfig):
    """Every hyper-parameter; the defaults are those of the original's runs on ImageNet, and GCD's."""

    temperature: float = 0.1
    """Logits are cosines divided by it."""
    teacher_decay: float | None = 0.999
    """Of the moving average that labels; None lets the network label for itself, as plain FixMatch does."""
    mean_momentum: float = 0.999
    """m of the running mean q."""
    debias_strength: float = 0.4
    """tau: how much of the bias is taken away; 0 is FixMatch."""
    threshold: float = 0.7
    """The least probability of a pseudo-label that counts."""
    pseudo_label_weight: float = 1.0
    """w: 1 in FixMatch, 10 in the original's runs with 1 % of the labels."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.temperature > 0:
            raise ConfigError(f"temperature must be larger than 0; got {self.temperature}.")
        for name in ("teacher_decay", "mean_momentum"):
            if getattr(self, name) is not None and not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} is 0 or larger and less than 1; got {getattr(self, name)}.")
        if not 0 <= self.threshold <= 1:
            raise ConfigError(f"threshold lies between 0 and 1; got {self.threshold}.")
        for name in ("debias_strength", "pseudo_label_weight"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"{name} is 0 or larger; got {getattr(self, name)}.")


class DebiasPL(Method):
    """Projector and prototypes on the class feature; the engine keeps the teacher."""

    merges: ClassVar[bool] = True
    mean_prediction: Tensor
    """(K,): q."""

    def __init__(self, dim: int, config: DebiasPLConfig) -> None:
        super().__init__()
        self.config = config
        self.n_categories = config.n_categories
        self.teacher_decay = config.teacher_decay
        self.projector = build_projector(dim, config)
        self.classifier = CosineClassifier(dim, config.n_categories)
        self.register_buffer("mean_prediction", torch.full((config.n_categories,), 1 / config.n_categories))

    @property
    def temperature(self) -> float:
        return self.config.temperature

    def logits(self, features: Tensor) -> Tensor:
        return self.classifier(features)  # type: ignore[no-any-return]

    def loss_terms(self, features: Tensor, batch: Batch) -> LossTerms:
        config = self.config
        cosines = gather_views(self.classifier(features), batch)  # (V * B, K)
        told = cosines.detach() if batch.teacher_logits is None else gather_views(batch.teacher_logits, batch)
        parts = representation_parts(gather_views(self.projector(features), batch), batch, config)
        labels = batch.gather(batch.labels).repeat(batch.n_views)  # (V * B,)
        known = labels >= 0
        parts["supervised"] = supervised_loss(cosines[known], labels[known], temperature=config.temperature)
        parts["pseudo_label"] = self._unsupervised(
            cosines[~known] / config.temperature, told[~known] / config.temperature, batch.n_views
        )
        u, s = 1 - config.supervised_weight, config.supervised_weight
        weights = {"infonce": u, "supcon": s, "supervised": 1.0, "pseudo_label": config.pseudo_label_weight}
        return LossTerms(parts, weights)

    def _unsupervised(self, logits: Tensor, told: Tensor, n_views: int) -> Tensor:
        """logits and told: (V * U, K) of the unlabelled samples, from the network and from its teacher."""
        config = self.config
        own, sure = pseudo_labels(
            told, self.mean_prediction, strength=config.debias_strength, threshold=config.threshold
        )
        self._update_mean(told.softmax(dim=-1))
        return pseudo_label_loss(logits, own, sure, self.mean_prediction, n_views, strength=config.debias_strength)

    @torch.no_grad()
    def _update_mean(self, p: Tensor) -> None:
        # Over the samples of all processes, so that all have the same mean.
        sums = torch.cat([p.sum(dim=0), p.new_tensor([len(p)])])  # (K + 1,)
        sums = distributed.gather(sums[None]).sum(dim=0)
        mean = running_mean(self.mean_prediction, sums[:-1], sums[-1], momentum=self.config.mean_momentum)
        self.mean_prediction.copy_(mean)

    def merge_categories(self, groups: list[list[int]], sizes: list[int]) -> None:
        self.classifier.merge(groups, sizes)
        self.n_categories = len(groups)
        merged = torch.stack([self.mean_prediction[group].sum() for group in groups])
        self.mean_prediction = merged / merged.sum()
