"""Heads of methods: an MLP projector for contrastive losses, and classifiers by cosine or by a linear layer."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["CosineClassifier", "LinearClassifier", "Projector", "WideLayer"]


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
    width : int, default=0
        Number of rows of a `WideLayer` behind the MLP; 0 for none.
    """

    def __init__(self, dim: int, *, hidden: int = 2048, out: int = 256, n_layers: int = 3, width: int = 0) -> None:
        super().__init__()
        sizes = [dim, *[hidden] * (n_layers - 1), out]
        layers: list[nn.Module] = []
        for i, (a, b) in enumerate(pairwise(sizes)):
            linear = nn.Linear(a, b)
            nn.init.trunc_normal_(linear.weight, std=0.02)
            nn.init.zeros_(linear.bias)
            layers += [linear, nn.GELU()] if i < n_layers - 1 else [linear]
        self.layers = nn.Sequential(*layers)
        self.wide = WideLayer(out, width) if width else None

    def forward(self, features: Tensor) -> Tensor:
        """(M, d) -> L2-normalised (M, out), whose cosines are those of the wide layer's output if there is one."""
        z = F.normalize(self.layers(features), dim=-1)
        return z if self.wide is None else self.wide(z)


class WideLayer(nn.Module):
    """Linear layer W with unit rows and without bias, from few to many dimensions, of which only cosines are needed.

    The output is not formed: (W z) . (W z') = z . (W^T W) z', so z L with the Cholesky factor L of W^T W has the same dot
    products and `dim` instead of `width` dimensions. For a batch of 128 images in two views, 65,536 outputs would take
    67 MB, several times over with the gradients.

    Parameters
    ----------
    dim : int
        Number of inputs.
    width : int
        Number of outputs of W.
    """

    def __init__(self, dim: int, width: int) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.empty(width, dim).uniform_(-(dim**-0.5), dim**-0.5))

    def forward(self, z: Tensor) -> Tensor:
        """(M, dim) -> L2-normalised (M, dim), or (M, width) if W is too narrow for a factor."""
        with torch.autocast(z.device.type, enabled=False):
            unit = F.normalize(self.rows, dim=-1)  # (width, dim)
            narrow = len(unit) < 4 * unit.shape[1]  # W^T W may be singular
            factor = unit.T if narrow else torch.linalg.cholesky(unit.T @ unit)
            return F.normalize(z.to(unit.dtype) @ factor, dim=-1)


class CosineClassifier(nn.Module):
    """K prototypes; logits are cosines between features and prototypes, without temperature (Eq. 3).

    Parameters
    ----------
    dim : int
        Dimension d of the features.
    n_categories : int
        Number of prototypes K.
    unit : bool, default=False
        Whether the prototypes start with length 1 instead of about 0.58, the default initialisation of a linear layer.
        The length does not change the logits, but it decides how fast the direction turns under SGD.
    """

    def __init__(self, dim: int, n_categories: int, *, unit: bool = False) -> None:
        super().__init__()
        rows = torch.empty(n_categories, dim).uniform_(-(dim**-0.5), dim**-0.5)
        self.prototypes = nn.Parameter(F.normalize(rows, dim=-1) if unit else rows)

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
        merged = unit.new_zeros(len(groups), unit.shape[1])  # UNO may have no group: all categories are known
        for row, group in enumerate(groups):
            merged[row] = F.normalize((weight[group] * unit[group]).sum(dim=0), dim=-1)
        self.prototypes = nn.Parameter(merged)


class LinearClassifier(nn.Module):
    """K rows and biases, initialised as a linear layer; logits are dot products, without temperature.

    Parameters
    ----------
    dim : int
        Dimension d of the features.
    n_categories : int
        Number of rows K.
    """

    def __init__(self, dim: int, n_categories: int) -> None:
        super().__init__()
        self.prototypes = nn.Parameter(torch.empty(n_categories, dim).uniform_(-(dim**-0.5), dim**-0.5))
        self.biases = nn.Parameter(torch.empty(n_categories).uniform_(-(dim**-0.5), dim**-0.5))

    def forward(self, features: Tensor) -> Tensor:
        """(M, d) -> (M, K)."""
        return F.linear(features, self.prototypes, self.biases)

    @torch.no_grad()
    def merge(self, groups: list[list[int]], sizes: list[int]) -> None:
        """Replace each group of rows by their mean, weighted by their number of images; as in `CosineClassifier`."""
        weight = torch.tensor(sizes, dtype=self.prototypes.dtype, device=self.prototypes.device).clamp_min(1)
        shares = torch.zeros(len(groups), len(weight)).to(weight)  # (new K, old K)
        for share, group in zip(shares, groups, strict=True):
            share[group] = weight[group] / weight[group].sum()
        self.prototypes, self.biases = nn.Parameter(shares @ self.prototypes), nn.Parameter(shares @ self.biases)
