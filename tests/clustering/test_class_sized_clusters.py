"""Recall and precision against loops over samples, and the crossing on curves made by hand."""

import numpy as np
import pytest
import torch

from newkind.clustering.class_sized_clusters import (
    SMOOTHING,
    HeldOutClasses,
    class_rates,
    hold_out_classes,
    mean_inverse_sizes,
    micro_clusters,
    whiten,
)
from newkind.clustering.ward import ward_tree
from newkind.clustering.whitening import within_class_whitening


def looped_rates(cluster_of: np.ndarray, labels: np.ndarray, sizes: np.ndarray, c: int) -> tuple[float, float]:
    """Recall and precision of class c, one labelled sample after another."""
    own = [i for i in range(len(labels)) if labels[i] == c]
    recalls, precisions = [], []
    for i in own:
        found = sum(cluster_of[j] == cluster_of[i] for j in own if j != i)
        recalls.append(found / (len(own) - 1))
        others = sum(cluster_of[j] == cluster_of[i] for j in range(len(labels)) if j != i)
        expected = found / (len(own) - 1) * (sizes[c] - 1)
        precisions.append(min(expected / others, 1.0) if others else 1.0)
    return float(np.mean(recalls)), float(np.mean(precisions))


def test_rates_are_those_of_loops() -> None:
    rng = np.random.default_rng(0)
    cluster_of = np.concatenate([rng.integers(0, 7, 59), [7]])  # the last sample is alone
    labels = rng.integers(-1, 4, 60)
    labels[-1] = 2
    sizes = np.array([20.0, 9.5, 14.0, 30.0])
    found = class_rates(cluster_of, labels, sizes)
    for c in range(4):
        recall, precision = looped_rates(cluster_of, labels, sizes, c)
        assert found.recall[c] == pytest.approx(recall)
        assert found.precision[c] == pytest.approx(precision)


def test_precision_is_the_true_one_where_everything_is_labelled() -> None:
    rng = np.random.default_rng(1)
    cluster_of, truth = rng.integers(0, 5, 80), rng.integers(0, 4, 80)
    found = class_rates(cluster_of, truth, np.bincount(truth).astype(np.float64))
    together = (cluster_of[:, None] == cluster_of) & ~np.eye(80, dtype=bool)
    same = truth[:, None] == truth
    for c in range(4):
        own = truth == c
        assert found.precision[c] == pytest.approx(((together & same).sum(1) / together.sum(1))[own].mean())


def test_classes_of_one_labelled_sample_have_no_rates() -> None:
    found = class_rates(np.array([0, 0, 1, 1]), np.array([0, 0, 1, -1]), np.array([2.0, 2.0]))
    assert found.recall[0] == found.precision[0] == 1
    assert np.isnan(found.recall[1])
    assert np.isnan(found.precision[1])


def test_held_out_classes_have_no_part_in_the_whitening() -> None:
    rng = np.random.default_rng(2)
    truth = np.repeat(np.arange(5), 10)
    x = torch.from_numpy(rng.normal(size=(5, 8))[truth] + rng.normal(size=(50, 8))).float()
    labels = np.where((truth < 3) & (np.arange(50) % 2 == 0), truth, -1)
    levels, fold_of, sizes = np.array([20, 9, 4]), np.array([1, 0, 1]), np.array([10.0, 12.0, 8.0])
    micro = micro_clusters(x, x, 1000, seed=0)
    found = hold_out_classes(x, labels, micro, levels, sizes=sizes, fold_of=fold_of, shrinkage=0.3)
    for fold in (0, 1):
        used = np.isin(labels, np.flatnonzero(fold_of != fold))
        matrix = within_class_whitening(x.numpy()[used], labels[used], shrinkage=0.3)[1]
        z = (x.numpy() - x.numpy().mean(axis=0)) @ matrix
        z /= np.linalg.norm(z, axis=1, keepdims=True)
        for j, cut in enumerate(ward_tree(z, np.ones(50)).cut(levels)):
            for c in np.flatnonzero(fold_of == fold):
                recall, precision = looped_rates(cut, labels, sizes, c)
                assert found.recall[c, j] == pytest.approx(recall)
                assert found.precision[c, j] == pytest.approx(precision)
                own = [1 / (cut == cut[i]).sum() for i in range(50) if labels[i] == c]
                assert found.own_inverse[c, j] == pytest.approx(np.mean(own))


def test_inverse_sizes_of_all_classes_add_up_to_the_number_of_clusters() -> None:
    rng = np.random.default_rng(4)
    cluster_of, truth = rng.permutation(np.arange(60) % 7), rng.permutation(np.arange(60) % 4)
    counted = mean_inverse_sizes(cluster_of, truth, 4) * np.bincount(truth)
    assert counted.sum() == pytest.approx(7)
    assert mean_inverse_sizes(cluster_of, np.where(truth == 3, -1, truth), 5)[3:].tolist() == [0, 0]


@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_new_classes_are_counted_in_units_of_held_out_ones(pieces: int) -> None:
    """4 known and 6 new classes of different sizes, each in the same number of clusters."""
    levels = np.array([12, 11, 10, 9, 8]) * pieces
    sizes = np.array([10.0, 20.0, 40.0, 80.0])
    inverse = np.tile(pieces / sizes[:, None], (1, 5))
    recall = np.tile(np.array([0.3, 0.4, 0.5, 0.6, 0.7]), (4, 1))
    held = HeldOutClasses(levels, recall, recall[:, ::-1], inverse, inverse)
    expected = np.mean(np.log((levels - 4 * pieces) / pieces))
    assert held.log_n_new(sizes) == pytest.approx(expected)
    assert np.exp(held.log_n_new(sizes)) == pytest.approx(6, rel=0.05)
    assert held.log_n_new(100 * sizes) == pytest.approx(np.log(0.5))  # nothing is left for new classes


def made(recall: np.ndarray, precision: np.ndarray) -> HeldOutClasses:
    return classes_at(2 ** np.arange(len(recall), 0, -1), recall[None], precision[None])


def classes_at(levels: np.ndarray, recall: np.ndarray, precision: np.ndarray) -> HeldOutClasses:
    return HeldOutClasses(levels, recall, precision, np.zeros_like(recall), np.zeros_like(recall))


def test_the_balanced_level_is_where_the_curves_cross() -> None:
    slope = (
        np.arange(9) - 4.5
    )  # of log recall - log precision: zero half-way between two levels, straight, so smoothing keeps it
    recall, precision = 0.5 * np.exp(0.1 * slope), 0.5 * np.exp(-0.1 * slope)
    found = made(recall, precision).balanced_level()
    assert found.log_k == pytest.approx(4.5 * np.log(2))  # levels 2^9 to 2^1
    k = 2**4.5
    f1 = 2 * recall[4] * precision[4] / (recall[4] + precision[4])
    assert found.quality == pytest.approx((f1 - 1 / k) / (1 - 1 / k))


def test_of_several_crossings_the_best_is_used() -> None:
    excess = np.repeat([-1.0, 1, -1, 1], 6)
    height = np.repeat([0.2, 0.2, 0.8, 0.8], 6)
    found = made(height * np.exp(0.1 * excess), height * np.exp(-0.1 * excess)).balanced_level()
    assert 2**6 < np.exp(found.log_k) < 2**7  # between the third and the fourth part
    smoothed = np.convolve(np.pad(excess, 2, mode="edge"), SMOOTHING, "valid")
    assert smoothed[17] < 0 < smoothed[18]


def test_without_a_crossing_it_is_an_end() -> None:
    high, low = np.full(4, 0.9), np.full(4, 0.1)
    assert np.exp(made(high, low).balanced_level().log_k) == pytest.approx(16)  # precision too small everywhere
    assert np.exp(made(low, high).balanced_level().log_k) == pytest.approx(2)
    single = classes_at(np.array([1]), np.ones((2, 1)), np.full((2, 1), 0.5))
    assert single.balanced_level().quality == 0  # one cluster says nothing


def test_classes_count_as_often_as_asked() -> None:
    rng = np.random.default_rng(3)
    recall, precision = rng.uniform(0.2, 1, (2, 4, 6))
    recall[2] = precision[2] = np.nan
    classes = classes_at(np.array([64, 32, 16, 8, 4, 2]), recall, precision)
    means = classes.mean_rates(np.array([2, 0, 5, 1]))
    np.testing.assert_allclose(means.recall, (2 * recall[0] + recall[3]) / 3)
    np.testing.assert_allclose(means.precision, (2 * precision[0] + precision[3]) / 3)
    np.testing.assert_allclose(classes.mean_rates().recall, recall[[0, 1, 3]].mean(axis=0))
    only_unusable = classes.mean_rates(np.array([0, 0, 4, 0]))
    np.testing.assert_allclose(only_unusable.recall, classes.mean_rates().recall)


def test_f1_is_zero_at_chance_and_one_if_perfect() -> None:
    levels = np.array([16, 8, 4, 2])
    chance = classes_at(levels, (1 / levels)[None], (1 / levels)[None])
    np.testing.assert_allclose(chance.f1(), 0, atol=1e-12)
    np.testing.assert_allclose(classes_at(levels, np.ones((1, 4)), np.ones((1, 4))).f1(), 1)


def test_micro_clusters_keep_means_and_sizes() -> None:
    x = torch.from_numpy(np.random.default_rng(4).normal(size=(120, 5))).float()
    micro = micro_clusters(x, torch.nn.functional.normalize(x, dim=1), 20, seed=0)
    assert len(micro.sizes) == len(micro.centers) <= 20
    np.testing.assert_array_equal(micro.sizes, np.bincount(micro.cluster_of))
    for k in range(len(micro.sizes)):
        torch.testing.assert_close(micro.centers[k], x[torch.from_numpy(micro.cluster_of == k)].mean(dim=0))


def test_whitened_points_have_unit_length_unless_they_are_the_centre() -> None:
    x = torch.from_numpy(np.random.default_rng(5).normal(size=(30, 4))).float()
    z = whiten(x, x.mean(dim=0), x, np.arange(30) % 3, shrinkage=0.3)
    torch.testing.assert_close(z.norm(dim=1), torch.ones(30))
    same = torch.ones(6, 4)
    assert whiten(same, same.mean(dim=0), same, np.arange(6) % 2, shrinkage=0.3).abs().max() == 0
