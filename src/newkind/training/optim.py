"""SGD as in the published runs."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["build_sgd"]


def build_sgd(
    modules: list[nn.Module], *, learning_rate: float, momentum: float, weight_decay: float
) -> torch.optim.SGD:
    """Two groups: biases and other 1-D parameters without weight decay, everything else (prototypes too) with it."""
    parameters = [p for module in modules for p in module.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.SGD(groups, lr=learning_rate, momentum=momentum)
