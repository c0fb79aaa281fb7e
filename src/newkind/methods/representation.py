"""The representation part that GCD, SimGCD and others share: a projector, InfoNCE on all and SupCon on labelled samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from newkind.errors import ConfigError
from newkind.losses.contrastive import contrastive_loss
from newkind.methods.heads import Projector
from newkind.methods.method import Batch, MethodConfig

__all__ = ["RepresentationConfig", "build_projector", "representation_parts"]


@dataclass(frozen=True, kw_only=True)
class RepresentationConfig(MethodConfig):
    """(1 - lambda) InfoNCE + lambda SupCon on the projector's output; the defaults are those of the published runs."""

    supervised_weight: float = 0.35
    """lambda"""
    unsupervised_temperature: float = 1.0
    """tau_u of InfoNCE."""
    supervised_temperature: float = 0.07
    """tau_c of SupCon."""
    negatives: Literal["all", "other-view"] = "all"
    """`all`: the other 2B - 1 embeddings (release); `other-view`: those of the other view only (paper)."""
    projector_hidden: int = 2048
    projector_out: int = 256
    projector_layers: int = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.supervised_weight <= 1:
            raise ConfigError(f"supervised_weight (lambda) lies between 0 and 1; got {self.supervised_weight}.")
        for name in ("unsupervised_temperature", "supervised_temperature"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} must be larger than 0; got {getattr(self, name)}.")
        if self.negatives not in ("all", "other-view"):
            raise ConfigError(f"negatives is all or other-view; got {self.negatives}.")


def build_projector(dim: int, config: RepresentationConfig) -> Projector:
    """g, as the config wants it."""
    return Projector(dim, hidden=config.projector_hidden, out=config.projector_out, n_layers=config.projector_layers)


def representation_parts(z: Tensor, batch: Batch, config: RepresentationConfig) -> dict[str, Tensor]:
    """`infonce` (Eq. 1) and `supcon` (Eq. 2), unweighted. z: (V * B, out), gathered, view by view."""
    labels = batch.gather(batch.labels).repeat(batch.n_views)  # (V * B,)
    samples = torch.arange(len(labels) // batch.n_views, device=z.device).repeat(batch.n_views)
    views = torch.arange(batch.n_views, device=z.device).repeat_interleave(len(labels) // batch.n_views)
    to_the_letter = config.negatives == "other-view"
    is_labelled = labels >= 0
    return {
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
    }
