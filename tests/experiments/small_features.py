"""Small features with truth, for runs that take a second or two."""

from pathlib import Path

import numpy as np

N_CLASSES, N_KNOWN, DIM = 6, 4, 12


def write_blobs(path: Path, *, seed: int = 0, with_truth: bool = True) -> Path:
    """Write six clusters of ten samples; half of the samples of the first four are labelled."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(N_CLASSES), 10)
    features = rng.normal(size=(N_CLASSES, DIM))[truth] + 0.5 * rng.normal(size=(len(truth), DIM))
    labels = np.where((truth < N_KNOWN) & (np.arange(len(truth)) % 2 == 0), truth, -1)
    more = {"truth": truth} if with_truth else {}
    np.savez(path, features=features.astype(np.float32), labels=labels, **more)
    return path
