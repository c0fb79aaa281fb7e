"""Kinds of errors against a count one sample at a time."""

from dataclasses import astuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from newkind.evaluation import Accuracy, ErrorKinds, match


def kinds_one_sample_at_a_time(matching, y_true, y_pred, is_old):
    class_of = {
        matching.clusters[j]: label
        for label, j in zip(matching.classes, matching.cluster_of_class, strict=True)
        if j >= 0
    }
    old_classes = set(y_true[is_old].tolist())
    found = {(True, True): 0, (True, False): 0, (False, True): 0, (False, False): 0}
    for true, cluster in zip(y_true, y_pred, strict=True):
        if class_of.get(cluster) != true:
            found[true in old_classes, class_of.get(cluster) in old_classes] += 1
    return tuple(n / len(y_true) for n in found.values())


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6)), min_size=1, max_size=60),
    st.integers(0, 6),
)
def test_agrees_with_one_sample_at_a_time_and_adds_up_to_the_error(samples, n_old):
    y_true, y_pred = np.array(samples).T
    matching = match(y_true, y_pred, y_true < n_old)
    kinds = astuple(ErrorKinds.of(matching))
    assert kinds == pytest.approx(kinds_one_sample_at_a_time(matching, y_true, y_pred, y_true < n_old))
    assert sum(kinds) == pytest.approx(1 - Accuracy.of(matching).all)


def test_each_kind_by_hand():
    # Old 0, 1; New 2, 3; clusters numbered like their classes. Wrong: one Old -> Old, two Old -> New,
    # three New -> Old, four New -> New.
    right = [0] * 10 + [1] * 10 + [2] * 10 + [3] * 10
    y_true = np.array([*right, 0, *[1, 1], *[2, 2, 3], *[2, 2, 3, 3]])
    y_pred = np.array([*right, 1, *[2, 3], *[0, 1, 1], *[3, 3, 2, 2]])
    kinds = ErrorKinds.of(match(y_true, y_pred, y_true < 2))
    assert kinds == ErrorKinds(true_old=1 / 50, false_new=2 / 50, false_old=3 / 50, true_new=4 / 50)


@pytest.mark.parametrize("old", [True, False])
def test_a_cluster_without_a_class_counts_as_new(old):
    kinds = ErrorKinds.of(match([0, 0, 0, 0], [0, 0, 0, 1], [old] * 4))
    assert kinds == ErrorKinds(true_old=0, false_new=0.25 * old, false_old=0, true_new=0.25 * (not old))


def test_a_cluster_is_not_counted_as_a_class_that_it_holds_nothing_of():
    # Cluster 1 is a part of the Old class 0; the samples of the Old class 1 are in the New cluster 2.
    y_true = np.array([0, 0, 0, 1, 2, 2, 2])
    kinds = ErrorKinds.of(match(y_true, [0, 0, 1, 2, 2, 2, 2], y_true < 2))
    assert kinds == ErrorKinds(true_old=0, false_new=2 / 7, false_old=0, true_new=0)
