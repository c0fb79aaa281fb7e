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
    """Settings of (1 - lambda) InfoNCE + lambda SupCon on the projector's output. Defaults: those of SimGCD's released code.

    Parameters
    ----------
    supervised_weight : float, default=0.35
        Weight lambda of the supervised terms.
    unsupervised_temperature : float, default=1.0
        Temperature tau_u of InfoNCE.
    supervised_temperature : float, default=0.07
        Temperature tau_c of SupCon.
    negatives : {"all", "other-view", "printed"}, default="all"
        Denominator of both terms: the other 2B - 1 embeddings (recipe `release`), the embeddings of the other view
        (`paper`), or those without the sample itself, as Eqs. 1 and 2 are printed.
    projector_hidden : int, default=2048
        Width of the hidden layers of the projector.
    projector_out : int, default=256
        Dimension of the projector's output.
    projector_layers : int, default=3
        Number of linear layers of the projector.
    projector_width : int, default=0
        Number of outputs of a last layer with unit rows behind the projector, whose directions are contrasted instead; 0
        for no such layer.
    """

    supervised_weight: float = setting(0.35, at_least=0, at_most=1)
    unsupervised_temperature: float = setting(1.0, above=0)
    supervised_temperature: float = setting(0.07, above=0)
    negatives: Literal["all", "other-view", "printed"] = "all"
    projector_hidden: int = setting(2048, at_least=1, at_most=2**16)
    projector_out: int = setting(256, at_least=1, at_most=2**16)
    projector_layers: int = setting(3, at_least=1, at_most=100)
    projector_width: int = setting(0, at_least=0, at_most=2**20)


def build_projector(dim: int, config: RepresentationConfig) -> Projector:
    """Projector for features of dimension `dim`."""
    return Projector(
        dim,
        hidden=config.projector_hidden,
        out=config.projector_out,
        n_layers=config.projector_layers,
        width=config.projector_width,
    )


def representation_parts(z: Tensor, batch: Batch, config: RepresentationConfig) -> dict[str, Tensor]:
    """`infonce` (Eq. 1) and `supcon` (Eq. 2), unweighted, of embeddings z (V * B, out), gathered, ordered by view."""
    return {
        "infonce": infonce_loss(z, batch, temperature=config.unsupervised_temperature, negatives=config.negatives),
        "supcon": supcon_loss(z, batch, temperature=config.supervised_temperature, negatives=config.negatives),
    }


def infonce_loss(z: Tensor, batch: Batch, *, temperature: float, negatives: str = "all") -> Tensor:
    """Contrastive loss in which the views of an image are positives. z (V * B, out), gathered, ordered by view."""
    samples, views = _numbers(z, batch.n_views)
    return contrastive_loss(
        z,
        samples,
        temperature=temperature,
        views=None if negatives == "all" else views,
        left_out=samples if negatives == "printed" else None,
    )


def supcon_loss(z: Tensor, batch: Batch, *, temperature: float, negatives: str = "all") -> Tensor:
    """Contrastive loss in which labelled samples of a class are positives. z (V * B, out), gathered, ordered by view."""
    labels = batch.gather(batch.labels).repeat(batch.n_views)  # (V * B,)
    is_labelled = labels >= 0
    samples, views = (numbers[is_labelled] for numbers in _numbers(z, batch.n_views))
    return contrastive_loss(
        z[is_labelled],
        labels[is_labelled],
        temperature=temperature,
        views=None if negatives == "all" else views,
        samples=None if negatives == "all" else samples,
        left_out=samples if negatives == "printed" else None,
    )


def _numbers(z: Tensor, n_views: int) -> tuple[Tensor, Tensor]:
    """(sample, view) of each row of z (V * B, out)."""
    n_samples = len(z) // n_views
    samples = torch.arange(n_samples, device=z.device).repeat(n_views)
    return samples, torch.arange(n_views, device=z.device).repeat_interleave(n_samples)
