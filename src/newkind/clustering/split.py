"""Propose how to split a category: parts found by k-means, their number by how clearly they are apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from newkind.clustering.kmeans import k_means
from newkind.errors import ConfigError

__all__ = ["propose_split"]

MOST_PARTS = 6
CLEARER = 0.05
"""More than two parts need a mean silhouette that is higher by this: it rises slightly with the number of parts even where there are
none."""
SAMPLE = 2000
"""Number of samples that the number of parts is chosen from."""


def propose_split(features: ArrayLike, n: int | None = None, *, seed: int = 0) -> list[NDArray[np.int64]]:
    """Split samples into parts.

    Parameters
    ----------
    features : array-like of shape (n_samples, n_features)
        Features of the samples.
    n : int, optional
        Number of parts. Default: 2, or up to 6 where the mean silhouette is clearly higher.
    seed : int, default=0
        Seed of the random choices.

    Returns
    -------
    list of ndarray of int64
        Indices of the samples of each part, the largest part first.

    Raises
    ------
    ConfigError
        With the code `too-few-samples` if there are fewer samples than parts.

    Examples
    --------
    >>> x = np.array([[0.0, 1], [0, 2], [0, 3], [9, 1], [9, 2]])
    >>> [part.tolist() for part in propose_split(x, 2)]
    [[0, 1, 2], [3, 4]]
    """
    x = np.asarray(features, dtype=np.float32)
    if len(x) < max(n or 2, 2) or (n is not None and n < 2):
        raise ConfigError(
            f"{len(x)} samples cannot be split into {n or 2} parts.", code="too-few-samples", n_samples=len(x)
        )
    chosen = n if n is not None else _clearest(x, seed)
    labels = k_means(x, chosen, n_init=5, seed=seed).labels.cpu().numpy()
    parts = [np.flatnonzero(labels == k) for k in range(chosen)]
    return sorted((part for part in parts if len(part)), key=lambda part: (-len(part), int(part[0])))


def _clearest(x: NDArray[np.float32], seed: int) -> int:
    """Number of parts with the highest mean silhouette, from at most SAMPLE samples."""
    from sklearn.metrics import silhouette_score  # slow to import

    rng = np.random.default_rng(seed)
    seen = x if len(x) <= SAMPLE else x[np.sort(rng.choice(len(x), SAMPLE, replace=False))]
    scores = {}
    for n in range(2, min(MOST_PARTS, len(seen) - 1) + 1):
        labels = k_means(seen, n, n_init=3, seed=seed).labels.cpu().numpy()
        if len(np.unique(labels)) > 1:
            scores[n] = float(silhouette_score(seen, labels))
    best = max(scores, key=lambda n: (scores[n], -n)) if scores else 2
    return best if best > 2 and scores[best] > scores.get(2, 0.0) + CLEARER else 2
