"""The frame of the `modern` recipe: a linear map of the features after which labelled classes are round.

The features of today's backbones know far more than which category an image is of (pose, background, light). Labels tell in
which directions images of one class differ; these are made short, for new classes as well as for known ones. Among the framed
features, prototypes start where a mixture of all images puts them, instead of at random.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from newkind.clustering.mixture import Mixture, fit_mixture, refine_mixture
from newkind.clustering.whitening import within_class_whitening
from newkind.errors import ConfigError

__all__ = ["Frame", "FrameConfig", "find_prototypes", "settle_prototypes"]


@dataclass(frozen=True, kw_only=True)
class FrameConfig:
    """How the frame and the prototypes in it are found; without a frame the rest is of no meaning."""

    frame: bool = False
    """Whether there is one."""
    frame_shrinkage: float = 0.3
    """How much of the frame is left as it came: 0 trusts the labelled images' covariance, 1 is no frame at all."""
    frame_views: int = 4
    """Random views of each image whose features are averaged with the evaluation view's to find frame and prototypes."""
    mixture_temperature: float = 0.05
    mixture_balance: float = 4.0
    """How strongly categories are kept at one size."""
    mixture_restarts: int = 5
    mixture_steps: int = 60

    def __post_init__(self) -> None:
        if not 0 < self.frame_shrinkage <= 1:
            raise ConfigError(f"frame_shrinkage is above 0 and at most 1; got {self.frame_shrinkage}.")
        if not self.mixture_temperature > 0 or not self.mixture_balance >= 0:
            raise ConfigError(
                "mixture_temperature must be larger than 0 and mixture_balance 0 or larger; got "
                f"{self.mixture_temperature} and {self.mixture_balance}."
            )
        if self.frame_views < 0 or self.mixture_restarts < 1 or self.mixture_steps < 0:
            raise ConfigError(
                "frame_views and mixture_steps are 0 or larger and mixture_restarts at least 1; got "
                f"{self.frame_views}, {self.mixture_steps} and {self.mixture_restarts}."
            )


class Frame(nn.Module):
    """z = (x - center) W, of unit length. It is computed, not trained."""

    weight: Tensor
    bias: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.eye(dim))
        self.register_buffer("bias", torch.zeros(dim))

    def forward(self, features: Tensor) -> Tensor:
        """(M, d) -> (M, d), L2-normalised."""
        return F.normalize(features.float() @ self.weight + self.bias, dim=-1)

    def fit(self, features: Tensor, labels: Tensor, *, shrinkage: float) -> Tensor:
        """From features (n, d) of all images and labels (n,), -1 for unlabelled. -> (n, d), framed."""
        known = labels >= 0
        matrix = within_class_whitening(features[known].cpu(), labels[known].cpu().numpy(), shrinkage=shrinkage)[1]
        self.weight.copy_(torch.from_numpy(matrix))
        self.bias.copy_(-features.double().mean(dim=0).cpu() @ torch.from_numpy(matrix))
        return self(features.to(self.weight.device))  # type: ignore[no-any-return]


def find_prototypes(
    frame: Frame, features: Tensor, labels: Tensor, config: FrameConfig, *, n_categories: int, n_known: int, seed: int
) -> Mixture:
    """Fits the frame, and a mixture in it from nothing but features (n, d) and labels (n,)."""
    z = frame.fit(features, labels, shrinkage=config.frame_shrinkage)
    return fit_mixture(
        z,
        n_categories,
        labels=labels.to(z.device),
        n_known=n_known,
        temperature=config.mixture_temperature,
        balance=config.mixture_balance,
        n_iter=config.mixture_steps,
        n_init=config.mixture_restarts,
        seed=seed,
    )


def settle_prototypes(frame: Frame, features: Tensor, labels: Tensor, config: FrameConfig, *, p: Tensor) -> Mixture:
    """Fits the frame again, and the mixture from what the network says of each image: p (n, K)."""
    labels, known = labels.to(p.device), (labels >= 0).to(p.device)
    p = p.clone()
    p[known] = F.one_hot(labels[known], p.shape[1]).to(p)
    z = frame.fit(features, labels, shrinkage=config.frame_shrinkage)
    return refine_mixture(
        z,
        p.T @ z,
        labels=labels,
        temperature=config.mixture_temperature,
        balance=config.mixture_balance,
        n_iter=config.mixture_steps,
    )
