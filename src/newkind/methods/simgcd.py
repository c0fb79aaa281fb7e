"""SimGCD: a parametric classifier trained jointly with the representation (the paper's Sec. 4).

    L = (1 - lambda) [InfoNCE + distillation + epsilon (log K - H(mean p))] + lambda [SupCon + cross-entropy]

Three recipes: `release`, the authors' released code, which produced the published figures; `paper`, the text to the letter;
and `modern`, for backbones newer than DINO v1, whose features are too good to be taught by random heads. There, prototypes
live in a frame (`methods.frame`) and start from a mixture of all images; InfoNCE and the projector go, SupCon is on the framed
features; the block learns slowly; and at the end frame and mixture are found once more.
The steps of the paper's ablation and the cells of its pilot study are values of `supervision`, `classifier_on` and `joint`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch
from torch import Tensor

from newkind.errors import ConfigError
from newkind.losses.distillation import self_distillation_loss
from newkind.losses.entropy import mean_entropy_penalty
from newkind.losses.schedules import teacher_temperature
from newkind.losses.sinkhorn import self_label_loss
from newkind.losses.supervised import supervised_loss
from newkind.methods.frame import Frame, FrameConfig, find_prototypes, settle_prototypes
from newkind.methods.heads import CosineClassifier
from newkind.methods.method import Batch, LossTerms, Method, gather_views
from newkind.methods.representation import RepresentationConfig, build_projector, representation_parts

__all__ = ["BENCHMARK_EPSILON", "SimGCD", "SimGCDConfig", "simgcd_recipe"]

BENCHMARK_EPSILON = {"cifar100": 4.0, "cub": 2.0}
"""Of the published runs; every other dataset: 1."""
MODERN: dict[str, float | bool] = {
    "frame": True,
    "block_rate": 0.01,
    "head_rate": 0.1,
    "student_temperature": 0.05,
    "teacher_start": 0.035,
    "teacher_end": 0.035,
    "supervised_temperature": 0.1,
}
"""One setting for all data; how it was chosen is in docs/modern.md."""


@dataclass(frozen=True, kw_only=True)
class SimGCDConfig(RepresentationConfig, FrameConfig):
    """Every hyper-parameter; the defaults are the `release` recipe."""

    entropy_weight: float = 1.0
    """epsilon, the weight of the mean-entropy term."""
    student_temperature: float = 0.1
    """tau_s"""
    teacher_start: float = 0.07
    """tau_t in the first epoch."""
    teacher_end: float = 0.04
    """tau_t after the warm-up."""
    teacher_warmup_epochs: int = 30
    """A shorter training warms up over all of it."""
    teacher_shape: Literal["linear", "cosine"] = "linear"
    """linear (release) or cosine (paper)."""
    supervision: Literal["self-distil", "self-label", "minimal", "oracle"] = "self-distil"
    """What the classifier learns from beside labels: the other view's sharpened prediction with the entropy term (SimGCD);
    the other view's Sinkhorn self-label; nothing; or the truth of every sample (for the pilot study only)."""
    classifier_on: Literal["backbone", "projector"] = "backbone"
    """Which features the prototypes live among."""
    joint: bool = True
    """Whether the classifier's gradient reaches the representation."""
    block_rate: float = 1.0
    """The tuned blocks' learning rate, as a multiple of the training's."""
    head_rate: float = 1.0
    """That of projector and prototypes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        FrameConfig.__post_init__(self)
        if self.frame and self.classifier_on != "backbone":
            raise ConfigError("With a frame, the classifier is on the backbone's features.")
        if self.block_rate < 0 or self.head_rate < 0:
            raise ConfigError(f"block_rate and head_rate are 0 or larger; got {self.block_rate} and {self.head_rate}.")
        for name in ("student_temperature", "teacher_start", "teacher_end"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} must be larger than 0; got {getattr(self, name)}.")
        for name, allowed in (
            ("teacher_shape", ("linear", "cosine")),
            ("supervision", ("self-distil", "self-label", "minimal", "oracle")),
            ("classifier_on", ("backbone", "projector")),
        ):
            if getattr(self, name) not in allowed:
                raise ConfigError(f"{name} is {' or '.join(allowed)}; got {getattr(self, name)}.")


def simgcd_recipe(recipe: str, *, n_categories: int, entropy_weight: float = 1.0) -> SimGCDConfig:
    """`release`, `paper` or `modern`, for K categories."""
    config = SimGCDConfig(n_categories=n_categories, entropy_weight=entropy_weight)
    if recipe == "release":
        return config
    if recipe == "paper":
        return replace(
            config,
            unsupervised_temperature=0.07,
            supervised_temperature=1.0,
            teacher_shape="cosine",
            negatives="other-view",
        )
    if recipe == "modern":
        return SimGCDConfig(n_categories=n_categories, **MODERN)  # type: ignore[arg-type]
    raise ConfigError(f"There is no recipe '{recipe}'.", fix="Recipes are release, paper and modern.")


class SimGCD(Method):
    """Projector and prototypes on the class feature."""

    merges: ClassVar[bool] = True

    def __init__(self, dim: int, config: SimGCDConfig) -> None:
        super().__init__()
        self.config = config
        self.n_categories = config.n_categories
        self.needs_truth = config.supervision == "oracle"
        self.block_rate, self.head_rate = config.block_rate, config.head_rate
        self.frame = Frame(dim) if config.frame else None
        self.projector = None if config.frame else build_projector(dim, config)
        self.starts = self.settles = config.frame
        self.n_looks = config.frame_views if config.frame else 0
        on_backbone = config.classifier_on == "backbone"
        self.classifier = CosineClassifier(dim if on_backbone else config.projector_out, config.n_categories)

    @property
    def temperature(self) -> float:
        return self.config.student_temperature

    def logits(self, features: Tensor) -> Tensor:
        return self.classifier(self._seen(features, None))  # type: ignore[no-any-return]

    def _seen(self, features: Tensor, projected: Tensor | None) -> Tensor:
        """What the classifier looks at: framed features, the backbone's, or the projector's."""
        if self.frame is not None:
            return self.frame(features)  # type: ignore[no-any-return]
        if self.config.classifier_on == "backbone" or self.projector is None:
            return features
        return self.projector(features) if projected is None else projected

    def loss_terms(self, features: Tensor, batch: Batch) -> LossTerms:
        config = self.config
        projected = None if self.projector is None else self.projector(features)  # (V * B, out)
        seen = self._seen(features, projected)
        logits = gather_views(self.classifier(seen if config.joint else seen.detach()), batch)  # (V * B, K)
        contrasted = seen if projected is None else projected
        parts = representation_parts(gather_views(contrasted, batch), batch, config)
        if self.frame is not None:
            del parts["infonce"]
        parts |= self._unsupervised(logits, batch)
        labels = batch.gather(batch.labels)
        if config.supervision == "oracle" and batch.truth is not None:
            labels = batch.gather(batch.truth)
        labels = labels.repeat(batch.n_views)  # (V * B,)
        known = labels >= 0
        parts["supervised"] = supervised_loss(logits[known], labels[known], temperature=config.student_temperature)
        u, s = 1 - config.supervised_weight, config.supervised_weight
        weights = {"infonce": u, "supcon": s, "distil": u, "self_label": u, "supervised": s}
        return LossTerms(parts, weights | {"entropy": u * config.entropy_weight})

    def _unsupervised(self, logits: Tensor, batch: Batch) -> dict[str, Tensor]:
        config = self.config
        if config.supervision == "self-label":
            label = self_label_loss(logits, batch.n_views, student_temperature=config.student_temperature)
            return {"self_label": label}
        if config.supervision != "self-distil":
            return {}
        tau = teacher_temperature(
            batch.epoch,
            start=config.teacher_start,
            end=config.teacher_end,
            warmup_epochs=min(config.teacher_warmup_epochs, batch.n_epochs),
            shape=config.teacher_shape,
        )
        distil = self_distillation_loss(
            logits, batch.n_views, student_temperature=config.student_temperature, teacher_temperature=tau
        )
        return {
            "distil": distil,
            "entropy": mean_entropy_penalty((logits / config.student_temperature).softmax(dim=-1)),
        }

    def start(self, features: Tensor, labels: Tensor, *, n_known: int, seed: int) -> None:
        if self.frame is None:
            return
        found = find_prototypes(
            self.frame, features, labels, self.config, n_categories=self.n_categories, n_known=n_known, seed=seed
        )
        self.classifier.prototypes.data.copy_(found.directions)

    @torch.no_grad()
    def settle(self, features: Tensor, labels: Tensor, *, n_known: int, seed: int) -> None:  # noqa: ARG002
        if self.frame is None:
            return
        p = (self.logits(features.to(self.frame.weight.device)) / self.temperature).softmax(dim=-1)
        found = settle_prototypes(self.frame, features, labels, self.config, p=p)
        self.classifier.prototypes.data.copy_(found.directions)

    def merge_categories(self, groups: list[list[int]], sizes: list[int]) -> None:
        self.classifier.merge(groups, sizes)
        self.n_categories = len(groups)
