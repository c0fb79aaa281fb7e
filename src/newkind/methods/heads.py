"""The two heads of the paper: an MLP projector for contrastive losses, and a cosine classifier."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["CosineClassifier", "Projector"]


class Projector(nn.Module):
    """MLP with GELU and without batch norm; weights start truncated normal (0.02), biases at 0.

    Parameters
    ----------
    dim : int
        Input dimension d.
    hidden : int, default=2048
        Width of the hidden layers.
    out : int, default=256
        Output dimension.
    n_layers : int, default=3
        Number of linear layers.
    """

    def __init__(self, dim: int, *, hidden: int = 2048, out: int = 256, n_layers: int = 3) -> None:
        super().__init__()
        sizes = [dim, *[hidden] * (n_layers - 1), out]
        layers: list[nn.Module] = []
        for i, (a, b) in enumerate(pairwise(sizes)):
            linear = nn.Linear(a, b)
            nn.init.trunc_normal_(linear.weight, std=0.02)
            nn.init.zeros_(linear.bias)
            layers += [linear, nn.GELU()] if i < n_layers - 1 else [linear]
        self.layers = nn.Sequential(*layers)

    def forward(self, features: Tensor) -> Tensor:
        """(M, d) -> L2-normalised (M, out)."""
        return F.normalize(self.layers(features), dim=-1)


class CosineClassifier(nn.Module):
    """K prototypes; logits are cosines between features and prototypes, without temperature (Eq. 3).

    Parameters
    ----------
    dim : int
        Dimension d of the features.
    n_categories : int
        Number of prototypes K.
    """

    def __init__(self, dim: int, n_categories: int) -> None:
        super().__init__()
        # The default initialisation of a linear layer. The length of a row does not change the logits, but it decides
        # how fast its direction turns under SGD.
        self.prototypes = nn.Parameter(torch.empty(n_categories, dim).uniform_(-(dim**-0.5), dim**-0.5))

    def forward(self, features: Tensor) -> Tensor:
        """(M, d) -> (M, K)."""
        return F.normalize(features, dim=-1) @ F.normalize(self.prototypes, dim=-1).T

    @torch.no_grad()
    def merge(self, groups: list[list[int]], sizes: list[int]) -> None:
        """Replace each group of prototypes by one: the mean of their directions, weighted by their number of images.

        Parameters
        ----------
        groups : list of list of int
            Prototypes of each new prototype.
        sizes : list of int, of length K
            Number of images per old prototype.
        """
        unit, weight = F.normalize(self.prototypes, dim=-1), torch.tensor(sizes, dtype=self.prototypes.dtype)
        weight = weight.to(unit.device).clamp_min(1)[:, None]
        merged = torch.stack([F.normalize((weight[group] * unit[group]).sum(dim=0), dim=-1) for group in groups])
        self.prototypes = nn.Parameter(merged)
