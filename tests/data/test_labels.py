"""Every way to write a label, and what is not one."""

import numpy as np
import pytest

from error_codes import raises
from newkind.data import encode_labels, encode_truth
from newkind.errors import DataError


def test_every_way_to_say_unlabelled() -> None:
    encoded = encode_labels(["b", None, "", "  ", float("nan"), -1, "-1", "a", np.float32("nan")])
    assert encoded.class_names == ("a", "b")
    assert encoded.indices.tolist() == [1, -1, -1, -1, -1, -1, -1, 0, -1]


def test_numbers_sort_by_value() -> None:
    encoded = encode_labels([10, 9, "2", 10.0, np.int64(9)])
    assert encoded.class_names == ("2", "9", "10")
    assert encoded.indices.tolist() == [2, 1, 0, 2, 1]


def test_long_numbers_sort_by_value() -> None:
    assert encode_labels(["9" * 5000, "10", "9", "010"]).class_names == ("9", "010", "10", "9" * 5000)


NO_NUMBERS = [0.5, np.float32(0.5), np.inf, -np.inf, True, np.bool_(True), -2, np.int8(-128), 1j, np.complex128(1)]


@pytest.mark.parametrize(
    "bad",
    [*NO_NUMBERS, 10**5000, -(10**5000), [1], np.zeros(2), b"a", {"a": 1}],
    ids=lambda bad: type(bad).__name__,
)
def test_what_is_no_label(bad: object) -> None:
    with raises(DataError, "not-a-label"):
        encode_labels([bad])


def test_truth_puts_new_classes_last() -> None:
    given = encode_labels(["m", None, None, "k"])
    truth = encode_truth([None, "a", "m", "k"], given)
    assert truth.class_names == ("k", "m", "a")
    assert truth.labels.tolist() == [1, 2, 1, 0]  # a given label is true even where the truth is silent
    assert truth.is_old.tolist() == [True, False, True, True]
    assert truth.n_old == 2


def test_truth_that_contradicts_a_label() -> None:
    with raises(DataError, "label-conflict") as caught:
        encode_truth(["a", "a"], encode_labels(["m", None]))
    assert caught.value.facts == {"item": 0, "label": "m", "truth": "a"}
