"""SimGCD as published (Wen, Zhao and Qi 2023): a parametric classifier trained jointly with the representation.

    L = (1 - lambda) [InfoNCE + distillation + epsilon (log K - H(mean p))] + lambda [SupCon + cross-entropy]

Two recipes. `release` has the settings of the authors' released code, which produced the published figures. `paper` has the
temperatures, the warm-up and the contrast between views that the text states. It includes the positive pair in both contrastive
denominators, which Eqs. 1 and 2 as printed leave out (n != i): as printed, the terms are no cross-entropies and may be
negative, and every implementation includes it. `negatives=printed` is the printed form. What the text does not state (epsilon, the optimizer,
heads, views, sampling) is as in the released code. docs/reproducing.md lists all differences.

The steps of the paper's ablation and the cells of its pilot study are values of `supervision`,
`classifier_on` and `joint`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from torch import Tensor

from newkind.errors import ConfigError
from newkind.losses.distillation import self_distillation_loss
from newkind.losses.entropy import mean_entropy_penalty
from newkind.losses.schedules import teacher_temperature
from newkind.losses.sinkhorn import self_label_loss
from newkind.losses.supervised import supervised_loss
from newkind.methods.heads import CosineClassifier
from newkind.methods.method import Batch, LossTerms, MethodConfig, gather_views
from newkind.methods.prototypes import PrototypeMethod
from newkind.methods.representation import RepresentationConfig, build_projector, representation_parts
from newkind.setting import setting

__all__ = ["BENCHMARK_EPSILON", "DistillationConfig", "SimGCD", "SimGCDConfig", "distillation_parts", "simgcd_recipe"]

BENCHMARK_EPSILON = {"cifar100": 4.0, "cub": 2.0}
"""Weight of the mean-entropy term in the published runs; 1 for every other dataset."""


@dataclass(frozen=True, kw_only=True)
class DistillationConfig(MethodConfig):
    """Settings of self-distillation with mean-entropy maximisation.

    Parameters
    ----------
    entropy_weight : float, default=1.0
        Weight epsilon of the mean-entropy term.
    student_temperature : float, default=0.1
        Temperature tau_s of the predictions.
    teacher_start : float, default=0.07
        Temperature tau_t of the targets in the first epoch.
    teacher_end : float, default=0.04
        Temperature tau_t of the targets after the warm-up.
    teacher_warmup_epochs : int, default=30
        Length of the warm-up in epochs; a shorter training warms up over all of its epochs.
    teacher_shape : {"linear", "cosine"}, default="linear"
        Shape of the warm-up: linear (recipe `release`) or cosine (recipe `paper`).
    """

    entropy_weight: float = setting(1.0, at_least=0)
    student_temperature: float = setting(0.1, above=0)
    teacher_start: float = setting(0.07, above=0)
    teacher_end: float = setting(0.04, above=0)
    teacher_warmup_epochs: int = setting(30, at_least=0, at_most=10**6)
    teacher_shape: Literal["linear", "cosine"] = "linear"

    @property
    def temperature(self) -> float:
        """Temperature of the predictions."""
        return self.student_temperature


@dataclass(frozen=True, kw_only=True)
class SimGCDConfig(RepresentationConfig, DistillationConfig):
    """Settings of SimGCD. The defaults are the recipe `release`.

    Parameters
    ----------
    supervision : {"self-distil", "self-label", "minimal", "oracle"}, default="self-distil"
        What the classifier learns from beside labels: the sharpened prediction of another view, with the entropy term;
        the self-label of another view, from Sinkhorn iterations over the unlabelled samples (labelled ones have their
        class); nothing; or the truth of every sample (for the pilot study only).
    classifier_on : {"backbone", "projector"}, default="backbone"
        Features that the prototypes are compared with.
    joint : bool, default=True
        Whether the gradient of the classifier reaches the representation.
    block_rate : float, default=1.0
        Learning rate of the tuned blocks, as a multiple of the learning rate of the training.
    head_rate : float, default=1.0
        Learning rate of projector and prototypes, as a multiple of the learning rate of the training.
    """

    supervision: Literal["self-distil", "self-label", "minimal", "oracle"] = "self-distil"
    classifier_on: Literal["backbone", "projector"] = "backbone"
    joint: bool = True
    block_rate: float = setting(1.0, at_least=0)
    head_rate: float = setting(1.0, at_least=0)

    @property
    def needs_truth(self) -> bool:
        return self.supervision == "oracle"


def simgcd_recipe(recipe: str, *, benchmark: str = "") -> SimGCDConfig:
    """Settings of a published recipe.

    Parameters
    ----------
    recipe : {"release", "paper"}
        Name of the recipe.
    benchmark : str, default=""
        Name of a published dataset, whose own entropy weight is used.

    Returns
    -------
    SimGCDConfig
    """
    config = SimGCDConfig(entropy_weight=BENCHMARK_EPSILON.get(benchmark, 1.0))
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
    raise ConfigError(
        f"There is no recipe '{recipe}'.",
        fix="Recipes of simgcd are modern, release and paper.",
        code="unknown-recipe",
        recipe=recipe,
    )


class SimGCD(PrototypeMethod):
    """Projector and prototypes on the class feature."""

    config: SimGCDConfig

    def __init__(self, dim: int, n_categories: int, config: SimGCDConfig) -> None:
        super().__init__(dim, n_categories, config)
        self.block_rate, self.head_rate = config.block_rate, config.head_rate
        self.projector = build_projector(dim, config)
        on_backbone = config.classifier_on == "backbone"
        self.classifier = CosineClassifier(dim if on_backbone else config.projector_out, n_categories)

    def logits(self, features: Tensor) -> Tensor:
        return super().logits(features if self.config.classifier_on == "backbone" else self.projector(features))

    def loss_terms(self, features: Tensor, batch: Batch) -> LossTerms:
        config = self.config
        projected = self.projector(features)  # (V * B, out)
        seen = features if config.classifier_on == "backbone" else projected
        logits = gather_views(self.classifier(seen if config.joint else seen.detach()), batch)  # (V * B, K)
        parts = representation_parts(gather_views(projected, batch), batch, config)
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
        """Parts that need no label, of logits (V * B, K)."""
        config = self.config
        if config.supervision == "self-label":
            labels = batch.gather(batch.labels)
            loss = self_label_loss(logits, batch.n_views, student_temperature=config.student_temperature, labels=labels)
            return {"self_label": loss}
        return distillation_parts(logits, batch, config) if config.supervision == "self-distil" else {}


def distillation_parts(logits: Tensor, batch: Batch, config: DistillationConfig) -> dict[str, Tensor]:
    """`distil` and `entropy`, unweighted, of logits (V * B, K), gathered, ordered by view."""
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
    return {"distil": distil, "entropy": mean_entropy_penalty((logits / config.student_temperature).softmax(dim=-1))}
