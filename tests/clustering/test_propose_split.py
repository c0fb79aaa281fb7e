"""Proposals to split samples."""

import numpy as np

from error_codes import raises
from newkind.clustering.split import propose_split
from newkind.errors import ConfigError


def _blobs(n_blobs: int, n_each: int, spread: float) -> np.ndarray:
    rng = np.random.default_rng(0)
    centers = 10 * np.eye(8)[:n_blobs]
    return np.repeat(centers, n_each, axis=0) + spread * rng.normal(size=(n_blobs * n_each, 8))


def test_clear_parts_are_found() -> None:
    parts = propose_split(_blobs(4, 20, 0.5))
    assert sorted(tuple(part) for part in parts) == [tuple(range(20 * k, 20 * k + 20)) for k in range(4)]


def test_without_structure_there_are_two() -> None:
    assert len(propose_split(_blobs(1, 60, 1.0))) == 2


def test_the_number_can_be_given_and_the_largest_part_is_first() -> None:
    x = np.concatenate([_blobs(3, 10, 0.5), _blobs(1, 15, 0.5)])
    parts = propose_split(x, 3)
    assert [len(part) for part in parts] == [25, 10, 10]


def test_too_few_samples() -> None:
    for n, size in ((None, 1), (3, 2), (1, 5)):
        with raises(ConfigError, "too-few-samples"):
            propose_split(np.zeros((size, 2)), n)
