"""The best matching against trying all pairings, kinds of labels, and bad input."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from error_codes import raises
from newkind.errors import DataError
from newkind.evaluation import match
from newkind.evaluation import matching as module


@st.composite
def labellings(draw):
    """y_true, y_pred, is_old with up to 6 classes and up to 6 clusters, as many or not."""
    n_classes, n_clusters = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    samples = draw(
        st.lists(st.tuples(st.integers(0, n_classes - 1), st.integers(0, n_clusters - 1)), min_size=1, max_size=40)
    )
    n_old = draw(st.integers(0, n_classes))
    y_true, y_pred = np.array(samples).T
    return y_true, y_pred, y_true < n_old


def best_by_trying_all(y_true, y_pred, is_old):
    """The largest number of correct samples, and the largest number of correct Old ones among those pairings."""
    classes, clusters = sorted(set(y_true.tolist())), sorted(set(y_pred.tolist()))
    places = clusters + [None] * (len(classes) - len(clusters))  # None: the class has no cluster
    best = (0, 0)
    for chosen in permutations(places, len(classes)):
        own = dict(zip(classes, chosen, strict=True))
        right = [own[t] == p for t, p in zip(y_true.tolist(), y_pred.tolist(), strict=True)]
        best = max(best, (sum(right), sum(r and old for r, old in zip(right, is_old.tolist(), strict=True))))
    return best


@settings(deadline=None, max_examples=60)
@given(labellings())
def test_pairing_is_the_best_of_all_pairings(data):
    y_true, y_pred, is_old = data
    result = match(*data)
    assert (result.n_correct.sum(), result.n_correct[result.is_old].sum()) == best_by_trying_all(y_true, y_pred, is_old)


@settings(deadline=None)
@given(labellings())
def test_pairing_is_one_to_one_and_never_empty(data):
    result = match(*data)
    used = result.cluster_of_class[result.is_matched]
    assert len(set(used.tolist())) == len(used)
    assert (result.n_correct[result.is_matched] > 0).all()
    assert (result.n_correct[~result.is_matched] == 0).all()


@settings(deadline=None)
@given(labellings())
def test_matrix_counts_every_sample(data):
    y_true, y_pred, is_old = data
    result = match(*data)
    for i, label in enumerate(result.classes):
        assert result.is_old[i] == is_old[y_true == label][0]
        for j, cluster in enumerate(result.clusters):
            assert result.counts[i, j] == sum((y_true == label) & (y_pred == cluster))
    true, pred = result.samples()
    given_pairs = sorted(zip(y_true.tolist(), y_pred.tolist(), strict=True))
    assert list(zip(result.classes[true].tolist(), result.clusters[pred].tolist(), strict=True)) == given_pairs


def test_of_equal_pairings_the_one_with_more_old_samples_right_is_taken():
    # One cluster, half of it of the Old class 1 and half of the New class 0 (or the other way about).
    for old_class in (0, 1):
        y_true = np.array([0, 0, 1, 1])
        result = match(y_true, [5, 5, 5, 5], y_true == old_class)
        assert result.is_matched.tolist() == [old_class == 0, old_class == 1]


@pytest.mark.parametrize(
    ("y_pred", "clusters"),
    [
        ([7, -1, 7], [-1, 7]),
        ([10**15, 0, 10**15], [0, 10**15]),
        (np.array([127, -128, 127], dtype=np.int8), [-128, 127]),
        (np.array([2**64 - 1, 2**64 - 2, 2**64 - 1], dtype=np.uint64), [2**64 - 2, 2**64 - 1]),
        (["b", "a", "b"], ["a", "b"]),
        (np.array(["b", "a", "b"], dtype=object), ["a", "b"]),
        (np.array([7, np.int64(3), 7], dtype=object), [3, 7]),
    ],
    ids=["negative", "far apart", "int8", "uint64", "strings", "string objects", "int objects"],
)
def test_labels_of_any_kind(y_pred, clusters):
    result = match([4, 2, 4], y_pred, [True, False, True])
    assert result.clusters.tolist() == clusters
    assert result.classes.tolist() == [2, 4]
    assert result.counts.tolist() == [[1, 0], [0, 2]]
    assert result.is_old.tolist() == [False, True]
    assert result.cluster_of_class.tolist() == [0, 1]


def test_true_classes_may_be_strings():
    result = match(["wren", "owl", "wren"], [0, 1, 0], [False, True, False])
    assert result.classes.tolist() == ["owl", "wren"]
    assert result.cluster_of_class.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("y_true", "y_pred", "is_old", "code"),
    [
        ([], [], [], "no-samples"),
        ([0, 1], [0], [True, True], "scores-shape"),
        ([0, 1], [0, 1], [True], "scores-shape"),
        ([0, 1], [0, 1], True, "scores-shape"),
        ([0, 1], [0, 1], [[True, True]], "scores-shape"),
        ([0, 1], [0, 1], [0, 1], "is-old-dtype"),
        ([0, -1], [0, 1], [True, False], "unknown-truth"),
        ([0, -(10**15)], [0, 1], [True, False], "unknown-truth"),
        ([3, 3], [0, 1], [True, False], "class-old-and-new"),
        (["owl", "owl"], [0, 1], [True, False], "class-old-and-new"),
        ([[0, 1]], [0, 1], [True, False], "labels-dtype"),
        (0, [0], [True], "labels-dtype"),
        ([0, 1], [0.0, 1.0], [True, False], "labels-dtype"),
        ([0, 1], [0, float("nan")], [True, False], "labels-dtype"),
        ([0, 1], [True, False], [True, False], "labels-dtype"),
        ([0, 1], np.array(["a", None], dtype=object), [True, False], "labels-dtype"),
        ([0, 1], np.array([1, "a"], dtype=object), [True, False], "labels-dtype"),
        ([0, 1], np.array([1, True], dtype=object), [True, False], "labels-dtype"),
    ],
)
def test_unusable_input_is_a_data_error(y_true, y_pred, is_old, code):
    with raises(DataError, code):
        match(y_true, y_pred, is_old)


def test_errors_carry_facts():
    with raises(DataError, "labels-dtype") as caught:
        match([0, 1], [0.5, 1.5], [True, False])
    assert caught.value.facts == {"name": "y_pred"}
    with raises(DataError, "class-old-and-new") as caught:
        match(["owl", "owl"], [0, 1], [True, False])
    assert caught.value.facts == {"label": "owl"}


def test_a_matrix_beyond_memory_is_a_data_error(monkeypatch):
    monkeypatch.setattr(module, "MAX_CELLS", 5)
    assert match([0, 1], [0, 1], [True, False]).counts.size == 4
    with raises(DataError, "too-many-labels") as caught:
        match([0, 1, 1], [0, 1, 2], [True, False, False])
    assert caught.value.facts == {"n_classes": 2, "n_clusters": 3}
