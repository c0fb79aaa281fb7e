"""The share of known classes among unlabelled samples, on mixtures with a known share."""

import numpy as np
import pytest
from labelled_mixture import mixture

from newkind.clustering.known_share import _hold_out, count_known


@pytest.mark.parametrize(("n_classes", "n_known"), [(12, 6), (20, 5), (24, 20)])
@pytest.mark.parametrize("room", [1.0, 1.4])
def test_mixtures_with_a_known_share(n_classes: int, n_known: int, room: float) -> None:
    x, labels = mixture(n_classes, n_known, spread=0.35)
    truth = np.repeat(np.arange(n_classes), 24)
    share = np.mean(truth[labels < 0] < n_known)
    found = count_known(x, labels, n_known=n_known, n_categories=round(room * n_classes))
    assert abs(found - share) < 0.1


def test_classes_of_different_sizes() -> None:
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(12), np.tile([12, 24, 48, 96], 3))
    x, _ = mixture(12, 6)
    x = x[:1].new_tensor(rng.normal(size=(12, 16))[truth] + 0.35 * rng.normal(size=(len(truth), 16)))
    labels = np.where((truth < 6) & (np.arange(len(truth)) % 2 == 0), truth, -1)
    found = count_known(x, labels, n_known=6, n_categories=16)
    assert abs(found - np.mean(truth[labels < 0] < 6)) < 0.1


def test_it_stays_between_its_bounds() -> None:
    x, labels = mixture(4, 4, spread=0.2)  # nothing is new
    assert 0.8 < count_known(x, labels, n_known=4, n_categories=6) <= 0.99
    x, labels = mixture(6, 3, spread=5.0)  # nothing can be told
    assert 0.01 <= count_known(x, labels, n_known=3, n_categories=8) <= 0.99


def test_every_class_keeps_a_label() -> None:
    labels = np.array([0, 0, 1, 2, 2, -1])
    fold = _hold_out(labels, np.array([False, False, True]), np.array([True, True, True, True, False, False]))
    assert fold.n_known == 2
    assert fold.labels.tolist() == [0, 0, 1, -1, -1, -1]  # all labels of both classes might have been hidden
    assert fold.is_new.tolist() == [False, False, False, True, True, False]
    fold = _hold_out(labels, np.array([False, False, True]), np.array([True, False, True, False, False, False]))
    assert fold.labels.tolist() == [-1, 0, 1, -1, -1, -1]
    assert fold.is_hidden.tolist() == [True, False, False, False, False, False]
