"""Strategies of bad values: texts, numbers, JSON, tables."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

__all__ = ["BAD_TEXTS", "bad_json", "bad_options", "bad_table", "json_values"]

BAD_TEXTS = (
    "",
    " ",
    "-1",
    "nan",
    "inf",
    "1e400",
    "9" * 5000,
    "[red]",
    "[/nope]",
    "\x1b[31m",
    "\x1b]0;title\x07",
    "../../etc/passwd",
    "/etc/passwd",
    ".",
    "..",
    "a\x00b",
    "a\nb",
    "a\r\nb",
    "=1+1",
    "\ufeffx",
    "\udcff",
    "x" * 300,
    "x" * 140_000,
    "🦊",
    "é",
    "'; DROP TABLE",
    "<script>alert(1)</script>",
    "CON",
    "a,b",
    '"',
    '"unclosed',
    "\\",
    "a/b",
    "true",
    "null",
)
texts = st.one_of(st.sampled_from(BAD_TEXTS), st.text(max_size=20))
numbers = st.one_of(
    st.sampled_from([0, -1, 1, 2, 10**6, 2**31, 2**63, 10**30, 0.5, -0.0, 1e308, 5e-324, float("nan"), float("inf")]),
    st.integers(),
    st.floats(),
)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
DEEP = "[" * 100_000
LONG_NUMBER = "1" * 5000


def _places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all values in a JSON document."""
    found = [above]
    if isinstance(value, dict):
        children: Any = value.items()
    else:
        children = enumerate(value[:3]) if isinstance(value, list) else ()
    for key, child in children:
        found += _places(child, (*above, key))
    return found


@st.composite
def bad_json(draw: st.DrawFn, content: str) -> bytes:
    """A JSON document that was changed in one place, cut, or replaced by something else."""
    kind = draw(
        st.sampled_from(["value", "value", "value", "value", "delete", "add", "cut", "deep", "number", "bytes"])
    )
    if kind == "cut":
        return content.encode()[: draw(st.integers(0, max(len(content) - 2, 0)))]
    if kind == "bytes":
        return draw(st.binary(max_size=40))
    if kind == "deep":
        return draw(st.sampled_from([DEEP, '{"a":' * 50_000, '{"format": 2, "fingerprint": ' + DEEP])).encode()
    first, newline, rest = content.partition("\n") if content.count("\n{") else (content, "", "")
    document = json.loads(first)
    place = draw(st.sampled_from(_places(document)[1:] or [()]))
    if kind == "number":
        mark = "a place for a long number"
        return json.dumps(_changed(document, place, mark)).replace(json.dumps(mark), LONG_NUMBER).encode()
    if kind == "delete":
        document = _changed(document, place, None, delete=True)
    elif kind == "add":
        document = _changed(document, (*place[:-1], draw(texts)), draw(json_values))
    else:
        document = _changed(document, place, draw(json_values))
    return (json.dumps(document) + newline + rest).encode("utf-8", "surrogatepass")


def _changed(document: Any, place: tuple[Any, ...], value: Any, *, delete: bool = False) -> Any:
    """The document with another value at a place, or without it."""
    if not place:
        return value
    document = json.loads(json.dumps(document))
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    if delete:
        del inner[place[-1]]
    elif isinstance(inner, list):
        inner[0 if isinstance(place[-1], str) else place[-1]] = value
    else:
        inner[place[-1]] = value
    return document


@st.composite
def bad_table(draw: st.DrawFn, files: tuple[str, ...], kind: str) -> bytes:
    """Content of a table of images (`csv`, `tsv` or `jsonl`) with a few bad rows among good ones, or no table at all."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.one_of(st.binary(max_size=200), st.just("file_name,label\na,b\n".encode("utf-16"))))
    names = st.one_of(st.sampled_from(files), texts)
    if kind == "jsonl":
        keys = st.sampled_from(["file_name", "file", "label", "truth", "x"])
        rows = draw(st.lists(st.one_of(st.dictionaries(keys, st.one_of(names, json_values)), json_values), max_size=8))
        return b"\n".join(json.dumps(row).encode() for row in rows)
    mark = "\t" if kind == "tsv" else draw(st.sampled_from([",", ";", "\t"]))
    header = draw(
        st.sampled_from([["file_name", "label"], ["file", "label", "truth"], ["File_Name ", " LABEL"], ["a"]])
    )
    rows = draw(st.lists(st.lists(names, min_size=1, max_size=4), max_size=8))
    rows += [[name, "red" if i % 2 else ""] + [""] * (len(header) - 2) for i, name in enumerate(files)]
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    return end.join(mark.join(row) for row in [header, *rows]).encode("utf-8", "surrogatepass")


@st.composite
def bad_options(draw: st.DrawFn, options: tuple[str, ...]) -> list[str]:
    """A few options with values that are no good."""
    found = []
    for option in draw(st.lists(st.sampled_from(options), min_size=1, max_size=3)):
        value = draw(st.one_of(texts, numbers.map(str), st.sampled_from(["1", "0", "auto", "quick"])))
        found += [option, value.replace("\x00", "")]
    return [text.encode("utf-8", "ignore").decode() for text in found]
