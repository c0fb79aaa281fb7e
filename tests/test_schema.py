"""JSON from elsewhere: whatever the bytes are, the result has the type of the schema, or the error is InvalidJson."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from newkind import schema
from newkind.schema import InvalidJson, parse_json, read_json_file


class Inner(TypedDict):
    kind: Literal["a", "b"]
    share: float


class Outer(TypedDict):
    n: int
    inner: NotRequired[Inner | None]
    rows: NotRequired[list[list[float]]]


GOOD: Any = {"n": 3, "inner": {"kind": "a", "share": 1}, "rows": [[1, 2.5], []], "more": "of a later version"}


def test_what_fits_is_returned_as_it_is() -> None:
    assert parse_json(json.dumps(GOOD), Outer) == GOOD
    assert parse_json('{"n": 0, "inner": null}', Outer) == {"n": 0, "inner": None}


@pytest.mark.parametrize(
    "change",
    [
        {"n": True},
        {"n": 1.5},
        {"n": "3"},
        {"n": None},
        {"inner": []},
        {"inner": {"kind": "c", "share": 1}},
        {"inner": {"kind": "a", "share": "1"}},
        {"inner": {"kind": "a"}},
        {"rows": {}},
        {"rows": [1]},
        {"rows": [[None]]},
    ],
)
def test_another_type_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidJson):
        parse_json(json.dumps(GOOD | change), Outer)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"n": NaN}',
        '{"n": 1e999}',
        '{"n": -Infinity}',
        f'{{"n": {"1" * 5000}}}',
        f'{{"n": {"1" * 20}}}',
        '{"n": 1, "more": ' + "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        b"\xff\xfe",
        b'{"n": 1, "more": "\xff"}',
    ],
    ids=range(12),
)
def test_what_is_not_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(InvalidJson):
        parse_json(text, Outer)


@given(st.one_of(st.binary(), st.text().map(str.encode)))
def test_any_bytes_are_a_value_or_an_invalid_json(content: bytes) -> None:
    try:
        parse_json(content, object)
    except InvalidJson:
        return
    json.loads(content)


def test_a_pipe_and_a_huge_file_are_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_text(json.dumps(GOOD))
    monkeypatch.setattr(schema, "MAX_BYTES", 10)
    for name in ("pipe", "large"):
        with pytest.raises(InvalidJson):
            read_json_file(tmp_path / name, dict)
    with pytest.raises(OSError):  # noqa: PT011 - any of its kinds
        read_json_file(tmp_path / "missing", dict)
