"""Arbitrary requests to every route: none of them is a server error, and none breaks the run."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from asgi_client import AsgiClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from newkind.review.workbench import Workbench
from painted_run import SCRIPT, write_run

GETS = [
    "/",
    "/categories",
    "/category",
    "/merge",
    "/split",
    "/grow",
    "/images",
    "/sheet",
    "/search",
    "/map",
    "/history",
    "/api/state",
    "/api/lines",
    "/api/names",
    "/api/about",
    "/api/categories",
    "/api/doubtful",
    "/api/sheet",
    "/api/split",
    "/api/map",
]
POSTS = ["/api/decide", "/api/undo", "/api/redo", "/api/grow", "/api/grown", "/api/refit", "/api/refit/accept"]
PARAMETERS = [
    "id",
    "a",
    "b",
    "kind",
    "near",
    "text",
    "order",
    "shown",
    "near",
    "lines",
    "line",
    "n",
    "column",
    "value",
    "token",
]
TEXTS = st.sampled_from(
    [
        "new-01",
        "new-02",
        "apple",
        SCRIPT,
        "ambiguous",
        "outliers",
        "typical",
        "similar",
        "open",
        "0",
        "1,2,3",
        "47",
        "2",
        "",
    ]
) | st.text(max_size=30)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)
LINES = st.lists(st.integers(-1, 49), max_size=5) | JSON
DECISIONS = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(
            ["rename", "merge", "split", "move", "approve", "reject", "junk", "note", "undo", "refit"]
        )
        | JSON
    },
    optional={
        "category": TEXTS | JSON,
        "categories": st.lists(TEXTS, max_size=3) | JSON,
        "into": TEXTS,
        "name": TEXTS,
        "lines": LINES,
        "files": st.lists(TEXTS, max_size=3),
        "groups": st.lists(LINES, max_size=3) | JSON,
        "without": LINES,
        "text": TEXTS,
        "different": TEXTS | JSON,
        "event": st.integers(-1, 20) | JSON,
        "ids": st.lists(TEXTS, max_size=2),
    },
)
CONTENTS = st.fixed_dictionaries(
    {},
    optional={
        "decision": DECISIONS | JSON,
        "based_on": st.integers(-1, 30) | JSON,
        "growth": st.sampled_from(["0123456789", "short", "abcdefghij"]) | JSON,
        "category": TEXTS | JSON,
        "page": st.integers(-1, 5) | JSON,
        "wrong": LINES,
        "event": st.integers(-1, 30) | JSON,
        "refit": TEXTS | JSON,
    },
)
relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AsgiClient]:
    """One client for all requests, so that every request meets what the earlier ones decided."""
    folder = tmp_path_factory.mktemp("fuzz")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEWKIND_CACHE", str(folder / "cache"))
        client = AsgiClient(Workbench(write_run(folder / "run", folder / "data")))
    yield client
    client.close()


def check(status: int) -> None:
    assert status in (200, 400, 403, 404, 405, 409, 413, 421)


@relaxed
@given(st.sampled_from(GETS), st.dictionaries(st.sampled_from(PARAMETERS), TEXTS, max_size=4))
def test_any_parameters(shared: AsgiClient, path: str, values: dict[str, str]) -> None:
    query = "&".join(f"{name}={quote(value.encode('utf-8', 'surrogatepass'))}" for name, value in values.items())
    check(shared.get(f"{path}?{query}").status)


@relaxed
@given(st.text(max_size=40), st.binary(max_size=40))
def test_any_address(shared: AsgiClient, path: str, query: bytes) -> None:
    check(shared.get(f"/{path}?{query.decode('latin-1')}").status)
    for folder in ("thumb", "full", "static"):
        check(shared.get(f"/{folder}/{path}").status)


@relaxed
@given(st.sampled_from(POSTS), CONTENTS | JSON)
def test_any_content(shared: AsgiClient, path: str, content: Any) -> None:
    check(shared.send("POST", path, json.dumps(content).encode()).status)


@relaxed
@given(DECISIONS)
def test_any_decision(shared: AsgiClient, decision: dict[str, Any]) -> None:
    done = shared.decide(**decision)
    check(done.status)
    assert shared.get("/").status == 200
    assert "number" in done.json() or "code" in done.json()


@relaxed
@given(st.sampled_from(POSTS), st.binary(max_size=200), st.sampled_from(["application/json", "text/plain", "", "x"]))
def test_any_bytes(shared: AsgiClient, path: str, body: bytes, kind: str) -> None:
    check(shared.send("POST", path, body, headers={"content-type": kind}).status)


@relaxed
@given(
    st.dictionaries(
        st.sampled_from(["host", "origin", "cookie", "content_length", "sec_fetch_site"]), st.text(max_size=40)
    )
)
def test_any_headers(shared: AsgiClient, headers: dict[str, str]) -> None:
    check(shared.post("/api/undo", {}, **headers).status)
    check(shared.get("/api/state", **headers).status)


def test_after_all_of_it_the_run_is_whole(shared: AsgiClient, tmp_path: Path) -> None:
    for path in (*GETS[:2], "/history", "/map", "/api/categories", "/api/lines", "/api/map"):
        assert shared.get(path).status == 200
    shared.workbench.write_answer()
    assert len(shared.get("/api/lines").json()["lines"]) == 48
