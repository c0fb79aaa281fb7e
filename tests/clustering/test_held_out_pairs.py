"""Counts of pairs against loops over all pairs, and the criterion on counts made by hand."""

import numpy as np
import pytest

from newkind.clustering.held_out_pairs import HeldOutPairs, MicroClusters, count_held_out_pairs
from newkind.clustering.ward import ward_tree


def samples() -> tuple[np.ndarray, np.ndarray]:
    """48 unit vectors of 6 classes, of which 4 are known and half labelled."""
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(6), 8)
    x = (rng.normal(size=(6, 16))[truth] + rng.normal(size=(48, 16))).astype(np.float32)
    labels = np.where((truth < 4) & (np.arange(48) % 2 == 0), truth, -1)
    return x / np.linalg.norm(x, axis=1, keepdims=True), labels


def test_counts_are_those_of_loops() -> None:
    x, labels = samples()
    levels, fold_of = np.array([20, 9, 5, 3]), np.array([0, 1, 0, 1])
    pairs = count_held_out_pairs(
        x, labels, MicroClusters(np.arange(48), x, np.ones(48)), levels, fold_of, shrinkage=1.0
    )
    # Without whitening it is the same tree for each fold.
    points = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)
    for j, cut in enumerate(ward_tree(points, np.ones(48)).cut(levels)):
        together = [cut[a] == cut[b] for a in range(48) for b in range(48) if a != b]
        assert pairs.together[j] == pytest.approx(np.mean(together))
        for c in range(4):
            own, other = np.flatnonzero(labels == c), np.flatnonzero((labels >= 0) & (labels != c))
            assert pairs.same[c, j] == sum(cut[a] == cut[b] for a in own for b in own if a != b)
            assert pairs.cross[c, j] == sum(cut[a] == cut[b] for a in own for b in other)
            assert (pairs.n_same[c], pairs.n_cross[c]) == (len(own) * (len(own) - 1), len(own) * len(other))


def made(tpr: np.ndarray, fpr: np.ndarray, together: np.ndarray) -> HeldOutPairs:
    levels = np.array([64, 32, 16, 8, 4, 2])
    return HeldOutPairs(
        levels, together, 100 * np.stack([tpr, tpr]), np.full(2, 100.0), 100 * np.stack([fpr, fpr]), np.full(2, 100.0)
    )


def test_perfect_separation_is_an_f1_of_one() -> None:
    pairs = made(np.ones(6), np.zeros(6), np.full(6, 0.1))
    np.testing.assert_allclose(pairs.f1(), 1)
    assert pairs.best_level() == (64, pytest.approx(1))


def test_chance_is_an_f1_of_zero() -> None:
    share = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.6])
    np.testing.assert_allclose(made(share, share, share).f1(), 0, atol=1e-9)


def test_errors_balance_where_the_curves_cross() -> None:
    # Too many clusters split classes (TPR falls), too few merge them (FPR rises); both errors are equal at 16 before smoothing.
    tpr = np.array([0.3, 0.6, 0.9, 0.95, 0.98, 1.0])
    together = np.array([0.05, 0.08, 0.1, 0.2, 0.35, 0.6])
    fpr = np.array([0.0, 0.002, 0.1 * 0.1 / 0.9, 0.1, 0.3, 0.6])
    k, _ = made(tpr, fpr, together).best_level()
    assert 8 < k < 32


def test_weights_choose_classes() -> None:
    pairs = HeldOutPairs(
        np.array([8, 4]),
        np.full(2, 0.2),
        np.array([[10.0, 20.0], [0.0, 5.0]]),
        np.array([20.0, 10.0]),
        np.array([[1.0, 2.0], [3.0, 4.0]]),
        np.array([40.0, 20.0]),
    )
    tpr, fpr = pairs.rates(np.array([0, 2]))
    np.testing.assert_allclose(tpr, [0, 0.5])
    np.testing.assert_allclose(fpr, [0.15, 0.2])
