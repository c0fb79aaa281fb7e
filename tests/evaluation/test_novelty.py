"""The AUROC of novelty scores against a count over all pairs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from error_codes import raises
from newkind.errors import DataError
from newkind.evaluation import novelty_auroc, novelty_threshold


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=1, max_size=30))
def test_is_the_share_of_pairs_in_the_right_order(samples):
    is_old, novelty = np.array([old for old, _ in samples]), np.array([score for _, score in samples])
    pairs = [(new > old) + 0.5 * (new == old) for new in novelty[~is_old] for old in novelty[is_old]]
    assert novelty_auroc(is_old, novelty) == pytest.approx(np.mean(pairs) if pairs else np.nan, nan_ok=True)


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 100)), min_size=1, max_size=30))
def test_no_other_threshold_has_a_smaller_sum_of_error_rates(samples):
    is_old, novelty = np.array([old for old, _ in samples]), np.array([score / 100 for _, score in samples])
    found = novelty_threshold(is_old, novelty)
    if is_old.all() or not is_old.any():
        assert found is None
        return
    rates = [
        (np.mean([x < i / 100 for x in novelty[~is_old]]), np.mean([x >= i / 100 for x in novelty[is_old]]))
        for i in range(1, 100)
    ]
    assert found.false_known + found.false_new == pytest.approx(min(map(sum, rates)))
    assert rates[round(100 * found.threshold) - 1] == pytest.approx((found.false_known, found.false_new))


def test_perfect_chance_and_reversed():
    is_old = np.array([True] * 5 + [False] * 5)
    assert novelty_auroc(is_old, np.arange(10)) == 1
    assert novelty_auroc(is_old, np.zeros(10)) == 0.5
    assert novelty_auroc(is_old, -np.arange(10)) == 0


@pytest.mark.parametrize(
    ("is_old", "novelty", "code"),
    [
        ([True, False], [0.1], "scores-shape"),
        ([], [], "scores-shape"),
        ([0, 1], [0.1, 0.2], "scores-shape"),
        ([[True], [False]], [[0.1], [0.2]], "scores-shape"),
        ([True, False], [0.1, np.nan], "scores-not-finite"),
        ([True, False], [0.1, np.inf], "scores-not-finite"),
    ],
)
def test_bad_input(is_old, novelty, code):
    with raises(DataError, code):
        novelty_auroc(is_old, novelty)
