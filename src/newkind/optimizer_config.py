"""Learning rate, batch size and weight decay, which every method has its own of. Without torch, as `config`."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BASE_BATCH", "OptimizerConfig"]

BASE_BATCH = 128
"""Batch size for which the learning rate is given; another joint batch scales it linearly."""


@dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """Learning rate, batch size and weight decay of SGD. The defaults are those of SimGCD.

    Parameters
    ----------
    learning_rate : float, default=0.1
        Learning rate for a joint batch of 128 images.
    batch_size : int, default=128
        Batch size per process.
    weight_decay : float, default=5e-5
        Weight decay.
    decay_vectors : bool, default=False
        Whether biases and other vectors are decayed as well as matrices.
    """

    learning_rate: float = 0.1
    batch_size: int = BASE_BATCH
    weight_decay: float = 5e-5
    decay_vectors: bool = False
