"""What a request asks for, checked: numbers of images, ids of categories, decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request

from newkind.errors import RunError
from newkind.review.listing import ORDERS, SHOWN, Query
from newkind.review.snapshot import DIFFERENT, Snapshot
from newkind.review.workbench import Workbench
from newkind.runs.decision import Decision
from newkind.schema import InvalidJson, parse_json

__all__ = [
    "bad_request",
    "based_on",
    "category_of",
    "decision_of",
    "line_numbers",
    "line_of",
    "not_found",
    "query_of",
    "read_json",
    "workbench_of",
]

MOST_DIGITS = 9


def bad_request(what: str) -> RunError:
    """Error for a request that makes no sense."""
    return RunError(what, code="invalid-request")


def not_found(what: str) -> RunError:
    """Error for something that does not exist, or not any more."""
    return RunError(what, code="not-found")


def workbench_of(request: Request) -> Workbench:
    """Workbench of the application."""
    found: Workbench = request.app.state.workbench
    return found


def category_of(request: Request, snapshot: Snapshot, name: str = "id") -> int:
    """Index of the category that a parameter names by its key."""
    k = snapshot.position(request.query_params.get(name, ""))
    if k is None:
        raise not_found("There is no such category. It may have been merged or undone.")
    return k


def line_of(text: str, n: int) -> int:
    """Row of an image, from a text."""
    if not (text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS and int(text) < n):
        raise not_found("There is no such image.")
    return int(text)


def line_numbers(values: Any, n: int) -> list[int]:
    """Rows of images, from JSON."""
    if not isinstance(values, list) or not all(type(line) is int and 0 <= line < n for line in values):
        raise bad_request("`lines` must be numbers of images.")
    return values


async def read_json(request: Request) -> dict[str, Any]:
    """JSON object of a request."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise bad_request("The content type must be application/json.")
    try:
        return parse_json(await request.body(), dict[str, Any])
    except InvalidJson as error:
        raise bad_request(f"The request must be a JSON object ({error}).") from None


def based_on(content: dict[str, Any]) -> int:
    """Number of the last event that the page has seen."""
    number = content.get("based_on")
    if type(number) is not int or not 0 <= number < 10**MOST_DIGITS:
        raise bad_request("`based_on` must be the number of an event.")
    return number


def decision_of(content: Any, snapshot: Snapshot) -> Decision:
    """Decision from JSON, in which keys stand for ids of categories, and numbers of images for files.

    `different`, the key of another category, makes a note that the two categories are different.
    """
    if not isinstance(content, dict):
        raise bad_request("A decision must be a JSON object.")
    if content.get("kind") in ("refit", "undo", "redo"):
        raise bad_request("Refit, undo and redo have addresses of their own.")
    content, files = dict(content), snapshot.answer.files
    if "lines" in content:
        content["files"] = _names(content.pop("lines"), files)
    if "without" in content:
        content["without"] = _names(content["without"], files)
    if isinstance(content.get("groups"), list):
        content["groups"] = [_names(group, files) for group in content["groups"]]
    for name in ("category", "into"):
        if content.get(name):
            content[name] = _id_of(content[name], snapshot)
    if isinstance(content.get("categories"), list):
        content["categories"] = [_id_of(key, snapshot) for key in content["categories"]]
    if "different" in content:
        content["text"] = DIFFERENT + _id_of(content.pop("different"), snapshot)
    return Decision.from_json(content)


def _names(lines: Any, files: Sequence[str]) -> list[str]:
    return [files[line] for line in line_numbers(lines, len(files))]


def _id_of(key: Any, snapshot: Snapshot) -> str:
    found = snapshot.ids.get(key) if isinstance(key, str) else None
    if found is None:
        raise not_found("There is no such category. It may have been merged or undone.")
    return found


def query_of(request: Request, snapshot: Snapshot, columns: dict[str, list[str]]) -> Query:
    """What a list of images is asked for."""
    values = request.query_params
    order, shown, column = values.get("order", "typical"), values.get("shown", "all"), values.get("column", "")
    if order not in ORDERS or shown not in SHOWN or (column and column not in columns):
        raise bad_request("There is no such order or filter.")
    n = len(snapshot.answer)
    return Query(
        category=category_of(request, snapshot) if "id" in values else None,
        text=values.get("text", ""),
        shown=shown,
        order=order,
        near=tuple(line_of(text, n) for text in values.get("near", "").split(",") if text),
        column=column,
        value=values.get("value", ""),
    )
