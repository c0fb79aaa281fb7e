"""Images of an epoch: the published balanced sampling, which depends only on seed and epoch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["epoch_batches", "steps_per_epoch"]


def steps_per_epoch(n: int, batch_size: int) -> int:
    """Number of full batches in an epoch; a last incomplete batch is dropped."""
    return n // batch_size


def epoch_batches(labels: NDArray[np.integer], *, batch_size: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """Indices (steps, batch_size) of the images of an epoch, N draws with replacement for `labels` (N,).

    A labelled image has weight 1 and an unlabelled one N_l / N_u, so that half of a batch is labelled in expectation.
    If all images are labelled, or none, all weights are equal.
    """
    is_labelled = labels >= 0
    n_labelled = int(is_labelled.sum())
    n_unlabelled = len(labels) - n_labelled
    weights = np.where(is_labelled, 1.0, n_labelled / n_unlabelled if n_unlabelled and n_labelled else 1.0)
    rng = np.random.default_rng((seed, 0x5A3, epoch))
    drawn = rng.choice(len(labels), size=len(labels), p=weights / weights.sum())
    steps = steps_per_epoch(len(labels), batch_size)
    return drawn[: steps * batch_size].reshape(steps, batch_size)
