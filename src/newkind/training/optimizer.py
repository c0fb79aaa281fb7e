"""SGD as in the published runs."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["build_sgd"]


def build_sgd(
    modules: list[tuple[nn.Module, float]],
    *,
    learning_rate: float,
    momentum: float,
    weight_decay: float,
    decay_vectors: bool = False,
) -> torch.optim.SGD:
    """SGD with two groups per module: matrices (prototypes too) with weight decay, vectors without or with it.

    Parameters
    ----------
    modules : list of (nn.Module, float)
        Modules, each with its `rate`, a multiple of the learning rate that its groups keep.
    learning_rate, momentum, weight_decay : float
        As in torch.optim.SGD.
    decay_vectors : bool, default=False
        Whether vectors have weight decay.

    Returns
    -------
    torch.optim.SGD
    """
    groups = []
    for module, rate in modules:
        parameters = [p for p in module.parameters() if p.requires_grad]
        matrices, vectors = [p for p in parameters if p.ndim > 1], [p for p in parameters if p.ndim <= 1]
        for chosen, decay in ((matrices, weight_decay), (vectors, weight_decay if decay_vectors else 0.0)):
            groups.append({"params": chosen, "weight_decay": decay, "rate": rate, "lr": rate * learning_rate})
    return torch.optim.SGD(groups, lr=learning_rate, momentum=momentum)
