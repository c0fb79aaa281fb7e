"""Centres of categories and typicality, against plain computations."""

import numpy as np
import pytest

from newkind.report.centres import category_centres, typicality


def test_centres_and_typicality_are_cosines_relative_to_the_mean() -> None:
    rng = np.random.default_rng(0)
    x, category = rng.normal(size=(50, 6)).astype(np.float16), rng.integers(0, 3, 50).astype(np.int32)
    centres, mean = category_centres(x, category, 4)
    unit = x.astype(np.float64) / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
    for k in range(3):
        expected = (unit[category == k] - unit.mean(axis=0)).mean(axis=0)
        np.testing.assert_allclose(centres[k], expected / np.linalg.norm(expected), atol=1e-4)
    assert not centres[3].any()  # has no images
    found = typicality(x, category, centres, mean)
    for i in (0, 17, 49):
        a, b = unit[i] - unit.mean(axis=0), centres[category[i]]
        assert found[i] == pytest.approx(a @ b / np.linalg.norm(a), abs=1e-4)


def test_features_that_are_not_finite() -> None:
    x = np.full((4, 3), np.nan, dtype=np.float16)
    centres, mean = category_centres(x, np.zeros(4, np.int32), 2)
    assert np.isfinite(centres).all()
    assert np.isfinite(typicality(x, np.zeros(4, np.int32), centres, mean)).all()
