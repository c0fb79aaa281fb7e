"""Items and labels in the forms that scikit-learn's users give."""

from pathlib import Path

import numpy as np
import pytest

from error_codes import raises
from newkind.data.array_likes import are_numbers, from_paths, list_of_labels, list_of_paths
from newkind.errors import DataError


@pytest.mark.parametrize("X", [["a.png", "b.png"], [Path("a.png"), Path("b.png")], np.array(["a.png", "b.png"])])
def test_paths(X: object) -> None:
    assert list_of_paths(X) == ["a.png", "b.png"]


@pytest.mark.parametrize("X", ["a.png", Path("a.png"), [], [1.0, 2.0], ["a.png", 3], np.array([["a.png"]]), None])
def test_other_things_than_paths(X: object) -> None:
    assert list_of_paths(X) is None


def test_labels() -> None:
    assert list_of_labels(None, 2) == [None, None]
    assert list_of_labels(np.array([[1], [-1]]), 2) == [1, -1]
    assert list_of_labels(["bee", None], 2) == ["bee", None]
    assert are_numbers([1, -1, None, ""])
    assert not are_numbers(["bee", -1])


def test_a_collection_of_paths() -> None:
    catalog = from_paths(["a.png", "b.png"], ["bee", None]).catalog
    assert list(catalog.items.names) == ["a.png", "b.png"]
    assert catalog.labels.tolist() == [0, -1]
    with raises(DataError, "length-mismatch"):
        from_paths(["a.png", "b.png"], ["bee"])
