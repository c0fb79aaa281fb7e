"""SimGCD: a parametric classifier trained jointly with the representation (the paper's Sec. 4).

    L = (1 - lambda) [InfoNCE + distillation + epsilon (log K - H(mean p))] + lambda [SupCon + cross-entropy]

Two recipes: `release`, the authors' released code, which produced the published figures, and `paper`, the text to the letter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from newkind.errors import ConfigError
from newkind.heads import CosineClassifier, Projector
from newkind.losses.contrastive import contrastive_loss
from newkind.losses.distillation import self_distillation_loss
from newkind.losses.entropy import mean_entropy_penalty
from newkind.losses.schedules import teacher_temperature
from newkind.losses.supervised import supervised_loss
from newkind.methods.method import Batch, LossTerms, Method

__all__ = ["BENCHMARK_EPSILON", "SimGCD", "SimGCDConfig", "simgcd_recipe"]

BENCHMARK_EPSILON = {"cifar100": 4.0, "cub": 2.0}
"""Of the published runs; every other dataset: 1."""


@dataclass(frozen=True, kw_only=True)
class SimGCDConfig:
    """Every hyper-parameter; the defaults are the `release` recipe."""

    n_categories: int
    """K: known and new categories together. May be larger than the truth."""
    supervised_weight: float = 0.35
    """lambda"""
    entropy_weight: float = 1.0
    """epsilon, the weight of the mean-entropy term."""
    unsupervised_temperature: float = 1.0
    """tau_u of InfoNCE."""
    supervised_temperature: float = 0.07
    """tau_c of SupCon."""
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
    negatives: Literal["all", "other-view"] = "all"
    """`all`: the other 2B - 1 embeddings (release); `other-view`: those of the other view only (paper)."""
    projector_hidden: int = 2048
    projector_out: int = 256
    projector_layers: int = 3

    def __post_init__(self) -> None:
        if self.n_categories < 2:
            raise ConfigError(f"At least 2 categories are needed; got {self.n_categories}.")
        if not 0 <= self.supervised_weight <= 1:
            raise ConfigError(f"supervised_weight (lambda) lies between 0 and 1; got {self.supervised_weight}.")
        for name in (
            "unsupervised_temperature",
            "supervised_temperature",
            "student_temperature",
            "teacher_start",
            "teacher_end",
        ):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} must be larger than 0; got {getattr(self, name)}.")
        if self.negatives not in ("all", "other-view") or self.teacher_shape not in ("linear", "cosine"):
            raise ConfigError("negatives is all or other-view, and teacher_shape is linear or cosine.")


def simgcd_recipe(recipe: str, *, n_categories: int, entropy_weight: float = 1.0) -> SimGCDConfig:
    """`release` or `paper`, for K categories."""
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
    raise ConfigError(f"There is no recipe '{recipe}'.", fix="Recipes are release and paper.")


class SimGCD(Method):
    """Projector and prototypes on the class feature."""

    def __init__(self, dim: int, config: SimGCDConfig) -> None:
        super().__init__()
        self.config = config
        self.n_categories = config.n_categories
        self.projector = Projector(
            dim, hidden=config.projector_hidden, out=config.projector_out, n_layers=config.projector_layers
        )
        self.classifier = CosineClassifier(dim, config.n_categories)

    @property
    def temperature(self) -> float:
        return self.config.student_temperature

    def logits(self, features: Tensor) -> Tensor:
        return self.classifier(features)  # type: ignore[no-any-return]

    def loss_terms(self, features: Tensor, batch: Batch) -> LossTerms:
        config = self.config
        z = _gathered(self.projector(features), batch)  # (V * B, out)
        logits = _gathered(self.logits(features), batch)  # (V * B, K)
        labels = batch.gather(batch.labels).repeat(batch.n_views)  # (V * B,)
        samples = torch.arange(len(labels) // batch.n_views, device=z.device).repeat(batch.n_views)
        views = torch.arange(batch.n_views, device=z.device).repeat_interleave(len(labels) // batch.n_views)
        to_the_letter = config.negatives == "other-view"
        is_labelled = labels >= 0
        parts = {
            "infonce": contrastive_loss(
                z, samples, temperature=config.unsupervised_temperature, views=views if to_the_letter else None
            ),
            "supcon": contrastive_loss(
                z[is_labelled],
                labels[is_labelled],
                temperature=config.supervised_temperature,
                views=views[is_labelled] if to_the_letter else None,
                samples=samples[is_labelled] if to_the_letter else None,
            ),
            "distil": self_distillation_loss(
                logits,
                batch.n_views,
                student_temperature=config.student_temperature,
                teacher_temperature=teacher_temperature(
                    batch.epoch,
                    start=config.teacher_start,
                    end=config.teacher_end,
                    warmup_epochs=min(config.teacher_warmup_epochs, batch.n_epochs),
                    shape=config.teacher_shape,
                ),
            ),
            "entropy": mean_entropy_penalty((logits / config.student_temperature).softmax(dim=-1)),
            "supervised": supervised_loss(
                logits[is_labelled], labels[is_labelled], temperature=config.student_temperature
            ),
        }
        u, s = 1 - config.supervised_weight, config.supervised_weight
        weights = {"infonce": u, "supcon": s, "distil": u, "entropy": u * config.entropy_weight, "supervised": s}
        return LossTerms(parts, weights)


def _gathered(x: Tensor, batch: Batch) -> Tensor:
    """(V * B, ...) of this process to (V * all B, ...) of all, still view by view."""
    by_sample = x.view(batch.n_views, -1, x.shape[-1]).transpose(0, 1)  # (B, V, ...)
    return batch.gather(by_sample).transpose(0, 1).reshape(-1, x.shape[-1])
