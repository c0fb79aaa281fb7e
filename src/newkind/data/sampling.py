"""Which images an epoch sees: the published balanced draw, a function of seed and epoch only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["epoch_batches", "steps_per_epoch"]


def steps_per_epoch(n: int, batch_size: int) -> int:
    """Full batches in an epoch; the last short one is dropped."""
    return n // batch_size


def epoch_batches(labels: NDArray[np.integer], *, batch_size: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """Image numbers (steps, batch_size), drawn with replacement, N draws an epoch.

    A labelled image has weight 1 and an unlabelled one N_l / N_u, so that half of a batch is labelled in
    expectation. With no image of one kind, all weights are equal.
    """
    is_labelled = labels >= 0
    n_labelled = int(is_labelled.sum())
    n_unlabelled = len(labels) - n_labelled
    weights = np.where(is_labelled, 1.0, n_labelled / n_unlabelled if n_unlabelled and n_labelled else 1.0)
    rng = np.random.default_rng((seed, 0x5A3, epoch))
    drawn = rng.choice(len(labels), size=len(labels), p=weights / weights.sum())
    steps = steps_per_epoch(len(labels), batch_size)
    return drawn[: steps * batch_size].reshape(steps, batch_size)
