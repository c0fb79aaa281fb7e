"""Decisions: which are valid, and what they look like as JSON."""

import pytest

from error_codes import raises
from newkind.errors import RunError
from newkind.runs.decision import Decision


@pytest.mark.parametrize(
    "decision",
    [
        Decision("rename", category="new-01", name="bee"),
        Decision("merge", categories=("new-01", "new-02"), into="dog"),
        Decision("split", category="new-01", groups=(("a.jpg", "b.jpg"), ("c.jpg",)), ids=("new-09",)),
        Decision("move", files=("a\udc80.jpg",), into="dog"),
        Decision("approve", category="dog"),
        Decision("undo", event=3),
        Decision("note", text="two\nlines"),
    ],
    ids=lambda decision: decision.kind,
)
def test_a_decision_survives_json(decision: Decision) -> None:
    import json

    assert Decision.from_json(json.loads(json.dumps(decision.to_json()))) == decision


@pytest.mark.parametrize(
    "content",
    [
        {},
        [],
        {"kind": "explode"},
        {"kind": ["rename"]},
        {"kind": "rename", "category": "new-01"},
        {"kind": "rename", "category": "new-01", "name": 3},
        {"kind": "rename", "category": "new-01", "name": "bee", "files": ["a.jpg"]},
        {"kind": "rename", "category": "new-01", "name": "bee", "colour": "red"},
        {"kind": "move", "files": "a.jpg", "into": "dog"},
        {"kind": "move", "files": [["a.jpg"]], "into": "dog"},
        {"kind": "split", "category": "dog", "groups": ["a.jpg"]},
        {"kind": "approve"},
        {"kind": "undo", "event": -1},
        {"kind": "undo", "event": True},
    ],
)
def test_other_content_is_refused(content: object) -> None:
    with raises(RunError, "invalid-decision"):
        Decision.from_json(content)


@pytest.mark.parametrize("name", [" ", "a\nb", "a\x00", "a\udc80", "x" * 201])
def test_names_that_cannot_be_shown_are_refused(name: str) -> None:
    with raises(RunError, "invalid-name"):
        Decision("rename", category="new-01", name=name)


def test_space_around_a_name_is_removed() -> None:
    assert Decision("rename", category="new-01", name="  bee ").name == "bee"
