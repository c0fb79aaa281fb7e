"""`modern`: SimGCD's classifier for backbones newer than DINO v1, whose features random heads would only damage.

    L = (1 - lambda) [distillation + epsilon (log K - H(mean p))] + lambda [SupCon + cross-entropy]

Prototypes live in a frame (`methods.frame`) and start from a mixture of all images instead of at random. There is no
projector and no InfoNCE; SupCon acts on the framed features. The block learns slowly. At the end, frame and mixture are
fitted once more. How the settings were chosen is in docs/modern.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from newkind import distributed
from newkind.losses.supervised import supervised_loss
from newkind.methods.frame import Frame, FrameConfig, find_prototypes, refit_prototypes, settle_prototypes
from newkind.methods.heads import CosineClassifier
from newkind.methods.method import AllImages, Batch, LossTerms, Method, gather_views
from newkind.methods.refit_rehearsal import PlacedImages, rehearse_refit
from newkind.methods.rehearsal import rehearse
from newkind.methods.representation import supcon_loss
from newkind.methods.simgcd import DistillationConfig, distillation_parts
from newkind.setting import setting

__all__ = ["OUTLIER", "Modern", "ModernConfig"]

OUTLIER = 0.3
"""An image is an outlier if its cosine with its prototype is below this share of the median of its category. Flags about 1 % of
ordinary photographs and most foreign ones (docs/confidence.md)."""
CHUNK = 4096


@dataclass(frozen=True, kw_only=True)
class ModernConfig(DistillationConfig, FrameConfig):
    """Settings of `modern`, the same for all data.

    Parameters
    ----------
    supervised_weight : float, default=0.35
        Weight lambda of the supervised terms.
    supervised_temperature : float, default=0.1
        Temperature tau_c of SupCon on the framed features.
    student_temperature : float, default=0.05
        Temperature tau_s of the predictions.
    teacher_start : float, default=0.035
        Temperature tau_t of the targets in the first epoch.
    teacher_end : float, default=0.035
        Temperature tau_t of the targets after the warm-up.
    block_rate : float, default=0.01
        Learning rate of the tuned blocks, as a multiple of the learning rate of the training.
    head_rate : float, default=0.0
        Learning rate of the prototypes, as a multiple of the learning rate of the training. With 0, the categories of the
        start are those that settling begins with.
    """

    supervised_weight: float = setting(0.35, at_least=0, at_most=1)
    supervised_temperature: float = setting(0.1, above=0)
    student_temperature: float = setting(0.05, above=0)
    teacher_start: float = setting(0.035, above=0)
    teacher_end: float = setting(0.035, above=0)
    block_rate: float = setting(0.01, at_least=0)
    head_rate: float = setting(0.0, at_least=0)


class Modern(Method):
    """Prototypes in a frame of the class feature."""

    needs_training: ClassVar[bool] = False
    config: ModernConfig
    read_out_temperature: Tensor
    read_out_smoothing: Tensor
    typical_similarity: Tensor

    def __init__(self, dim: int, n_categories: int, config: ModernConfig) -> None:
        super().__init__(dim, n_categories, config)
        self.block_rate, self.head_rate = config.block_rate, config.head_rate
        self.frame = Frame(dim)
        self.classifier = CosineClassifier(dim, n_categories)
        self.register_buffer("read_out_temperature", torch.tensor(config.student_temperature))
        self.register_buffer("read_out_smoothing", torch.tensor(0.0))
        self.register_buffer("typical_similarity", torch.zeros(n_categories))

    @property
    def temperature(self) -> float:
        return float(self.read_out_temperature)

    @property
    def smoothing(self) -> float:
        return float(self.read_out_smoothing)

    def logits(self, features: Tensor) -> Tensor:
        return self.classifier(self.frame(features))  # type: ignore[no-any-return]

    def loss_terms(self, features: Tensor, batch: Batch) -> LossTerms:
        config = self.config
        framed = self.frame(features)
        logits = gather_views(self.classifier(framed), batch)  # (V * B, K)
        labels = batch.gather(batch.labels).repeat(batch.n_views)  # (V * B,)
        known = labels >= 0
        supcon = supcon_loss(gather_views(framed, batch), batch, temperature=config.supervised_temperature)
        parts = {"supcon": supcon} | distillation_parts(logits, batch, config)
        parts["supervised"] = supervised_loss(logits[known], labels[known], temperature=config.student_temperature)
        u, s = 1 - config.supervised_weight, config.supervised_weight
        return LossTerms(parts, {"supcon": s, "distil": u, "entropy": u * config.entropy_weight, "supervised": s})

    @torch.no_grad()
    def start(self, images: AllImages) -> None:
        features = images.features()
        if distributed.main_process():
            found = find_prototypes(self.frame, features, images, self.config, self.n_categories)
            self.classifier.prototypes.copy_(found.directions)

    @torch.no_grad()
    def settle(self, images: AllImages) -> None:
        features = images.features()
        if distributed.main_process():
            p = (self.logits(features.to(self.frame.weight.device)) / self.config.student_temperature).softmax(dim=-1)
            found = settle_prototypes(self.frame, features, images, self.config, p=p)
            self.classifier.prototypes.copy_(found.directions)

    @torch.no_grad()
    def calibrate(self, images: AllImages) -> None:
        features, device = images.features(), self.frame.weight.device  # asked for by all processes
        if not distributed.main_process():
            return
        self.typical_similarity.copy_(_typical_similarity(self, features))
        self.rehearsal = rehearse(
            images,
            self.config,
            n_categories=self.n_categories,
            temperature=self.config.student_temperature,
            device=device,
        )
        if self.rehearsal is not None:
            self.read_out_temperature.fill_(self.rehearsal.fitted.temperature)
            self.read_out_smoothing.fill_(self.rehearsal.fitted.smoothing)

    @torch.no_grad()
    def refit(self, features: Tensor, labels: Tensor, prototype: Tensor, *, forbidden: Tensor) -> None:
        """Solve frame and prototypes again after a person labelled images; see `methods.frame.refit_prototypes`."""
        found = refit_prototypes(self.frame, features, labels, prototype, self.config, forbidden=forbidden)
        self.classifier.prototypes.copy_(found.directions)
        self.typical_similarity.copy_(_typical_similarity(self, features))

    @torch.no_grad()
    def recalibrate(self, images: PlacedImages) -> None:
        """Calibrate confidences after a refit, by a rehearsal of it.

        Categories without labels do not take part in the rehearsal. As far as images are in such categories, the read-out before is kept.
        """
        self.rehearsal = rehearse_refit(images, self.config, temperature=self.config.student_temperature)
        if self.rehearsal is not None:
            fitted, kept = self.rehearsal.fitted, images.share_new
            self.read_out_temperature.fill_(fitted.temperature ** (1 - kept) * self.temperature**kept)
            self.read_out_smoothing.fill_((1 - kept) * fitted.smoothing + kept * self.smoothing)

    @property
    def has_outlier_rule(self) -> bool:
        return bool(self.typical_similarity.any())

    def outliers(self, features: Tensor) -> Tensor:
        near = self.logits(features).max(dim=1)
        return near.values < OUTLIER * self.typical_similarity[near.indices]

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *others: Any) -> None:
        """Models of earlier versions have no calibration and keep the raw temperature."""
        for name in ("read_out_temperature", "read_out_smoothing", "typical_similarity"):
            state_dict.setdefault(f"{prefix}{name}", getattr(self, name))
        super()._load_from_state_dict(state_dict, prefix, *others)


def _typical_similarity(method: Modern, features: Tensor) -> Tensor:
    """Median cosine (K,) of the images of each category with its prototype; of all images for an empty category."""
    rows = [method.logits(x.to(method.frame.weight.device)).max(dim=1) for x in torch.split(features, CHUNK)]
    near, best = (torch.cat([getattr(row, name) for row in rows]) for name in ("values", "indices"))
    usual = near.median()
    own = [near[best == k] for k in range(method.n_categories)]
    return torch.stack([values.median() if len(values) else usual for values in own])
