"""Corrections from Label Studio's JSON and JSON-MIN exports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from newkind.data.names import printable
from newkind.export.corrected_items import Correction, invalid_file, read_bounded
from newkind.export.label_studio import EVENT_KEY, FILE_KEY, NAME

__all__ = ["read_label_studio"]

FIX = "Export the project from Label Studio as JSON. Its tasks must come from newkind export --format labelstudio."


def read_label_studio(path: Path) -> list[Correction]:
    """Corrections of a file.

    Parameters
    ----------
    path : Path
        JSON or JSON-MIN, as Label Studio exports it. Predictions and skipped tasks are not corrections.

    Returns
    -------
    list of Correction
        Several of one item if several people annotated it.

    Raises
    ------
    DataError
        With the code `missing-file`, `unreadable`, `too-large` or `invalid-file`.
    """
    content = read_bounded(path)
    try:
        tasks = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise invalid_file(path, f"is not JSON ({error})", FIX) from None
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise invalid_file(path, "is not a list of tasks", FIX)
    found: list[Correction] = []
    for number, task in enumerate(tasks, start=1):
        try:
            found += _of_task(task)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise invalid_file(path, f"has an invalid task, number {number} ({error!r})", FIX) from None
    return found


def _of_task(task: dict[str, Any]) -> Iterator[Correction]:
    data = task.get("data", task)  # JSON-MIN has no `data`
    file, event = _text(data[FILE_KEY]), int(data.get(EVENT_KEY, -1))
    if "data" not in task:
        yield from _of_minimal(task.get(NAME), file, event)
        return
    for annotation in task.get("annotations") or []:
        if not isinstance(annotation, dict):
            raise ValueError("an annotation is not an object")
        if annotation.get("was_cancelled"):
            continue
        for region in annotation.get("result") or []:
            value, kind = region["value"], region["type"]
            if region.get("from_name") != NAME:
                continue  # another control that the user added
            if kind == "choices":
                yield from _chosen(value["choices"], file, event)
            elif kind == "rectanglelabels":
                yield from _chosen(value.get("rectanglelabels") or [], f"{file}#{_text(region['id'])}", event)


def _of_minimal(value: Any, file: str, event: int) -> Iterator[Correction]:
    """Answer in JSON-MIN: one choice as a text, or regions without ids, which cannot be matched to boxes."""
    if value is None:
        return
    if isinstance(value, str):
        yield Correction(file, value, event)
        return
    if isinstance(value, dict) and "choices" in value:
        yield from _chosen(value["choices"], file, event)
        return
    raise ValueError("boxes need the JSON export, not JSON-MIN")


def _chosen(choices: Any, file: str, event: int) -> Iterator[Correction]:
    if not isinstance(choices, list) or len(choices) > 1:
        raise ValueError(f"{printable(file)} has several categories")
    for choice in choices:
        yield Correction(file, _text(choice), event)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a name is empty or not a text")
    return value
