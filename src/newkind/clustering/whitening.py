"""Features in which labelled classes are round: what labels teach about the spread within any class."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["within_class_whitening"]


def within_class_whitening(
    x: Tensor, labels: NDArray[np.integer], *, shrinkage: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(center (d,), matrix (d, d)): (x - center) @ matrix has about the unit covariance within each labelled class.

    x (n, d), labels (n,). shrinkage: the share of a multiple of the identity in the covariance, which keeps directions that
    few samples say little about from being blown up. Classes that are all one point give the identity.
    """
    samples = x.double().numpy()
    classes, y = np.unique(labels, return_inverse=True)
    counts = np.bincount(y)
    means = np.zeros((len(classes), samples.shape[1]))
    np.add.at(means, y, samples)
    means /= counts[:, None]
    rest = samples - means[y]
    covariance = rest.T @ rest / max(len(samples) - len(classes), 1)
    scale = np.trace(covariance) / len(covariance)
    if scale <= torch.finfo(torch.float32).tiny:
        return samples.mean(axis=0), np.eye(len(covariance))
    values, vectors = np.linalg.eigh((1 - shrinkage) * covariance + shrinkage * scale * np.eye(len(covariance)))
    return samples.mean(axis=0), vectors / np.sqrt(values)
