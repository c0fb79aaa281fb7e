"""Export as COCO: images, one annotation per item, categories. Boxes keep their places; whole images have a box of their size."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from newkind import __version__
from newkind.atomic import replacing
from newkind.export.contents import ExportContents
from newkind.export.options import ExportOptions
from newkind.export.tables import yes_no

__all__ = ["write_coco"]


def write_coco(contents: ExportContents, out: Path, options: ExportOptions) -> None:  # noqa: ARG001 - all formats have it
    """Write one JSON file. Items without a category are in the list `unassigned`, because an annotation needs one."""
    number = {state.id: k for k, state in enumerate(contents.answer.categories, start=1)}
    images: dict[str, dict[str, Any]] = {}
    annotations: list[dict[str, Any]] = []
    unassigned: list[dict[str, Any]] = []
    for row, item in enumerate(contents.items):
        name, facts = contents.images.image_name(row), contents.images.facts(row)
        image = images.setdefault(
            name, {"id": len(images) + 1, "file_name": name, "width": facts.width, "height": facts.height}
        )
        left, top, width, height = contents.images.box(row) or (0.0, 0.0, 1.0, 1.0)
        box = [left * facts.width, top * facts.height, width * facts.width, height * facts.height]
        line = item.line
        found = {
            "id": row + 1,
            "image_id": image["id"],
            "category_id": number.get(item.category_id),
            "bbox": [round(value, 3) for value in box],
            "area": round(box[2] * box[3], 3),
            "iscrowd": 0,
            "segmentation": [],
            "score": line.confidence,
            "file": line.file,
            "status": line.status,
            "reviewed": yes_no(item.is_reviewed),
            "second": line.second,
            "second_score": line.second_confidence,
            "novelty": line.novelty,
            "outlier": line.outlier,
            "metadata": item.metadata,
        }
        (annotations if item.category_id else unassigned).append(found)
    content = {
        "info": {
            "description": f"Newkind run {contents.run.folder.resolve().name}, event {contents.answer.last}",
            "version": __version__,
            "date_created": datetime.now(UTC).isoformat(timespec="seconds"),
        },
        "licenses": [],
        "images": list(images.values()),
        "annotations": annotations,
        "categories": [
            {"id": number[state.id], "name": state.name, "supercategory": state.status, "newkind_id": state.id}
            for state in contents.answer.categories
        ],
        "unassigned": unassigned,
    }
    with replacing(out, overwrite=False) as file:
        file.write(json.dumps(content, indent=1, allow_nan=False).encode())
