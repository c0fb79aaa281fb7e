"""Compact sequences of names, and names that are safe to print."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from newkind.data.names import Names, printable


@given(st.lists(st.text(st.characters())))  # surrogates too: JSON and .npz files can hold them alone
def test_holds_what_was_put_in(names: list[str]) -> None:
    held = Names(names)
    assert list(held) == names
    assert len(held) == len(names)
    assert held == Names(names)


def test_take_slice_and_negative_index() -> None:
    names = Names(["a", "bb", "", "dddd"])
    assert list(names[1:3]) == ["bb", ""]
    assert list(names.take(np.array([3, 0, 0]))) == ["dddd", "a", "a"]
    assert names[-1] == "dddd"
    with pytest.raises(IndexError):
        names[4]


def test_names_that_are_not_utf8_survive_and_can_be_printed() -> None:
    raw = b"caf\xe9.jpg".decode("utf-8", "surrogateescape")
    assert Names([raw])[0] == raw
    assert printable(raw) == "caf\\xe9.jpg"
    assert printable("\ud800x") == "\\ud800x"
    assert printable("two\nlines\x1b[31m") == "two\\nlines\\x1b[31m"
    assert printable("Ünïcödé 鳥") == "Ünïcödé 鳥"
