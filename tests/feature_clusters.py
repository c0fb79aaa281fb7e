"""Clusters of features with labels and truth, for runs that take a second or two."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def feature_clusters(n_classes: int, n_known: int, *, n_each: int, dim: int = 8) -> dict[str, NDArray[Any]]:
    """Arrays of an .npz file: clusters in `dim` dimensions; half of the samples of the first `n_known` are labelled."""
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(n_classes), n_each)
    features = 3 * rng.normal(size=(n_classes, dim))[truth] + rng.normal(size=(len(truth), dim))
    labels = np.where((truth < n_known) & (np.arange(len(truth)) % 2 == 0), truth, -1)
    return {"features": features.astype(np.float32), "labels": labels, "truth": truth}
