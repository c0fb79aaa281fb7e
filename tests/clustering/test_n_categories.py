"""The number of categories: on mixtures with a known number, the pair counts against loops, the published search."""

import numpy as np
import pytest
import torch

from newkind.clustering import number
from newkind.clustering.n_categories import estimate_by_search, estimate_n_categories
from newkind.errors import ConfigError, DataError


def mixture(
    n_classes: int, n_known: int, *, size: int = 24, dim: int = 16, spread: float = 0.6, seed: int = 0
) -> tuple[torch.Tensor, np.ndarray]:
    """Half of the samples of the first classes are labelled."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(n_classes), size)
    x = rng.normal(size=(n_classes, dim))[truth] + spread * rng.normal(size=(len(truth), dim))
    labels = np.where((truth < n_known) & (np.arange(len(truth)) % 2 == 0), truth, -1)
    return torch.tensor(x, dtype=torch.float32), labels


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
    assert f"About {found.n_categories} categories ({n_known} of them known)" in found.sentence()
    assert found.generous() > found.n_categories


def test_with_micro_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(number, "MICRO_CLUSTERS", 100)
    x, labels = mixture(12, 6, spread=0.3)
    assert abs(estimate_n_categories(x, labels, n_known=6).n_categories - 12) <= 2


def test_the_same_seed_says_the_same() -> None:
    x, labels = mixture(10, 5)
    assert estimate_n_categories(x, labels, n_known=5, seed=3) == estimate_n_categories(x, labels, n_known=5, seed=3)


def test_pair_counts_against_loops() -> None:
    x, labels = mixture(6, 4, size=8, spread=1.0)
    x = torch.nn.functional.normalize(x, dim=1)
    levels = np.array([20, 9, 5, 3])
    fold_of = np.array([0, 1, 0, 1])
    pairs = number._held_out_pairs(x, labels, np.arange(48), x.numpy(), np.ones(48), levels, fold_of, 1.0)
    [*cuts] = number.ward_tree(x.numpy(), np.ones(48)).cut(levels)  # shrinkage 1: the same tree for each fold
    for j, cut in enumerate(cuts):
        together = [cut[a] == cut[b] for a in range(48) for b in range(48) if a != b]
        assert pairs.together[j] == pytest.approx(np.mean(together))
        for c in range(4):
            own, other = np.flatnonzero(labels == c), np.flatnonzero((labels >= 0) & (labels != c))
            assert pairs.same[c, j] == sum(cut[a] == cut[b] for a in own for b in own if a != b)
            assert pairs.cross[c, j] == sum(cut[a] == cut[b] for a in own for b in other)
            assert (pairs.n_same[c], pairs.n_cross[c]) == (len(own) * (len(own) - 1), len(own) * len(other))


def test_the_published_search() -> None:
    x, labels = mixture(9, 5, spread=0.2)
    found = estimate_by_search(x, labels, n_known=5, max_categories=60, n_init=3)
    assert found.way == "search"
    assert found.quality == max(score for _, score in found.curve)
    assert dict(found.curve)[found.n_categories] == found.quality
    assert 5 <= found.n_categories <= 12
    assert "published search" in found.sentence()
    with pytest.raises(ConfigError, match="room above the 5 known"):
        estimate_by_search(x, labels, n_known=5, max_categories=5)


@pytest.mark.parametrize("labels", [[0, 0, 1, 1, -1, -1], [0, 1, 2, -1, -1, -1]])
def test_too_little_to_learn_from_is_a_guess_that_says_so(labels: list[int]) -> None:
    found = estimate_n_categories(torch.randn(6, 3), np.array(labels), n_known=max(labels) + 1)
    assert found.way == "guess"
    assert found.n_categories == min(2 * (max(labels) + 1), 5)
    assert "too little to learn" in found.sentence()


def test_features_that_say_nothing() -> None:
    _, labels = mixture(8, 4)
    constant = estimate_n_categories(torch.ones(len(labels), 5), labels, n_known=4)
    noise = estimate_n_categories(torch.randn(len(labels), 5), labels, n_known=4)
    for found in (constant, noise):
        assert 4 <= found.low <= found.n_categories <= found.high
    assert "rough guess" in noise.sentence()


def test_bad_input() -> None:
    x, labels = mixture(6, 3)
    with pytest.raises(DataError, match="NaN"):
        estimate_n_categories(torch.full_like(x, torch.nan), labels, n_known=3)
    with pytest.raises(DataError, match="labelled"):
        estimate_n_categories(x, np.full(len(x), -1), n_known=3)
    with pytest.raises(DataError, match="at least 2"):
        estimate_n_categories(x[:1], labels[:1], n_known=3)
