"""Accuracy by name: against trying all pairings of new categories, and its properties."""

from dataclasses import astuple
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from error_codes import raises
from newkind.errors import ConfigError, DataError
from newkind.evaluation import accuracy, by_name


@st.composite
def labellings(draw):
    """y_true, y_pred, is_old, n_known: known classes first, categories of known classes first."""
    n_known, n_new, n_categories = draw(st.integers(0, 3)), draw(st.integers(0, 3)), draw(st.integers(1, 6))
    n_classes = max(n_known + n_new, 1)
    sample = st.tuples(st.integers(0, n_classes - 1), st.integers(0, n_categories - 1))
    y_true, y_pred = np.array(draw(st.lists(sample, min_size=1, max_size=40))).T
    return y_true, y_pred, y_true < n_known, n_known


def score(y_true, y_pred, is_old, n_known):
    found = by_name(y_true, y_pred, is_old, n_known=n_known)
    return found.all, found.old, found.new


def most_new_correct(y_true, y_pred, n_known):
    """The largest number of samples of new classes that any pairing with new categories gets right."""
    classes = sorted({label for label in y_true.tolist() if label >= n_known})
    categories = sorted({label for label in y_pred.tolist() if label >= n_known})
    places = categories + [None] * len(classes)
    samples = list(zip(y_true.tolist(), y_pred.tolist(), strict=True))
    return max(
        sum(dict(zip(classes, chosen, strict=True)).get(t, "known") == p for t, p in samples)
        for chosen in permutations(places, len(classes))
    )


@settings(deadline=None, max_examples=60)
@given(labellings())
def test_agrees_with_trying_all_pairings_of_new_categories(data):
    y_true, y_pred, is_old, n_known = data
    n_right = int((is_old & (y_true == y_pred)).sum()) + most_new_correct(y_true, y_pred, n_known)
    found = by_name(*data[:3], n_known=n_known)
    assert found.all == pytest.approx(n_right / len(y_true))
    if is_old.any():
        assert found.old == pytest.approx((y_true == y_pred)[is_old].mean())


@settings(deadline=None)
@given(labellings())
def test_never_above_the_matched_accuracy(data):
    assert score(*data)[0] <= accuracy(*data[:3]).all + 1e-12


@settings(deadline=None)
@given(labellings(), st.randoms(use_true_random=False))
def test_new_categories_may_be_numbered_in_any_way(data, random):
    y_true, y_pred, is_old, n_known = data
    numbers = list(range(n_known, 10))
    random.shuffle(numbers)
    renumbered = np.array([*range(n_known), *numbers])[y_pred]
    assert score(y_true, renumbered, is_old, n_known) == pytest.approx(score(*data), nan_ok=True)


@settings(deadline=None)
@given(labellings(), st.randoms(use_true_random=False))
def test_the_order_of_samples_does_not_matter(data, random):
    y_true, y_pred, is_old, n_known = data
    order = list(range(len(y_true)))
    random.shuffle(order)
    assert score(y_true[order], y_pred[order], is_old[order], n_known) == pytest.approx(score(*data), nan_ok=True)


@settings(deadline=None)
@given(labellings())
def test_perfect_predictions_are_perfect_in_both_ways(data):
    y_true, _, is_old, n_known = data
    y_pred = np.where(is_old, y_true, y_true + 7)
    found = by_name(y_true, y_pred, is_old, n_known=n_known)
    assert astuple(found) == pytest.approx(astuple(accuracy(y_true, y_pred, is_old)), nan_ok=True)
    assert found.all == 1


@settings(deadline=None)
@given(labellings())
def test_without_new_categories_new_is_zero(data):
    y_true, y_pred, is_old, n_known = data
    if n_known and not is_old.all():
        assert by_name(y_true, y_pred % n_known, is_old, n_known=n_known).new == 0


@settings(deadline=None)
@given(labellings())
def test_names_and_numbers_give_the_same(data):
    y_true, y_pred, is_old, n_known = data
    names = np.array([f"name {i}" for i in range(10)])
    found = by_name(names[y_true], names[y_pred], is_old, known_names=names[:n_known].tolist())
    assert astuple(found) == pytest.approx(astuple(by_name(y_true, y_pred, is_old, n_known=n_known)), nan_ok=True)


def test_a_known_class_without_samples():
    # Class 1 is known but has no unlabelled sample; the new class 2 is in its category.
    y_true, y_pred, is_old = np.array([0, 2, 2]), np.array([0, 1, 1]), np.array([True, False, False])
    assert by_name(y_true, y_pred, is_old, n_known=2).new == 0
    assert by_name(y_true, y_pred, is_old).new == 1  # category 1 cannot be told from a new one


def test_swapped_known_classes_are_right_only_under_a_matching():
    y_true, y_pred = np.array([0, 0, 1, 1, 2]), np.array([1, 1, 0, 0, 5])
    assert accuracy(y_true, y_pred, y_true < 2).all == 1
    assert score(y_true, y_pred, y_true < 2, 2) == pytest.approx((1 / 5, 0, 1))


@pytest.mark.parametrize("old", [True, False])
def test_without_old_or_new_samples_their_scores_are_nan(old):
    found = by_name([0, 0], [0, 3], [old, old], n_known=int(old))
    assert np.isnan([found.old, found.new]).tolist() == [not old, old]
    assert found.all == 0.5


def test_bad_input():
    y_true, y_pred, is_old = [0, 0, 1], [0, 1, 1], [True, True, False]
    with raises(DataError, "known-classes-disagree") as caught:
        by_name(y_true, y_pred, is_old, n_known=2)
    assert caught.value.facts == {"label": 1}
    with raises(DataError, "known-classes-disagree"):
        by_name(y_true, y_pred, is_old, n_known=0)
    with raises(DataError, "labels-not-comparable"):
        by_name(y_true, ["a", "b", "c"], is_old)
    with raises(ConfigError, "known-classes-kind"):
        by_name(y_true, y_pred, is_old, known_names=["a"])
    with raises(ConfigError, "known-classes-kind"):
        by_name(["a", "a", "b"], ["a", "x", "x"], is_old, n_known=1)
