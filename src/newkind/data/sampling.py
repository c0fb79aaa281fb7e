"""Images of an epoch: the published balanced sampling, which depends only on seed, epoch and where images are held."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from newkind.data.holdings import Holdings

__all__ = ["epoch_batches", "steps_per_epoch"]

RAKING_STEPS = 200


def steps_per_epoch(n: int, batch_size: int) -> int:
    """Number of full batches in an epoch; a last incomplete batch is dropped."""
    return n // batch_size


def epoch_batches(
    labels: NDArray[np.integer], *, batch_size: int, seed: int, epoch: int, holdings: Holdings | None = None
) -> NDArray[np.int64]:
    """Indices (steps, batch_size) of the images of an epoch, N draws with replacement for `labels` (N,).

    A labelled image has weight 1 and an unlabelled one N_l / N_u, so that half of a batch is labelled in expectation.
    If all images are labelled, or none, all weights are equal.

    With the `holdings` of these images, the columns of a batch are divided among the processes in order, and a process draws images of its
    own disk only. It draws each class as often as if it had all images. A class of which some disk has no image is drawn
    more often by the others, so that the joint batch has the same expected number of images of every class.
    """
    holdings = holdings or Holdings.everywhere(len(labels), 1)
    steps, n_processes = steps_per_epoch(len(labels), batch_size), len(holdings.of_process)
    drawn = np.empty((steps, n_processes, batch_size // n_processes), dtype=np.int64)
    weights = _weights(labels) * _corrections(labels, holdings)
    for disk in np.unique(holdings.of_process):
        own, is_on_disk = holdings.of_process == disk, holdings.of_image == disk
        images, p = np.flatnonzero(is_on_disk), weights[is_on_disk]
        rng = np.random.default_rng((seed, 0x5A3, epoch, disk) if disk else (seed, 0x5A3, epoch))
        drawn[:, own] = images[rng.choice(len(p), size=drawn[:, own].shape, p=p / p.sum())]
    return drawn.reshape(steps, batch_size)


def _weights(labels: NDArray[np.integer]) -> NDArray[np.float64]:
    """Weight (N,) of each image among all."""
    is_labelled = labels >= 0
    n_labelled = int(is_labelled.sum())
    n_unlabelled = len(labels) - n_labelled
    return np.where(is_labelled, 1.0, n_labelled / n_unlabelled if n_unlabelled and n_labelled else 1.0)


def _corrections(labels: NDArray[np.integer], holdings: Holdings) -> NDArray[np.float64]:
    """Factor (N,) of each image's weight, so that its disk draws every class as often as all disks together would.

    Without it, a disk with more images of a class than others draws that class more often.
    """
    of_image, n_disks = holdings.of_image, int(holdings.of_process.max()) + 1
    counts = np.zeros((int(labels.max()) + 2, n_disks))  # (classes, disks), unlabelled images first
    np.add.at(counts, (labels + 1, of_image), 1)
    totals = counts.sum(axis=1, keepdims=True)
    is_there = counts > 0
    weights = np.zeros(len(counts))
    np.add.at(weights, labels + 1, _weights(labels))
    rows_per_disk = np.bincount(holdings.of_process, minlength=n_disks) / len(holdings.of_process)
    shares = _raked(is_there, weights / weights.sum(), rows_per_disk)
    factors = np.divide(shares * totals, counts, out=np.zeros_like(counts), where=is_there)
    found: NDArray[np.float64] = factors[labels + 1, of_image]
    return found


def _raked(is_there: NDArray[np.bool_], wanted: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """How often each disk draws each class (C, D), relative to the `wanted` probabilities (C,).

    All ones if every disk has every class. Otherwise the nearest table with zeros where a disk lacks a class, whose mean over
    the disks, weighted by their `rows` (D,), is `wanted`; found by iterative proportional fitting.
    """
    ones = np.ones(is_there.shape)
    used = wanted > 0
    if is_there[used].all():
        return ones
    table = np.where(is_there, wanted[:, None], 0.0)
    for _ in range(RAKING_STEPS):
        table[used] *= (wanted[used] / (table[used] @ rows))[:, None]
        table /= table.sum(axis=0)
    return np.divide(table, wanted[:, None], out=ones, where=used[:, None])
