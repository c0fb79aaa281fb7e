"""Labelled clusters of features, for hold-out problems that take a second or two."""

import numpy as np

from newkind.data import Collection, from_features

SECRET = "Nobody-labelled-this"


def clouds(n_known: int = 6, n_each: int = 12) -> Collection:
    """Clusters in 8-d: `n_known` known ones with half of their samples labelled, and two that only the truth names."""
    rng = np.random.default_rng(0)
    kind = np.repeat(np.arange(n_known + 2), n_each)
    features = (3 * rng.normal(size=(n_known + 2, 8))[kind] + rng.normal(size=(len(kind), 8))).astype(np.float32)
    names = [f"class{i}" for i in range(n_known)] + [SECRET, SECRET + "-either"]
    labels = [names[k] if k < n_known and i % 2 == 0 else "" for i, k in enumerate(kind)]
    return from_features(features, labels, truth=[names[k] for k in kind], origin="clouds")
