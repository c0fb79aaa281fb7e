"""What changes with the epoch: the teacher's temperature and the learning rate. Epochs count from 0."""

from __future__ import annotations

from math import cos, pi

__all__ = ["cosine_learning_rate", "teacher_temperature"]


def teacher_temperature(epoch: int, *, start: float, end: float, warmup_epochs: int, shape: str) -> float:
    """From `start` in epoch 0 to `end` in the last epoch of the warm-up and ever after.

    'linear' is the released code's linspace(start, end, warmup_epochs); 'cosine' is the paper's. A warm-up of
    one epoch is that epoch at `start`; without a warm-up it is `end` throughout.
    """
    if shape not in ("linear", "cosine"):
        raise ValueError(f"shape is {shape!r}; expected 'linear' or 'cosine'.")
    if epoch >= warmup_epochs:
        return end
    share = epoch / max(warmup_epochs - 1, 1)
    if shape == "cosine":
        share = (1 - cos(pi * share)) / 2
    return start * (1 - share) + end * share


def cosine_learning_rate(epoch: int, *, base: float, n_epochs: int, final_share: float = 1e-3) -> float:
    """From `base` in epoch 0 towards base * final_share at epoch n_epochs, changed once an epoch."""
    final = base * final_share
    return final + (base - final) * (1 + cos(pi * epoch / n_epochs)) / 2
