"""Map: similar images stay together, for few, many and identical images."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from newkind.report.map import make_map, place_beside, principal_components


def clouds(n: int, k: int, dim: int = 16, *, spread: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    category = np.sort(rng.integers(0, k, n)).astype(np.int32)
    x = rng.normal(size=(k, dim))[category] + spread * rng.normal(size=(n, dim))
    return x.astype(np.float16), category


def same_beside(points: np.ndarray, category: np.ndarray) -> float:
    """The share of points whose nearest other point is of their own category."""
    distances = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    return float((category[distances.argmin(axis=1)] == category).mean())


def test_principal_components_are_those_of_scikit_learn() -> None:
    x = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32) * np.arange(1, 7, dtype=np.float32)
    found = principal_components(x, 3)
    expected = PCA(3).fit(x)
    np.testing.assert_allclose(np.abs(found.coordinates), np.abs(expected.transform(x)), atol=1e-3)
    np.testing.assert_allclose(found.project(x), found.coordinates, atol=1e-3)


def test_similar_images_are_together() -> None:
    x, category = clouds(120, 4)
    image_map = make_map(x, category)
    assert image_map.method == "t-SNE"
    assert image_map.lines.tolist() == list(range(120))
    assert image_map.points.min() >= 0
    assert image_map.points.max() <= 1
    assert np.ptp(image_map.points, axis=0).max() == pytest.approx(1, abs=1e-5)
    assert same_beside(image_map.points, category) > 0.95


def test_other_images_are_placed_beside_similar_landmarks() -> None:
    x, category = clouds(400, 4)
    image_map = make_map(x, category, landmarks=80)
    assert "80 images" in image_map.method
    assert same_beside(image_map.points, category) > 0.95


def test_a_sample_of_very_many_images_has_every_category() -> None:
    x, category = clouds(1000, 20)
    image_map = make_map(x, category, max_points=100, landmarks=60)
    assert len(image_map.lines) == 100
    assert len(set(image_map.lines.tolist())) == 100
    assert set(category[image_map.lines].tolist()) == set(category.tolist())
    assert "100 of 1,000" in image_map.method


def test_a_row_that_is_a_landmark_is_placed_on_it() -> None:
    rng = np.random.default_rng(0)
    landmarks, points = rng.normal(size=(30, 5)).astype(np.float32), rng.uniform(size=(30, 2)).astype(np.float32)
    placed = place_beside(landmarks, landmarks, points, rng)
    assert np.abs(placed - points).max() < 0.05


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9])
def test_few_images(n: int) -> None:
    x, category = clouds(n, 2)
    image_map = make_map(x, category)
    assert image_map.points.shape == (n, 2)
    assert np.isfinite(image_map.points).all()


@pytest.mark.parametrize("value", [0.0, 3.0, np.nan, np.inf])
def test_identical_images(value: float) -> None:
    image_map = make_map(np.full((20, 4), value, dtype=np.float16), np.zeros(20, np.int32))
    assert np.isfinite(image_map.points).all()


def test_a_single_dimension() -> None:
    image_map = make_map(np.linspace(-1, 1, 30, dtype=np.float16)[:, None], np.zeros(30, np.int32))
    assert np.isfinite(image_map.points).all()


def test_the_same_seed_gives_the_same_map() -> None:
    x, category = clouds(60, 3)
    np.testing.assert_array_equal(
        make_map(x, category, landmarks=40).points, make_map(x, category, landmarks=40).points
    )
