"""Whitening by labelled classes: unit covariance within classes, and no direction scaled up without limit."""

import numpy as np
import pytest
import torch
from sklearn.covariance import ShrunkCovariance

from error_codes import raises
from newkind.clustering import within_class_whitening
from newkind.errors import ConfigError, DataError


def _classes(rng: np.random.Generator, n: int = 400) -> tuple[torch.Tensor, np.ndarray]:
    y = rng.integers(0, 5, n)
    stretch = np.diag([3.0, 1.0, 0.2]) @ rng.normal(size=(3, 3))
    return torch.tensor(rng.normal(size=(5, 3))[y] * 4 + rng.normal(size=(n, 3)) @ stretch + 7), y


def test_classes_become_round() -> None:
    x, y = _classes(np.random.default_rng(0))
    center, matrix = within_class_whitening(x, y, shrinkage=0.0)
    z = (x.numpy() - center) @ matrix
    rest = z - np.stack([z[y == c].mean(axis=0) for c in range(5)])[y]
    np.testing.assert_allclose(rest.T @ rest / (len(z) - 5), np.eye(3), atol=1e-9)
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-9)


def test_full_shrinkage_only_scales() -> None:
    x, y = _classes(np.random.default_rng(1))
    _, matrix = within_class_whitening(x, y, shrinkage=1.0)
    product = matrix @ matrix.T
    np.testing.assert_allclose(product, np.eye(3) * product[0, 0], atol=1e-12)


def test_more_dimensions_than_samples_stays_finite() -> None:
    rng = np.random.default_rng(2)
    x, y = torch.tensor(rng.normal(size=(6, 50))), np.array([0, 0, 1, 1, 2, 2])
    _, matrix = within_class_whitening(x, y, shrinkage=0.1)
    assert np.isfinite(matrix).all()
    assert np.abs(matrix).max() < 100


def test_classes_of_one_point_each() -> None:
    x, y = torch.ones(4, 3, dtype=torch.float64), np.array([0, 0, 1, 1])
    _, matrix = within_class_whitening(x, y, shrinkage=0.2)
    np.testing.assert_array_equal(matrix, np.eye(3))


@pytest.mark.parametrize("shrinkage", [0.0, 0.2, 0.7, 1.0])
def test_the_covariance_is_scikit_learns(shrinkage: float) -> None:
    x, y = _classes(np.random.default_rng(3))
    _, matrix = within_class_whitening(x, y, shrinkage=shrinkage)
    rest = np.concatenate([x.numpy()[y == c] - x.numpy()[y == c].mean(axis=0) for c in range(5)])
    shrunk = ShrunkCovariance(shrinkage=shrinkage, assume_centered=True).fit(rest).covariance_ * len(x) / (len(x) - 5)
    np.testing.assert_allclose(np.linalg.inv(matrix @ matrix.T), shrunk, rtol=1e-8, atol=1e-8)


def test_tensors_and_arrays_give_the_same() -> None:
    x, y = _classes(np.random.default_rng(4))
    for ours, theirs in zip(
        within_class_whitening(x, y, shrinkage=0.1),
        within_class_whitening(x.numpy(), y.tolist(), shrinkage=0.1),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_bad_input() -> None:
    x, y = _classes(np.random.default_rng(5))
    with raises(DataError, "whitening-shape"):
        within_class_whitening(x, y[1:], shrinkage=0.1)
    with raises(DataError, "whitening-shape"):
        within_class_whitening(x[:0], y[:0], shrinkage=0.1)
    with raises(ConfigError, "shrinkage-range"):
        within_class_whitening(x, y, shrinkage=1.5)
