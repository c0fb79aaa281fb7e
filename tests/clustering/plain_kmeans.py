"""k-means written down as slowly and plainly as possible, in float64: what the fast one is held against."""

import numpy as np


def all_distances(x: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """(N, K): squared distances, from the differences."""
    return ((x.astype(np.float64)[:, None] - centers.astype(np.float64)[None]) ** 2).sum(axis=2)


def plain_assign(x: np.ndarray, centers: np.ndarray, given: np.ndarray | None = None) -> np.ndarray:
    """The nearest centre, or the given label where there is one."""
    found = all_distances(x, centers).argmin(axis=1)
    return found if given is None else np.where(given >= 0, given, found)


def plain_inertia(x: np.ndarray, centers: np.ndarray, labels: np.ndarray) -> float:
    return float(sum(((x[i].astype(np.float64) - centers[labels[i]]) ** 2).sum() for i in range(len(x))))


def plain_lloyd(x: np.ndarray, centers: np.ndarray, given: np.ndarray, n_iter: int) -> tuple[np.ndarray, np.ndarray]:
    """Centres and labels after so many iterations; no cluster may become empty."""
    centers = centers.astype(np.float64)
    for _ in range(n_iter):
        labels = plain_assign(x, centers, given)
        for k in range(len(centers)):
            members = [x[i].astype(np.float64) for i in range(len(x)) if labels[i] == k]
            assert members, "the example must not have empty clusters"
            centers[k] = np.mean(members, axis=0)
    return centers, plain_assign(x, centers, given)


def blobs(
    n: int = 300, dim: int = 8, k: int = 10, *, spread: float = 0.5, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Samples (n, dim) float32 around k centres that overlap a little, and whose they are."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, k, n)
    truth[:k] = np.arange(k)
    x = rng.normal(size=(k, dim))[truth] + spread * rng.normal(size=(n, dim))
    return x.astype(np.float32), truth


def partly(truth: np.ndarray, n_known: int, *, seed: int = 0) -> np.ndarray:
    """Labels of about half of the samples of the first classes, -1 for the others."""
    drawn = np.random.default_rng(seed).random(len(truth)) < 0.5
    return np.where((truth < n_known) & drawn, truth, -1)
