"""Schedules over epochs: the teacher's temperature and the learning rate. Epochs count from 0."""

from __future__ import annotations

from math import cos, pi

from newkind.errors import ConfigError

__all__ = ["cosine_learning_rate", "teacher_temperature"]


def teacher_temperature(epoch: int, *, start: float, end: float, warmup_epochs: int, shape: str) -> float:
    """Temperature of the teacher, from `start` in epoch 0 to `end` in the last epoch of the warm-up and later.

    Parameters
    ----------
    epoch : int
        The epoch, from 0.
    start : float
        Temperature in epoch 0.
    end : float
        Temperature after the warm-up.
    warmup_epochs : int
        Number of epochs of the warm-up. With 1, epoch 0 has `start`; with 0, all epochs have `end`.
    shape : {"linear", "cosine"}
        "linear" is linspace(start, end, warmup_epochs) as in the released code; "cosine" is the paper's.

    Returns
    -------
    float
        The temperature.

    Raises
    ------
    ConfigError
        `unknown-schedule` for another shape.

    Examples
    --------
    >>> settings = {"start": 0.07, "end": 0.04, "warmup_epochs": 4, "shape": "linear"}
    >>> [round(teacher_temperature(epoch, **settings), 3) for epoch in range(6)]
    [0.07, 0.06, 0.05, 0.04, 0.04, 0.04]
    """
    if shape not in ("linear", "cosine"):
        raise ConfigError(f"`shape` must be 'linear' or 'cosine'; got {shape!r}.", code="unknown-schedule", shape=shape)
    if epoch >= warmup_epochs:
        return end
    share = epoch / max(warmup_epochs - 1, 1)
    if shape == "cosine":
        share = (1 - cos(pi * share)) / 2
    return start * (1 - share) + end * share


def cosine_learning_rate(epoch: int, *, base: float, n_epochs: int, final_share: float = 1e-3) -> float:
    """Learning rate that falls along a cosine, changed once per epoch.

    Parameters
    ----------
    epoch : int
        The epoch, from 0.
    base : float
        Learning rate in epoch 0.
    n_epochs : int
        Number of epochs.
    final_share : float, default=1e-3
        Learning rate at epoch `n_epochs`, as a share of `base`.

    Returns
    -------
    float
        The learning rate.

    Examples
    --------
    >>> [round(cosine_learning_rate(epoch, base=0.1, n_epochs=4, final_share=0.0), 3) for epoch in range(5)]
    [0.1, 0.085, 0.05, 0.015, 0.0]
    """
    final = base * final_share
    return final + (base - final) * (1 + cos(pi * epoch / n_epochs)) / 2
