"""The number of categories from held-out known classes, on mixtures with a known number."""

import numpy as np
import pytest
import torch
from labelled_mixture import mixture

from error_codes import raises
from newkind.clustering import estimate_by_search, estimate_n_categories
from newkind.clustering import n_categories as module
from newkind.errors import DataError


@pytest.mark.parametrize(("n_classes", "n_known"), [(12, 6), (20, 5), (24, 20)])
def test_mixtures_with_a_known_number(n_classes: int, n_known: int) -> None:
    x, labels = mixture(n_classes, n_known, spread=0.35)
    found = estimate_n_categories(x, labels, n_known=n_known)
    assert found.way == "pairs"
    assert abs(found.n_categories - n_classes) <= max(2, 0.15 * n_classes)
    assert found.low <= found.n_categories <= found.high
    assert found.low - 2 <= n_classes <= found.high + 2
    assert found.quality > 0.8
    levels = [k for k, _ in found.curve]
    assert levels == sorted(set(levels))


def test_arrays_and_tensors_give_the_same() -> None:
    x, labels = mixture(10, 5)
    assert estimate_n_categories(x.numpy(), labels.tolist(), n_known=5) == estimate_n_categories(x, labels, n_known=5)


def test_with_micro_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MICRO_CLUSTERS", 100)
    x, labels = mixture(12, 6, spread=0.3)
    assert abs(estimate_n_categories(x, labels, n_known=6).n_categories - 12) <= 2


def test_the_same_seed_gives_the_same() -> None:
    x, labels = mixture(10, 5)
    assert estimate_n_categories(x, labels, n_known=5, seed=3) == estimate_n_categories(x, labels, n_known=5, seed=3)


@pytest.mark.parametrize("labels", [[0, 0, 1, 1, -1, -1], [0, 1, 2, -1, -1, -1]])
def test_too_few_labels_give_a_guess(labels: list[int]) -> None:
    found = estimate_n_categories(np.eye(6), labels, n_known=max(labels) + 1)
    assert found.way == "guess"
    assert found.n_categories == min(2 * (max(labels) + 1), 5)


def test_features_without_information() -> None:
    _, labels = mixture(8, 4)
    constant = estimate_n_categories(torch.ones(len(labels), 5), labels, n_known=4)
    random = np.random.default_rng(0).normal(size=(len(labels), 5))
    noise = estimate_n_categories(random, labels, n_known=4)
    for found in (constant, noise):
        assert 4 <= found.low <= found.n_categories <= found.high
    assert noise.quality < 0.3


@pytest.mark.parametrize("estimate", [estimate_n_categories, estimate_by_search])
def test_bad_input(estimate) -> None:
    x, labels = mixture(6, 3)
    with raises(DataError, "features-not-finite"):
        estimate(torch.full_like(x, torch.nan), labels, n_known=3)
    with raises(DataError, "labels-unusable"):
        estimate(x, np.full(len(x), -1), n_known=3)
    with raises(DataError, "labels-unusable"):
        estimate(x, labels, n_known=2)
    with raises(DataError, "features-shape"):
        estimate(x[:1], labels[:1], n_known=3)
    with raises(DataError, "features-shape"):
        estimate(x, labels[1:], n_known=3)
