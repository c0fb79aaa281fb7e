"""A map of all images: features laid out in the plane, so that what looks alike lies together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Atlas", "lay_out", "map_seconds", "place_beside", "principal_components"]

MAX_POINTS = 50_000
LANDMARKS = 4_000
"""So many images are laid out by t-SNE; the others come to lie beside those that are most like them."""
DIMENSIONS = 50
ITERATIONS = 500
FEWEST = 8
"""Fewer points than this have no neighbourhoods: PCA does."""


@dataclass(frozen=True, eq=False)
class Atlas:
    """m points."""

    lines: NDArray[np.int64]
    """(m,), rising; all images, or a sample of them."""
    points: NDArray[np.float32]
    """(m, 2), between 0 and 1."""
    way: str
    """How they were laid out, in words."""


def lay_out(
    features: NDArray[np.float16],
    category: NDArray[np.int32],
    *,
    max_points: int = MAX_POINTS,
    landmarks: int = LANDMARKS,
    seed: int = 0,
) -> Atlas:
    """t-SNE of up to `landmarks` images on their 50 principal components, the others beside their likes."""
    rng = np.random.default_rng(seed)
    lines = _sample(category, max_points, rng)
    chosen = _sample(category[lines], landmarks, rng)  # numbers in `lines`
    components, mean, axes = principal_components(_rows(features, lines[chosen]), DIMENSIONS)
    if len(chosen) < FEWEST:
        points, way = _two_columns(components), "principal components"
    else:
        points, way = _t_sne(components, seed), "t-SNE"
    if len(chosen) < len(lines):
        others = np.setdiff1d(np.arange(len(lines)), chosen)
        everywhere = np.empty((len(lines), 2), dtype=np.float32)
        everywhere[chosen] = points
        for start in range(0, len(others), 4096):
            part = others[start : start + 4096]
            rows = ((_rows(features, lines[part]) - mean) @ axes).astype(np.float32)
            everywhere[part] = place_beside(rows, components, points, rng)
        points = everywhere
        way += f" of {len(chosen):,} images, the others beside those most like them"
    if len(lines) < len(features):
        way += f"; {len(lines):,} of {len(features):,} images are drawn"
    return Atlas(lines, _into_unit_square(points), way)


def map_seconds(n: int) -> float:
    """About how long t-SNE takes; for a word before it starts."""
    return 0.0035 * min(n, LANDMARKS)


def principal_components(
    rows: NDArray[np.float32], n: int
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """(m, n') coordinates along the n' <= n axes of largest variance, with the mean (d,) and the axes (d, n')."""
    mean: NDArray[np.float32] = rows.mean(axis=0)
    centred = rows - mean
    _, vectors = np.linalg.eigh(centred.T.astype(np.float64) @ centred)  # variances rise
    axes = vectors[:, ::-1][:, :n]
    axes = (axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1.0, 1.0)).astype(
        np.float32
    )
    return centred @ axes, mean, axes


def place_beside(
    rows: NDArray[np.float32],
    landmarks: NDArray[np.float32],
    points: NDArray[np.float32],
    rng: np.random.Generator,
    *,
    n_nearest: int = 5,
) -> NDArray[np.float32]:
    """(m, 2): each row among the points of the landmarks nearest to it, the nearest weighing by far the most."""
    n_nearest = min(n_nearest, len(landmarks))
    distances = (landmarks**2).sum(axis=1) - 2 * rows @ landmarks.T + (rows**2).sum(axis=1, keepdims=True)
    nearest = np.argpartition(distances, n_nearest - 1, axis=1)[:, :n_nearest]
    squared = np.maximum(np.take_along_axis(distances, nearest, axis=1), 0)
    weights = 1 / (squared + 1e-3 * squared.mean(axis=1, keepdims=True) + 1e-9) ** 2
    weights /= weights.sum(axis=1, keepdims=True)
    extent = float(np.ptp(points, axis=0).max())
    drift = rng.normal(scale=0.004 * extent, size=(len(rows), 2))  # likes of the same image shall not hide each other
    placed: NDArray[np.float32] = ((weights[:, :, None] * points[nearest]).sum(axis=1) + drift).astype(np.float32)
    return placed


def _t_sne(components: NDArray[np.float32], seed: int) -> NDArray[np.float32]:
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    start = _two_columns(components)
    start = start / max(float(start[:, 0].std()), 1e-12) * 1e-4
    # Its threads meet thousands of times a second: beside other work on the machine they would mostly wait for each other.
    with threadpool_limits(1, user_api="openmp"):
        found: NDArray[np.float32] = TSNE(
            perplexity=min(30.0, (len(components) - 1) / 3),
            init=start + np.random.default_rng(seed).normal(scale=1e-6, size=start.shape).astype(np.float32),
            max_iter=ITERATIONS,
            random_state=seed,
        ).fit_transform(components)
    return found if np.isfinite(found).all() else _two_columns(components)


def _sample(category: NDArray[np.int32], most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rising numbers of at most `most` images: every k-th of the images ordered by category, so that each has its share."""
    if len(category) <= most:
        return np.arange(len(category))
    order = np.lexsort((rng.random(len(category)), category))
    return np.sort(order[np.linspace(0, len(order) - 1, most).astype(np.int64)])


def _rows(features: NDArray[np.float16], lines: NDArray[np.int64]) -> NDArray[np.float32]:
    """Unit rows."""
    rows = np.nan_to_num(features[lines].astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    unit: NDArray[np.float32] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return unit


def _two_columns(components: NDArray[np.float32]) -> NDArray[np.float32]:
    two = np.zeros((len(components), 2), dtype=np.float32)
    two[:, : components.shape[1]] = components[:, :2]
    return two


def _into_unit_square(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """In the middle of the square, filling it; neither direction is stretched to more than twice the other."""
    if not len(points):
        return points
    low, high = points.min(axis=0), points.max(axis=0)
    extent = np.maximum(high - low, max(float((high - low).max()) / 2, 1e-12))
    placed: NDArray[np.float32] = ((points - (low + high) / 2) / extent + 0.5).astype(np.float32).clip(0, 1)
    return placed
