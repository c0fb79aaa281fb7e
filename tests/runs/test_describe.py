"""Decisions in words."""

import pytest

from newkind.runs.decision import Decision
from newkind.runs.describe import describe


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        (Decision("move", files=("a.jpg",), name="Scarf"), ["Scarf"]),
        (Decision("move", files=("a.jpg",), into="Hat"), ["Hat"]),
        (Decision("move", files=("a.jpg",), into="new-06", ids=("new-06",), name="Scarf"), ["new-06", "Scarf"]),
    ],
)
def test_the_category_of_a_move_has_single_spaces(decision: Decision, words: list[str]) -> None:
    text = describe(decision)
    assert "  " not in text
    assert text == text.strip()
    assert text.split()[-len(words) :] == words
