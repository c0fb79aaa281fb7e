"""Which of more prototypes than needed are kept, and which are merged."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from newkind.training.inference import Predictions
from newkind.training.merging import Merging, group_duplicates, plan_merging


def predictions(best: list[int], second: list[int], sure: list[float]) -> Predictions:
    p = np.array(sure, dtype=np.float32)
    empty = np.zeros(len(best), dtype=np.float32)
    return Predictions(np.array(best, dtype=np.int64), p, np.array(second, dtype=np.int64), 1 - p, empty, empty)


def copies(k: int, p: float, q: float, *, per_pair: int = 4, first: int = 1) -> Predictions:
    """Prototypes first ... first + k - 1, each of which has every other as the second equally often."""
    pairs = [
        (a, b) for a in range(first, first + k) for b in range(first, first + k) if a != b for _ in range(per_pair)
    ]
    best, second = (np.array(column) for column in zip(*pairs, strict=True))
    n, empty = len(best), np.zeros(len(best), dtype=np.float32)
    return Predictions(best, np.full(n, p, np.float32), second, np.full(n, q, np.float32), empty, empty)


def plan(given: Predictions, *, n_prototypes: int, n_known: int = 1) -> Merging:
    return plan_merging(given, np.ones(len(given.best), bool), n_prototypes=n_prototypes, n_known=n_known)


def test_empty_small_and_duplicate_categories() -> None:
    # 0, 1 known (1 has no image); 2 and 3 are ambiguous; 4 is certain; 5 has one image; 6 none.
    best = [0] * 10 + [2] * 8 + [3] * 8 + [4] * 9 + [5]
    second = [1] * 10 + [3] * 8 + [2] * 8 + [0] * 9 + [4]
    sure = [0.9] * 10 + [0.6] * 8 + [0.55] * 8 + [0.95] * 9 + [0.5]
    found = plan(predictions(best, second, sure), n_prototypes=7, n_known=2)
    assert found.groups == [[0], [1], [2, 3], [4]]
    assert found.sizes == [10, 0, 8, 8, 9, 1, 0]
    assert (found.n_empty, found.n_small, found.n_duplicates) == (1, 1, 1)


def test_certain_neighbours_stay_apart() -> None:
    best, second = [0] * 6 + [1] * 6 + [2] * 6, [1] * 6 + [2] * 6 + [1] * 6
    found = plan(predictions(best, second, [0.9] * 18), n_prototypes=3)
    assert found.groups == [[0], [1], [2]]


def test_labelled_images_do_not_count() -> None:
    best, second = [1] * 6 + [2] * 6, [2] * 6 + [1] * 6
    free = np.array([False] * 6 + [True] * 6)
    found = plan_merging(predictions(best, second, [0.5] * 12), free, n_prototypes=3, n_known=1)
    assert found.groups == [[0], [2]]


def test_a_cycle_of_doubt_is_one_category() -> None:
    best = [1] * 5 + [2] * 5 + [3] * 5
    second = [2] * 5 + [3] * 5 + [1] * 5
    for share in (0.5, 0.501, 0.55, 0.6):
        found = plan(predictions(best, second, [share] * 15), n_prototypes=4)
        assert found.groups == [[0], [1, 2, 3]]


@pytest.mark.parametrize("k", range(2, 13))
@pytest.mark.parametrize(("doubt", "merged"), [(0.998, True), (0.8, True), (0.55, True), (0.45, False), (0.1, False)])
def test_many_copies_merge_at_the_same_doubt_as_two(k: int, doubt: float, merged: bool) -> None:
    q = doubt / (2 * k)  # twice the second's share of the two is `doubt`
    given = copies(k, 1 / k - q, q)
    found = plan(given, n_prototypes=k + 1)
    assert found.groups == ([[0], list(range(1, k + 1))] if merged else [[i] for i in range(k + 1)])
    assert found.n_duplicates == (k - 1 if merged else 0)


def together(*parts: Predictions) -> Predictions:
    names = [name for name in vars(parts[0]) if name != "outlier"]
    return Predictions(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def test_two_groups_of_copies_stay_two_categories() -> None:
    three, four = copies(3, 0.34, 0.33), copies(4, 0.26, 0.25, first=4)
    both = together(three, four)
    assert plan(both, n_prototypes=8).groups == [[0], [1, 2, 3], [4, 5, 6, 7]]


def test_a_certain_category_does_not_join_its_ambiguous_neighbours() -> None:
    pair = copies(2, 0.5, 0.49, per_pair=20)
    certain = predictions([3] * 20, [1] * 20, [0.9] * 20)
    both = together(pair, certain)
    assert plan(both, n_prototypes=4).groups == [[0], [1, 2], [3]]


def test_known_classes_are_never_merged_nor_removed() -> None:
    found = plan(copies(3, 0.34, 0.33, first=0), n_prototypes=5, n_known=4)
    assert found.groups == [[0], [1], [2], [3]]
    assert (found.n_empty, found.n_small, found.n_duplicates) == (1, 0, 0)


@pytest.mark.parametrize("n_images", [0, 1])
def test_hardly_any_unlabelled_image(n_images: int) -> None:
    found = plan(predictions([1] * n_images, [2] * n_images, [0.5] * n_images), n_prototypes=3)
    assert found.groups == [[0]]
    assert (found.n_empty, found.n_small) == (2 - n_images, n_images)


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 9).flatmap(lambda k: arrays(np.float64, (k, k), elements=st.floats(0, 1))), st.booleans())
def test_grouping_ends_with_a_partition(upper: np.ndarray, coarse: bool) -> None:
    doubt = np.triu(upper, 1)
    doubt = doubt + doubt.T
    if coarse:
        doubt = doubt.round(1)  # many ties
    groups = group_duplicates(doubt)
    assert sorted(member for group in groups for member in group) == list(range(len(doubt)))
    assert all(group == sorted(group) for group in groups)
    assert [group[0] for group in groups] == sorted(group[0] for group in groups)
    for group in groups:
        if len(group) == 2:
            assert doubt[group[0], group[1]] >= 0.5 - 1e-9


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_every_prediction_gives_a_plan(data: st.DataObject) -> None:
    n_prototypes = data.draw(st.integers(1, 8))
    n_known = data.draw(st.integers(0, n_prototypes))
    number = st.integers(0, n_prototypes - 1)
    rows = data.draw(st.lists(st.tuples(number, number, st.floats(0.5, 1)), max_size=40))
    best, second, sure = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [])
    found = plan(predictions(best, second, sure), n_prototypes=n_prototypes, n_known=n_known)
    assert found.groups[:n_known] == [[k] for k in range(n_known)]
    used = [member for group in found.groups for member in group]
    assert len(used) == len(set(used))
    assert len(used) + found.n_empty + found.n_small == n_prototypes
    assert len(used) - len(found.groups) == found.n_duplicates
    assert str(n_prototypes) in found.sentence() or n_prototypes == 1


def test_the_sentence_counts() -> None:
    everything = Merging(groups=[[0], [1]], sizes=[3, 3], n_empty=0, n_small=0, n_duplicates=0)
    some = Merging(groups=[[0], [2, 3]], sizes=[3, 1, 3, 3, 0], n_empty=1, n_small=1, n_duplicates=1)
    assert "2 of" not in everything.sentence()
    assert "2 of 5" in some.sentence()
