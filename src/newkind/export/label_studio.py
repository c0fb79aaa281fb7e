"""Export for Label Studio: tasks with predictions, or annotations where a person decided, and a labelling configuration.

A run from boxes gives one task per image, with a rectangle per box whose region id is the number of the box.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from newkind import __version__
from newkind.atomic import check_writable, replacing, write_companion
from newkind.export.contents import ExportContents, ExportItem
from newkind.export.options import ExportOptions
from newkind.export.tables import item_attributes

__all__ = ["EVENT_KEY", "FILE_KEY", "JUNK_CHOICE", "NAME", "write_label_studio"]

LOCAL_FILES = "/data/local-files/?d="
FILE_KEY, EVENT_KEY = "newkind_file", "newkind_event"
JUNK_CHOICE = "junk"
"""Choice for images that belong to no category."""
NAME, IMAGE = "answer", "image"


def write_label_studio(contents: ExportContents, out: Path, options: ExportOptions) -> None:
    """Write the tasks as JSON, and the labelling configuration beside them, with the suffix .xml."""
    check_writable(out)
    is_boxed = any("#" in item.line.file for item in contents.items) and contents.images.boxes is not None
    tasks = _box_tasks(contents, options) if is_boxed else [_task(contents, item, options) for item in contents.items]
    write_companion(out.with_suffix(".xml"), _labelling_config(contents, is_boxed=is_boxed))
    with replacing(out, overwrite=False) as file:
        file.write(json.dumps(tasks, indent=1, allow_nan=False).encode())


def _task(contents: ExportContents, item: ExportItem, options: ExportOptions) -> dict[str, Any]:
    """Task of a whole image."""
    data = {IMAGE: _address(item.line.file, options), FILE_KEY: item.line.file, EVENT_KEY: contents.answer.last}
    values = item_attributes(item)
    about = {name: values[name] for name in ("category", "status", "reviewed", "confidence", "second", "novelty")}
    task: dict[str, Any] = {"data": data | about | {"metadata": item.metadata}}
    choice = item.line.category or (JUNK_CHOICE if item.line.status == "junk" else "")
    if choice:
        region = {"from_name": NAME, "to_name": IMAGE, "type": "choices", "value": {"choices": [choice]}}
        task |= _answer([region], item.line.confidence, is_reviewed=item.is_reviewed)
    return task


def _answer(regions: list[dict[str, Any]], score: float, *, is_reviewed: bool) -> dict[str, Any]:
    """Regions as an annotation of a person, or as a prediction."""
    if is_reviewed:
        return {"annotations": [{"result": regions}]}
    return {"predictions": [{"model_version": f"newkind-{__version__}", "score": score, "result": regions}]}


def _box_tasks(contents: ExportContents, options: ExportOptions) -> list[dict[str, Any]]:
    """One task per image; it is an annotation if a person decided about all of its boxes."""
    rows: dict[str, list[int]] = {}
    for row in range(len(contents.items)):
        rows.setdefault(contents.images.image_name(row), []).append(row)
    tasks = []
    for name, own in rows.items():
        items = [contents.items[row] for row in own]
        data = {IMAGE: _address(name, options), FILE_KEY: name, EVENT_KEY: contents.answer.last}
        regions = [_rectangle(contents, row) for row in own]
        answer = _answer(
            regions,
            min(item.line.confidence for item in items),
            is_reviewed=all(item.is_reviewed for item in items),
        )
        boxes = [item_attributes(item) | {"metadata": item.metadata} for item in items]
        tasks.append({"data": data | {"boxes": boxes}} | answer)
    return tasks


def _rectangle(contents: ExportContents, row: int) -> dict[str, Any]:
    """Region of a box; without a category it has no label."""
    item, facts = contents.items[row], contents.images.facts(row)
    left, top, width, height = contents.images.box(row) or (0.0, 0.0, 1.0, 1.0)
    choice = item.line.category or (JUNK_CHOICE if item.line.status == "junk" else "")
    place = {"x": 100 * left, "y": 100 * top, "width": 100 * width, "height": 100 * height, "rotation": 0}
    return {
        "id": item.line.file.rpartition("#")[2],
        "from_name": NAME,
        "to_name": IMAGE,
        "type": "rectanglelabels",
        "original_width": facts.width,
        "original_height": facts.height,
        "image_rotation": 0,
        "score": item.line.confidence,
        "value": place | {"rectanglelabels": [choice] if choice else []},
    }


def _address(name: str, options: ExportOptions) -> str:
    prefix = LOCAL_FILES if options.image_url is None else options.image_url
    return prefix + quote(name.lstrip("/"), errors="surrogateescape")


def _labelling_config(contents: ExportContents, *, is_boxed: bool) -> str:
    """Labelling configuration: the image and all categories."""
    names = [state.name for state in contents.answer.categories]
    names += [] if JUNK_CHOICE in names else [JUNK_CHOICE]
    group, choice = ("RectangleLabels", "Label") if is_boxed else ("Choices", "Choice")
    extra = "" if is_boxed else ' choice="single" showInline="true"'
    choices = "".join(f"    <{choice} value={quoteattr(name)}/>\n" for name in names)
    return (
        f'<View>\n  <Image name="{IMAGE}" value="${IMAGE}"/>\n'
        f'  <{group} name="{NAME}" toName="{IMAGE}"{extra}>\n{choices}  </{group}>\n</View>\n'
    )
