"""Map of all images: their features in two dimensions, similar images close together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from newkind.report.centres import unit_rows

__all__ = ["ImageMap", "Projection", "make_map", "map_seconds", "place_beside", "principal_components", "sample_lines"]

MAX_POINTS = 50_000
LANDMARKS = 4_000  # Images that t-SNE places; the others are placed beside the landmarks that are most similar to them.
DIMENSIONS = 50
ITERATIONS = 500
FEWEST = 8  # Fewer images than this have no neighbourhoods; they are placed by PCA.


@dataclass(frozen=True, eq=False)
class ImageMap:
    """Positions of m images.

    Parameters
    ----------
    lines : ndarray of int64, shape (m,)
        Rows of the images in increasing order: all images, or a sample of them.
    points : ndarray of float32, shape (m, 2)
        Positions between 0 and 1.
    method : str
        How they were computed, for the reader.
    """

    lines: NDArray[np.int64]
    points: NDArray[np.float32]
    method: str


@dataclass(frozen=True, eq=False)
class Projection:
    """Principal components of m rows of d values.

    Parameters
    ----------
    coordinates : ndarray of float32, shape (m, n)
        Rows along the axes.
    mean : ndarray of float32, shape (d,)
        Mean of the rows.
    axes : ndarray of float32, shape (d, n)
        Directions of largest variance.
    """

    coordinates: NDArray[np.float32]
    mean: NDArray[np.float32]
    axes: NDArray[np.float32]

    def project(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Coordinates of other rows (k, d) along the same axes, shape (k, n)."""
        return ((rows - self.mean) @ self.axes).astype(np.float32)


def make_map(
    features: NDArray[np.float16],
    category: NDArray[np.int32],
    *,
    max_points: int = MAX_POINTS,
    landmarks: int = LANDMARKS,
    seed: int = 0,
) -> ImageMap:
    """Place images by t-SNE of up to `landmarks` of them on their 50 principal components, and the others beside these.

    Parameters
    ----------
    features : ndarray of float16, shape (n, d)
        Features of the images.
    category : ndarray of int32, shape (n,)
        Category of each image, to sample from all of them.
    max_points : int, default=50_000
        Most images on the map.
    landmarks : int, default=4_000
        Most images that t-SNE places.
    seed : int, default=0
        Seed of the samples and of t-SNE.

    Returns
    -------
    ImageMap
    """
    rng = np.random.default_rng(seed)
    lines = sample_lines(category, max_points, rng)
    chosen = sample_lines(category[lines], landmarks, rng)  # indices into `lines`
    components = principal_components(unit_rows(features[lines[chosen]]), DIMENSIONS)
    if len(chosen) < FEWEST:
        points, method = _two_columns(components.coordinates), "principal components"
    else:
        points, method = _t_sne(components.coordinates, seed), "t-SNE"
    if len(chosen) < len(lines):
        others = np.setdiff1d(np.arange(len(lines)), chosen)
        everywhere = np.empty((len(lines), 2), dtype=np.float32)
        everywhere[chosen] = points
        for start in range(0, len(others), 4096):
            part = others[start : start + 4096]
            rows = components.project(unit_rows(features[lines[part]]))
            everywhere[part] = place_beside(rows, components.coordinates, points, rng)
        points = everywhere
        method += f" of {len(chosen):,} images; the others are placed beside the most similar of these"
    if len(lines) < len(features):
        method += f"; {len(lines):,} of {len(features):,} images are drawn"
    return ImageMap(lines, _into_unit_square(points), method)


def map_seconds(n: int) -> float:
    """Approximate duration of t-SNE for n images, for a message before it starts."""
    return 0.0035 * min(n, LANDMARKS)


def principal_components(rows: NDArray[np.float32], n: int) -> Projection:
    """Compute the axes of largest variance.

    Parameters
    ----------
    rows : ndarray of float32, shape (m, d)
        Data.
    n : int
        Most axes.

    Returns
    -------
    Projection
    """
    mean: NDArray[np.float32] = rows.mean(axis=0)
    centred = rows - mean
    _, vectors = np.linalg.eigh(centred.T.astype(np.float64) @ centred)  # variances increase
    axes = vectors[:, ::-1][:, :n]
    # The sign of an axis is arbitrary: its largest component is made positive.
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    axes = (axes * np.where(largest < 0, -1.0, 1.0)).astype(np.float32)
    return Projection(centred @ axes, mean, axes)


def place_beside(
    rows: NDArray[np.float32],
    landmarks: NDArray[np.float32],
    points: NDArray[np.float32],
    rng: np.random.Generator,
    *,
    n_nearest: int = 5,
) -> NDArray[np.float32]:
    """Place each row at the weighted mean of its nearest landmarks' points, the nearest by far the heaviest.

    Parameters
    ----------
    rows : ndarray of float32, shape (m, n)
        Rows to place.
    landmarks : ndarray of float32, shape (l, n)
        Rows that have points.
    points : ndarray of float32, shape (l, 2)
        Points of the landmarks.
    rng : Generator
        For a small jitter, so that near-copies do not hide each other.
    n_nearest : int, default=5
        Number of landmarks per row.

    Returns
    -------
    ndarray of float32, shape (m, 2)
    """
    n_nearest = min(n_nearest, len(landmarks))
    distances = (landmarks**2).sum(axis=1) - 2 * rows @ landmarks.T + (rows**2).sum(axis=1, keepdims=True)
    nearest = np.argpartition(distances, n_nearest - 1, axis=1)[:, :n_nearest]
    squared = np.maximum(np.take_along_axis(distances, nearest, axis=1), 0)
    weights = 1 / (squared + 1e-3 * squared.mean(axis=1, keepdims=True) + 1e-9) ** 2
    weights /= weights.sum(axis=1, keepdims=True)
    extent = float(np.ptp(points, axis=0).max())
    jitter = rng.normal(scale=0.004 * extent, size=(len(rows), 2))
    placed: NDArray[np.float32] = ((weights[:, :, None] * points[nearest]).sum(axis=1) + jitter).astype(np.float32)
    return placed


def sample_lines(category: NDArray[np.int32], most: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Sample rows, from each category in proportion to its size.

    Parameters
    ----------
    category : ndarray of int32, shape (n,)
        Category of each row.
    most : int
        Most rows; all of them if there are no more.
    rng : Generator
        Randomness.

    Returns
    -------
    ndarray of int64
        Rows in increasing order.
    """
    if len(category) <= most:
        return np.arange(len(category))
    order = np.lexsort((rng.random(len(category)), category))
    return np.sort(order[np.linspace(0, len(order) - 1, most).astype(np.int64)])


def _t_sne(components: NDArray[np.float32], seed: int) -> NDArray[np.float32]:
    """Positions (m, 2) of rows (m, n)."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    start = _two_columns(components)
    start = start / max(float(start[:, 0].std()), 1e-12) * 1e-4
    # Its threads synchronise thousands of times per second; beside other work on the machine they mostly wait.
    with threadpool_limits(1, user_api="openmp"):
        found: NDArray[np.float32] = TSNE(
            perplexity=min(30.0, (len(components) - 1) / 3),
            init=start + np.random.default_rng(seed).normal(scale=1e-6, size=start.shape).astype(np.float32),
            max_iter=ITERATIONS,
            random_state=seed,
        ).fit_transform(components)
    return found if np.isfinite(found).all() else _two_columns(components)


def _two_columns(components: NDArray[np.float32]) -> NDArray[np.float32]:
    two = np.zeros((len(components), 2), dtype=np.float32)
    two[:, : components.shape[1]] = components[:, :2]
    return two


def _into_unit_square(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale points to the unit square; neither direction is stretched to more than twice the other."""
    if not len(points):
        return points
    low, high = points.min(axis=0), points.max(axis=0)
    extent = np.maximum(high - low, max(float((high - low).max()) / 2, 1e-12))
    placed: NDArray[np.float32] = ((points - (low + high) / 2) / extent + 0.5).astype(np.float32).clip(0, 1)
    return placed
