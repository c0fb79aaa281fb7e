"""Samples of a given number of classes, of which the first are known and half labelled."""

import numpy as np
import torch


def mixture(
    n_classes: int, n_known: int, *, size: int = 24, dim: int = 16, spread: float = 0.6, seed: int = 0
) -> tuple[torch.Tensor, np.ndarray]:
    """Half of the samples of the first classes are labelled."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(n_classes), size)
    x = rng.normal(size=(n_classes, dim))[truth] + spread * rng.normal(size=(len(truth), dim))
    labels = np.where((truth < n_known) & (np.arange(len(truth)) % 2 == 0), truth, -1)
    return torch.tensor(x, dtype=torch.float32), labels
