"""The table of classes and the sizes of classes and clusters."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from error_codes import raises
from newkind.errors import DataError
from newkind.evaluation import ClassRow, Distribution, class_table, match

# Old: 0 and 2, New: 5. Cluster 30 is a part of class 0, and class 2 is in the cluster of class 5.
Y_TRUE = np.array([0, 0, 0, 0, 2, 5, 5, 5])
Y_PRED = np.array([10, 10, 10, 30, 20, 20, 20, 10])


@pytest.fixture
def matching():
    return match(Y_TRUE, Y_PRED, Y_TRUE < 5)


def test_class_table_by_hand(matching):
    names = ["lark", "unused", "owl", "unused", "unused", "wren"]
    assert class_table(matching, names) == (
        ClassRow(label=0, name="lark", is_old=True, n_true=4, n_predicted=4, cluster=10, accuracy=0.75),
        ClassRow(label=2, name="owl", is_old=True, n_true=1, n_predicted=0, cluster=None, accuracy=0.0),
        ClassRow(label=5, name="wren", is_old=False, n_true=3, n_predicted=3, cluster=20, accuracy=2 / 3),
    )


def test_without_names_the_label_is_the_name(matching):
    assert [row.name for row in class_table(matching)] == ["0", "2", "5"]
    assert [row.name for row in class_table(match(["b", "a"], [0, 1], [True, False]))] == ["a", "b"]


def test_too_few_names_are_a_data_error(matching):
    with raises(DataError, "class-names-missing") as caught:
        class_table(matching, ["a", "b", "c", "d", "e"])
    assert caught.value.facts == {"largest": 5, "n_names": 5}


def test_names_for_named_classes_are_a_data_error():
    with raises(DataError, "class-names-unexpected"):
        class_table(match(["a", "b"], [0, 1], [True, False]), ["a", "b"])


def test_distribution_by_hand(matching):
    distribution = Distribution.of(matching)
    assert distribution == Distribution(
        true_old=(4 / 8, 1 / 8), true_new=(3 / 8,), predicted_old=(4 / 8,), predicted_new=(3 / 8, 1 / 8)
    )
    assert distribution.true == (4 / 8, 3 / 8, 1 / 8)
    assert distribution.predicted == (4 / 8, 3 / 8, 1 / 8)
    assert distribution.n_active_clusters == 3


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 6)), min_size=1, max_size=60), st.integers(0, 6))
def test_shares_are_those_of_the_labels_and_sorted(samples, n_old):
    y_true, y_pred = np.array(samples).T
    distribution = Distribution.of(match(y_true, y_pred, y_true < n_old))
    for labels, shares in ((y_true, distribution.true), (y_pred, distribution.predicted)):
        expected = sorted(((labels == label).mean() for label in set(labels.tolist())), reverse=True)
        assert shares == pytest.approx(expected)
    assert sum(distribution.true_old) == pytest.approx((y_true < n_old).mean())
    assert distribution.n_active_clusters == len(set(y_pred.tolist()))
