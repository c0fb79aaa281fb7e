"""DebiasPL (Wang et al. 2022): pseudo-labels of a slow teacher, corrected for its bias, on GCD's representation.

    L = (1 - lambda) InfoNCE + lambda SupCon + cross-entropy (labelled) + w CE(z + tau log q, pseudo-label) (unlabelled)

q is the running mean of the teacher's predictions on unlabelled samples. The pseudo-label is argmax softmax(z' - tau log q),
with z' the teacher's logits, where its probability reaches the threshold. As in the original, a batch is labelled with the q
of the batches before it and learned with the q that includes it.

| | original | here | why |
|---|---|---|---|
| beside the pseudo-labels | a CLD term (weight 0.3) | the contrastive terms of GCD, with its weights | as in the SimGCD paper |
| views | two weak ones label two strong ones | each view learns the label of another one | views of all methods are the same |
| threshold, w, momentum of q | 0.8, 10, 0.999 without CLIP (0.7, 10, 0.99 with it) | 0.8, 10, 0.999 | |
| teacher | decay 0.999 from the first step, 200,000 steps | the decay rises to 0.999 (`teacher_ramp`) | after 1,000 steps a third of the teacher would still be its random start |
| logits | a linear layer | cosines divided by a temperature | as the classifier of the SimGCD paper |
| predictions | of the network | the same | |
| optimizer | 0.003 for 64 labelled and 320 unlabelled images, weight decay 1e-4, warm-up | 0.003 for 384 images | one schedule for all methods |

The original fine-tunes a whole ResNet-50 at that learning rate; 0.1, as in the other methods, is `learning_rate=0.1`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from newkind import distributed
from newkind.losses.debias import pseudo_label_loss, pseudo_labels, running_mean
from newkind.losses.supervised import supervised_loss
from newkind.methods.heads import CosineClassifier
from newkind.methods.method import Batch, LossTerms, gather_views
from newkind.methods.prototypes import PrototypeMethod
from newkind.methods.representation import RepresentationConfig, build_projector, representation_parts
from newkind.optimizer_config import OptimizerConfig
from newkind.setting import setting

__all__ = ["DebiasPL", "DebiasPLConfig"]


@dataclass(frozen=True, kw_only=True)
class DebiasPLConfig(RepresentationConfig):
    """Settings of DebiasPL. The defaults are those of the original's runs on ImageNet with 1 % of the labels, without CLIP.

    Parameters
    ----------
    temperature : float, default=0.1
        Temperature of the softmax over cosines.
    teacher_decay : float or None, default=0.999
        Decay of the moving average that computes pseudo-labels; None for the network itself, as in plain FixMatch.
    mean_momentum : float, default=0.999
        Momentum m of the running mean q.
    debias_strength : float, default=0.4
        Strength tau of the correction; 0 is FixMatch.
    threshold : float, default=0.8
        Minimum probability of a pseudo-label that is used.
    pseudo_label_weight : float, default=10.0
        Weight w of the pseudo-label term; 1 in FixMatch.
    teacher_ramp : bool, default=True
        Whether the decay of the teacher rises to its value as (1 + n) / (10 + n) over the steps n, so that the random start
        is soon forgotten in a short training.
    """

    temperature: float = setting(0.1, above=0)
    teacher_decay: float | None = setting(0.999, at_least=0, below=1)
    mean_momentum: float = setting(0.999, at_least=0, below=1)
    debias_strength: float = setting(0.4, at_least=0)
    threshold: float = setting(0.8, at_least=0, at_most=1)
    pseudo_label_weight: float = setting(10.0, at_least=0)
    teacher_ramp: bool = True


class DebiasPL(PrototypeMethod):
    """Projector and prototypes on the class feature; the network keeps the teacher.

    Attributes
    ----------
    mean_prediction : Tensor of shape (K,)
        Running mean q of the teacher's predictions.
    """

    optimizer: ClassVar[OptimizerConfig] = OptimizerConfig(
        learning_rate=0.001, batch_size=384, weight_decay=1e-4, decay_vectors=True
    )
    config: DebiasPLConfig
    mean_prediction: Tensor

    def __init__(self, dim: int, n_categories: int, config: DebiasPLConfig) -> None:
        super().__init__(dim, n_categories, config)
        self.teacher_decay, self.teacher_ramp = config.teacher_decay, config.teacher_ramp
        self.projector = build_projector(dim, config)
        self.classifier = CosineClassifier(dim, n_categories)
        self.register_buffer("mean_prediction", torch.full((n_categories,), 1 / n_categories))

    def loss_terms(self, features: Tensor, batch: Batch) -> LossTerms:
        config = self.config
        cosines = gather_views(self.classifier(features), batch)  # (V * B, K)
        teacher = cosines.detach() if batch.teacher_logits is None else gather_views(batch.teacher_logits, batch)
        parts = representation_parts(gather_views(self.projector(features), batch), batch, config)
        labels = batch.gather(batch.labels).repeat(batch.n_views)  # (V * B,)
        known = labels >= 0
        parts["supervised"] = supervised_loss(cosines[known], labels[known], temperature=config.temperature)
        parts["pseudo_label"] = self._unsupervised(
            cosines[~known] / config.temperature, teacher[~known] / config.temperature, batch.n_views
        )
        u, s = 1 - config.supervised_weight, config.supervised_weight
        weights = {"infonce": u, "supcon": s, "supervised": 1.0, "pseudo_label": config.pseudo_label_weight}
        return LossTerms(parts, weights)

    def _unsupervised(self, logits: Tensor, teacher: Tensor, n_views: int) -> Tensor:
        """Pseudo-label loss of unlabelled samples, from logits (V * U, K) of the network and of its teacher."""
        config = self.config
        own, sure = pseudo_labels(
            teacher, self.mean_prediction, strength=config.debias_strength, threshold=config.threshold
        )
        self._update_mean(teacher.softmax(dim=-1))
        return pseudo_label_loss(logits, own, sure, self.mean_prediction, n_views, strength=config.debias_strength)

    @torch.no_grad()
    def _update_mean(self, p: Tensor) -> None:
        # Gathered, so that all processes have the same mean.
        sums = torch.cat([p.sum(dim=0), p.new_tensor([len(p)])])  # (K + 1,)
        sums = distributed.gather(sums[None]).sum(dim=0)
        mean = running_mean(self.mean_prediction, sums[:-1], sums[-1], momentum=self.config.mean_momentum)
        self.mean_prediction.copy_(mean)

    def merge_categories(self, groups: list[list[int]], sizes: list[int]) -> None:
        super().merge_categories(groups, sizes)
        merged = torch.stack([self.mean_prediction[group].sum() for group in groups])
        self.mean_prediction = merged / merged.sum()
