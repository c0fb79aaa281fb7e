"""The number of categories in units of held-out classes, on mixtures with a known number."""

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
    assert found.way == "clusters"
    assert abs(found.n_categories - n_classes) <= max(2, 0.15 * n_classes)
    assert found.low <= found.n_categories <= found.high
    assert found.low <= n_classes <= found.high
    assert found.quality > 0.8
    levels = [k for k, _ in found.curve]
    assert levels == sorted(set(levels))
    assert all(0 <= f1 <= 1 for _, f1 in found.curve)
    assert found.known_share == pytest.approx(n_known / n_classes, rel=0.2)


def test_unequal_sizes() -> None:
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(16), np.tile([12, 24, 48, 96], 4))
    x = rng.normal(size=(16, 16))[truth] + 0.35 * rng.normal(size=(len(truth), 16))
    labels = np.where((truth < 8) & (np.arange(len(truth)) % 2 == 0), truth, -1)
    found = estimate_n_categories(x, labels, n_known=8)
    assert found.low <= 16 <= found.high
    assert found.low < found.high


def test_everything_labelled_is_about_the_known_classes() -> None:
    x, _ = mixture(8, 8, spread=0.3)
    found = estimate_n_categories(x, np.repeat(np.arange(8), 24), n_known=8)
    assert found.known_share == 1
    assert 8 <= found.n_categories <= 9
    assert found.high > 8


def test_arrays_and_tensors_give_the_same() -> None:
    x, labels = mixture(10, 5)
    assert estimate_n_categories(x.numpy(), labels.tolist(), n_known=5) == estimate_n_categories(x, labels, n_known=5)


def test_the_scale_hardly_matters() -> None:
    x, labels = mixture(10, 5, spread=0.35)
    small, large = (estimate_n_categories(factor * x, labels, n_known=5) for factor in (1e-3, 1e3))
    assert abs(small.n_categories - large.n_categories) <= 1


def test_with_micro_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MICRO_CLUSTERS", 100)
    x, labels = mixture(12, 6, spread=0.3)
    assert abs(estimate_n_categories(x, labels, n_known=6).n_categories - 12) <= 2


def test_more_samples_than_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    x, labels = mixture(12, 6, size=60, spread=0.3)
    monkeypatch.setattr(module, "MAX_SAMPLES", 300)
    found = estimate_n_categories(x, labels, n_known=6)
    assert abs(found.n_categories - 12) <= 2
    monkeypatch.setattr(module, "MAX_SAMPLES", 8)  # with a few labels of each class
    assert estimate_n_categories(x, labels, n_known=6).way != "guess"


def test_classes_keep_labels_when_samples_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    x, labels = mixture(12, 6, size=100, spread=0.3)
    labels = keep_labels(labels, 3)
    for name in ("MAX_SAMPLES", "FEW_SAMPLES"):
        monkeypatch.setattr(module, name, 300)
        for seed in range(3):
            found = estimate_n_categories(x, labels, n_known=6, seed=seed)
            assert found.way != "guess"
            assert abs(found.n_categories - 12) <= 3


def test_agreement_needs_unlabelled_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    x, labels = mixture(12, 6, size=100, spread=0.3)
    rows = np.concatenate([np.repeat(np.flatnonzero(labels >= 0), 10), np.flatnonzero(labels < 0)[::10]])
    monkeypatch.setattr(module, "FEW_SAMPLES", 40)
    found = estimate_n_categories(x[rows], labels[rows], n_known=6)
    assert 6 < found.n_categories < 20


@pytest.mark.parametrize("n_free", [1, 3])
def test_every_new_category_has_an_unlabelled_sample(n_free: int) -> None:
    x, labels = mixture(20, 20)
    labels = np.where(np.arange(len(labels)) < n_free, -1, np.arange(len(labels)) % 20)
    found = estimate_n_categories(torch.randn(x.shape, generator=torch.Generator().manual_seed(0)), labels, n_known=20)
    assert found.high <= 20 + n_free


def keep_labels(labels: np.ndarray, n: int) -> np.ndarray:
    """The first n labels of each class."""
    kept = np.full_like(labels, -1)
    for c in range(labels.max() + 1):
        rows = np.flatnonzero(labels == c)[:n]
        kept[rows] = c
    return kept


def test_known_classes_without_a_label_are_counted() -> None:
    x, labels = mixture(12, 6, spread=0.3)
    without = estimate_n_categories(x, labels, n_known=6)
    found = estimate_n_categories(
        x, np.where(labels > 2, labels + 2, labels), n_known=8
    )  # classes 3 and 4 have no label
    assert found.n_known == 8
    for name in ("n_categories", "low", "high"):
        assert getattr(found, name) == getattr(without, name) + 2
    assert found.known_share == without.known_share


def test_the_same_seed_gives_the_same() -> None:
    x, labels = mixture(10, 5)
    assert estimate_n_categories(x, labels, n_known=5, seed=3) == estimate_n_categories(x, labels, n_known=5, seed=3)


def test_the_order_of_samples_hardly_matters() -> None:
    x, labels = mixture(14, 7, spread=0.4)  # class by class
    order = np.random.default_rng(0).permutation(len(x))
    ordered = estimate_n_categories(x, labels, n_known=7)
    shuffled = estimate_n_categories(x[torch.from_numpy(order)], labels[order], n_known=7)
    assert abs(ordered.n_categories - shuffled.n_categories) <= 2
    assert ordered.known_share == pytest.approx(shuffled.known_share, rel=0.1)


@pytest.mark.parametrize("most", [9, 6, 3])
def test_the_bound_holds(most: int) -> None:
    x, labels = mixture(16, 6, spread=0.35)
    found = estimate_n_categories(x, labels, n_known=6, max_categories=most)
    assert 6 <= found.low <= found.n_categories <= found.high <= max(most, 6)
    assert found.curve[-1][0] <= max(most, 4)


@pytest.mark.parametrize(
    "labels", [[0, 0, 1, 1, -1, -1], [0, 1, 2, -1, -1, -1], [0, 0, 1, 1, 2, 3], [4, -1, -1, 4, -1, 0]]
)
def test_too_few_labels_give_a_guess(labels: list[int]) -> None:
    n_known = max(labels) + 1
    found = estimate_n_categories(np.eye(6), labels, n_known=n_known)
    assert (found.way, found.quality, found.curve) == ("guess", 0.0, ())
    most = min(n_known + max(labels.count(-1), 1), 6)
    assert found.n_categories == min(2 * n_known, most)
    assert (found.low, found.high) == (n_known + 1, min(4 * n_known + 2, most))


def test_a_guess_is_never_the_known_classes_alone() -> None:
    for n_known, n in ((1, 2), (2, 2), (5, 3), (3, 50)):
        found = estimate_n_categories(
            np.random.default_rng(0).normal(size=(n, 4)), [0] + [-1] * (n - 1), n_known=n_known
        )
        assert found.way == "guess"
        assert n_known < found.low <= found.n_categories <= found.high
    bounded = estimate_n_categories(np.eye(6), [0, 1, -1, -1, -1, -1], n_known=2, max_categories=3)
    assert (bounded.low, bounded.n_categories, bounded.high) == (3, 3, 3)


@pytest.mark.parametrize("micro", [1200, 50])
def test_features_without_information_give_a_wide_guess(micro: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MICRO_CLUSTERS", micro)
    _, labels = mixture(8, 4)
    random = np.random.default_rng(0).normal(size=(len(labels), 5))
    for features in (torch.ones(len(labels), 5), torch.zeros(len(labels), 5), random):
        found = estimate_n_categories(features, labels, n_known=4)
        assert found.way == "guess"
        assert found.quality < 0.3
        assert found.curve
        assert (found.low, found.n_categories, found.high) == (5, 8, 18)


def test_repeated_samples_are_not_divided() -> None:
    x, labels = mixture(10, 5, spread=0.0)  # all samples of a class are equal
    found = estimate_n_categories(x, labels, n_known=5)
    assert found.way == "clusters"
    assert found.curve[-1][0] <= 10
    assert 9 <= found.n_categories <= 11


def test_classes_of_one_labelled_sample() -> None:
    x, labels = mixture(12, 6, spread=0.3)
    for c in (4, 5):
        labels[np.flatnonzero(labels == c)[1:]] = -1
    found = estimate_n_categories(x, labels, n_known=6)
    assert found.way == "clusters"
    assert found.low <= 12 <= found.high


def test_the_interval_is_log_normal_in_the_number_of_new_classes() -> None:
    new = module._Count(np.log(20), 0.25, 0.5).new_classes()
    found = module._bounded(new, 10, 1000)
    assert (found.low, found.n_categories, found.high) == (
        10 + round(20 * np.exp(-1.645 * 0.25)),
        30,
        10 + round(20 * np.exp(1.645 * 0.25)),
    )
    assert module._bounded(new, 10, 25).high == 25
    nothing = module._bounded(module._Count(np.log(0.5), 0.1, 0.99).new_classes(), 10, 1000)
    assert (nothing.low, nothing.n_categories) == (10, 10)
    assert nothing.high > 10  # never sure that nothing is new


def test_the_interval_is_wider_for_weaker_features(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FEW_CATEGORIES", 0)  # agreement narrows it
    strong, weak = (mixture(12, 6, spread=spread) for spread in (0.3, 0.9))
    found = [estimate_n_categories(x, labels, n_known=6) for x, labels in (strong, weak)]
    assert found[0].quality > found[1].quality
    assert found[0].high / found[0].low < found[1].high / found[1].low


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
