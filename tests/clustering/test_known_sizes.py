"""Estimated sizes of known classes: unequal sizes, shares of known classes, degenerate labels."""

import numpy as np
import pytest
import torch

from newkind.clustering import estimate_known_sizes
from newkind.clustering.known_sizes import SPREAD, class_means, size_spread


def clouds(sizes: list[int], n_known: int, *, labelled: float = 0.5, seed: int = 0):
    """Features, labels and truth of Gaussian classes of given sizes; a share of the first classes is labelled."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(np.arange(len(sizes)), sizes)
    x = 3 * rng.normal(size=(len(sizes), 24))[truth] + rng.normal(size=(len(truth), 24))
    labels = np.where((truth < n_known) & (rng.random(len(truth)) < labelled), truth, -1)
    for c in range(n_known):  # at least one of each
        labels[np.flatnonzero(truth == c)[0]] = c
    return torch.from_numpy(x).float(), labels, truth


@pytest.mark.parametrize("sizes", [[60] * 8, [160, 80, 40, 20, 120, 60, 30, 15]])
def test_sizes_are_close_to_the_truth(sizes: list[int]) -> None:
    x, labels, truth = clouds(sizes, 4)
    found = estimate_known_sizes(x, labels, n_known=4, n_categories=8)
    true = np.array([((truth == c) & (labels < 0)).sum() for c in range(4)])
    assert found.unlabelled.sum() == pytest.approx(true.sum(), rel=0.25)
    assert np.abs(np.log(found.unlabelled / true)).max() < 0.5
    assert found.hit_rate > 0.4
    assert found.false_alarm_rate < 0.1
    np.testing.assert_array_equal(found.labelled, [(labels == c).sum() for c in range(4)])


def test_small_known_classes_among_large_new_ones_are_not_given_their_equal_share() -> None:
    x, labels, truth = clouds([15, 30, 20, 25, 200, 150, 100, 80], 4)
    found = estimate_known_sizes(x, labels, n_known=4, n_categories=8)
    true = ((truth < 4) & (labels < 0)).sum()
    equal_share = 4 / 8 * len(x) - (labels >= 0).sum()
    assert (
        true < found.unlabelled.sum() < (true + equal_share) / 2
    )  # between the count and the prior, nearer to the count


def test_order_of_the_samples_hardly_matters_and_seeds_are_reproducible() -> None:
    x, labels, _ = clouds([60, 30, 90, 40, 50], 3)
    first = estimate_known_sizes(x, labels, n_known=3, n_categories=5)
    again = estimate_known_sizes(x, labels, n_known=3, n_categories=5)
    np.testing.assert_array_equal(first.unlabelled, again.unlabelled)
    order = np.random.default_rng(1).permutation(len(x))
    mixed = estimate_known_sizes(x[torch.from_numpy(order)], labels[order], n_known=3, n_categories=5)
    np.testing.assert_allclose(mixed.unlabelled, first.unlabelled, rtol=0.3)


def test_degenerate_labels() -> None:
    x, labels, truth = clouds([20, 20, 20], 2)
    one_each = np.where(np.isin(np.arange(60), [0, 20]), truth, -1)  # one labelled sample per class
    single = np.where((truth == 0) & (np.arange(60) % 2 == 0), 0, -1)  # one known class
    everything = truth.astype(np.int64)  # nothing unlabelled
    for y, n_known in ((one_each, 2), (single, 1), (everything, 3), (labels, 2)):
        found = estimate_known_sizes(x, y, n_known=n_known, n_categories=3)
        assert np.isfinite(found.unlabelled).all()
        assert (found.unlabelled >= 0).all()
        assert found.unlabelled.sum() <= (y < 0).sum() + 1e-6
    constant = estimate_known_sizes(torch.ones(60, 4), labels, n_known=2, n_categories=3)
    assert np.isfinite(constant.unlabelled).all()


def test_spread_of_sizes() -> None:
    assert size_spread(np.array([7.0])) == SPREAD
    equal, unequal = np.full(40, 25.0), np.geomspace(4, 120, 40)
    assert size_spread(equal) < 0.15
    assert size_spread(unequal) == pytest.approx(np.std(np.log(unequal)), abs=0.1)


def test_class_means_are_directions() -> None:
    z = torch.tensor([[1.0, 0], [0, 1], [0, 3]])
    torch.testing.assert_close(class_means(z, np.array([0, 1, 1]), 3), torch.tensor([[1.0, 0], [0, 1], [0, 0]]))
