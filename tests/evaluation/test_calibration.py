"""The expected calibration error against a loop over bins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from error_codes import raises
from newkind.errors import ConfigError, DataError
from newkind.evaluation import calibration_error


def slowly(confidence, correct, n_bins):
    total = 0.0
    for i in range(n_bins):
        low, high = i / n_bins, (i + 1) / n_bins
        inside = [j for j, p in enumerate(confidence) if low < p <= high or (i == 0 and p == 0)]
        if inside:
            gap = np.mean([correct[j] for j in inside]) - np.mean([confidence[j] for j in inside])
            total += len(inside) / len(confidence) * abs(gap)
    return total


@settings(deadline=None)
@given(st.data())
def test_is_the_loop(data):
    n_bins = data.draw(st.sampled_from([1, 2, 4, 8, 16]))  # bounds without rounding
    confidence = data.draw(st.lists(st.floats(0, 1), min_size=1, max_size=40))
    correct = data.draw(st.lists(st.booleans(), min_size=len(confidence), max_size=len(confidence)))
    assert calibration_error(confidence, correct, n_bins=n_bins) == pytest.approx(slowly(confidence, correct, n_bins))


def test_calibrated_samples_have_no_error():
    rng = np.random.default_rng(0)
    confidence = rng.random(200_000)
    assert calibration_error(confidence, rng.random(200_000) < confidence) < 0.01
    assert calibration_error(np.ones(5), np.ones(5, dtype=bool)) == 0


def test_overconfidence_is_its_gap():
    assert calibration_error(np.full(10, 0.9), np.arange(10) < 6) == pytest.approx(0.3)
    assert calibration_error([1.0, 0.0], [False, True]) == 1


@pytest.mark.parametrize(
    ("confidence", "correct", "code"),
    [
        ([], [], "scores-shape"),
        ([0.5], [True, False], "scores-shape"),
        ([0.5], [1], "scores-shape"),
        ([1.1], [True], "confidence-range"),
        ([-0.1], [True], "confidence-range"),
        ([np.nan], [True], "confidence-range"),
    ],
)
def test_bad_input(confidence, correct, code):
    with raises(DataError, code):
        calibration_error(confidence, correct)


def test_no_bins():
    with raises(ConfigError, "n-bins-range"):
        calibration_error([0.5], [True], n_bins=0)
