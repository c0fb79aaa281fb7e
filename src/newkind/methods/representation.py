"""Representation learning that GCD, SimGCD and others share: a projector with InfoNCE on all and SupCon on labelled samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from newkind.losses.contrastive import contrastive_loss
from newkind.methods.heads import Projector
from newkind.methods.method import Batch, MethodConfig
from newkind.setting import setting

__all__ = ["RepresentationConfig", "build_projector", "infonce_loss", "representation_parts", "supcon_loss"]


@dataclass(frozen=True, kw_only=True)
class RepresentationConfig(MethodConfig):
    """Settings of (1 - lambda) InfoNCE + lambda SupCon on the projector's output. Defaults: those of the published runs.

    Parameters
    ----------
    supervised_weight : float, default=0.35
        Weight lambda of the supervised terms.
    unsupervised_temperature : float, default=1.0
        Temperature tau_u of InfoNCE.
    supervised_temperature : float, default=0.07
        Temperature tau_c of SupCon.
    negatives : {"all", "other-view"}, default="all"
        Negatives of a sample: the other 2B - 1 embeddings (recipe `release`), or those of the other view (`paper`).
    projector_hidden : int, default=2048
        Width of the hidden layers of the projector.
    projector_out : int, default=256
        Dimension of the projector's output.
    projector_layers : int, default=3
        Number of linear layers of the projector.
    """

    supervised_weight: float = setting(0.35, at_least=0, at_most=1)
    unsupervised_temperature: float = setting(1.0, above=0)
    supervised_temperature: float = setting(0.07, above=0)
    negatives: Literal["all", "other-view"] = "all"
    projector_hidden: int = setting(2048, at_least=1)
    projector_out: int = setting(256, at_least=1)
    projector_layers: int = setting(3, at_least=1)


def build_projector(dim: int, config: RepresentationConfig) -> Projector:
    """Projector for features of dimension `dim`."""
    return Projector(dim, hidden=config.projector_hidden, out=config.projector_out, n_layers=config.projector_layers)


def representation_parts(z: Tensor, batch: Batch, config: RepresentationConfig) -> dict[str, Tensor]:
    """`infonce` (Eq. 1) and `supcon` (Eq. 2), unweighted, of embeddings z (V * B, out), gathered, ordered by view."""
    other_view_only = config.negatives == "other-view"
    return {
        "infonce": infonce_loss(z, batch, temperature=config.unsupervised_temperature, other_view_only=other_view_only),
        "supcon": supcon_loss(z, batch, temperature=config.supervised_temperature, other_view_only=other_view_only),
    }


def infonce_loss(z: Tensor, batch: Batch, *, temperature: float, other_view_only: bool = False) -> Tensor:
    """Contrastive loss in which the views of an image are positives. z (V * B, out), gathered, ordered by view."""
    samples, views = _numbers(z, batch.n_views)
    return contrastive_loss(z, samples, temperature=temperature, views=views if other_view_only else None)


def supcon_loss(z: Tensor, batch: Batch, *, temperature: float, other_view_only: bool = False) -> Tensor:
    """Contrastive loss in which labelled samples of a class are positives. z (V * B, out), gathered, ordered by view."""
    labels = batch.gather(batch.labels).repeat(batch.n_views)  # (V * B,)
    samples, views = _numbers(z, batch.n_views)
    is_labelled = labels >= 0
    return contrastive_loss(
        z[is_labelled],
        labels[is_labelled],
        temperature=temperature,
        views=views[is_labelled] if other_view_only else None,
        samples=samples[is_labelled] if other_view_only else None,
    )


def _numbers(z: Tensor, n_views: int) -> tuple[Tensor, Tensor]:
    """(sample, view) of each row of z (V * B, out)."""
    n_samples = len(z) // n_views
    samples = torch.arange(n_samples, device=z.device).repeat(n_views)
    return samples, torch.arange(n_views, device=z.device).repeat_interleave(n_samples)
