"""Export for EcoTaxa: a folder with the images and a table ecotaxa_items.tsv, ready to be zipped and imported."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from newkind import __version__
from newkind.atomic import new_folder, write_text
from newkind.export.contents import ExportContents, ExportItem
from newkind.export.folders import file_names, place_items
from newkind.export.occasions import Occasion, find_occasions
from newkind.export.options import ExportOptions
from newkind.export.tables import item_attributes, unique_columns
from newkind.pipeline.sorting import FreeNames

__all__ = ["EVENT_COLUMN", "FILE_COLUMN", "TABLE_NAME", "plain_text", "write_ecotaxa"]

TABLE_NAME = "ecotaxa_items.tsv"
FILE_COLUMN, EVENT_COLUMN = "object_newkind_file", "object_newkind_event"
LONGEST_ID = 200
OWN = (
    "depth_min",
    "depth_max",
    "annotation_date",
    "annotation_time",
    "annotation_person_name",
    "annotation_person_email",
)
"""Columns of EcoTaxa with a fixed meaning, without the prefix `object_`."""
NUMBERS = ("img_rank", "object_lat", "object_lon", EVENT_COLUMN)


def write_ecotaxa(contents: ExportContents, out: Path, options: ExportOptions) -> None:
    """Write images and table. Items that a person decided about are `validated`, others `predicted`."""
    occasions = find_occasions(contents, options)
    with new_folder(out) as folder:
        names = FreeNames()
        targets = [folder / "images" / names.take_file(plain_text(name)) for name in file_names(contents)]
        placed = place_items(contents, targets, options, folder)
        rows = [
            _row(contents, item, occasion, image)
            for item, occasion, image in zip(contents.items, occasions, placed, strict=True)
        ]
        ids = FreeNames()
        for row in rows:
            row["object_id"] = ids.take(row["object_id"][-LONGEST_ID:])
        write_text(folder / TABLE_NAME, _table(rows))


def _row(contents: ExportContents, item: ExportItem, occasion: Occasion, image: str) -> dict[str, str]:
    """Values of one object by column."""
    line, run = item.line, contents.run.folder.resolve().name
    found = {"img_file_name": image, "img_rank": "0", "object_id": plain_text(line.file)}
    if occasion.latitude is not None and occasion.longitude is not None:
        found |= {"object_lat": f"{occasion.latitude:.7g}", "object_lon": f"{occasion.longitude:.7g}"}
    if occasion.time is not None:
        found |= {"object_date": f"{occasion.time:%Y%m%d}", "object_time": f"{occasion.time:%H%M%S}"}
    found |= {
        "object_annotation_category": plain_text(line.category),
        "object_annotation_status": ("validated" if item.is_reviewed else "predicted") if line.category else "",
        FILE_COLUMN: plain_text(line.file),
        EVENT_COLUMN: str(contents.answer.last),
    }
    values = item_attributes(item)
    own = ("category_id", "status", "reviewed", "confidence", "second", "second_confidence", "novelty", "outlier")
    found |= {f"object_newkind_{name}": plain_text(values[name]) for name in own}
    taken = [name.removeprefix("object_") for name in found] + [*OWN, "lat", "lon", "date", "time", "link"]
    columns = unique_columns([_column(name) for name in contents.columns], taken)
    found |= {f"object_{name}": plain_text(value) for name, value in zip(columns, item.metadata.values(), strict=True)}
    return found | {"sample_id": run, "acq_id": run, "process_id": f"newkind_{__version__}"}


def _table(rows: Sequence[dict[str, str]]) -> str:
    """Tab-separated text with EcoTaxa's second row: [f] for columns of numbers, [t] for texts."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    kinds = ["[f]" if _is_number(name, [row.get(name, "") for row in rows]) else "[t]" for name in columns]
    lines = [columns, kinds, *([row.get(name, "") for name in columns] for row in rows)]
    return "".join("\t".join(line) + "\n" for line in lines)


def _is_number(name: str, values: Sequence[str]) -> bool:
    """Whether all values of a column are numbers. Own columns have fixed types."""
    if name in NUMBERS:
        return True
    if not name.startswith("object_") or name.startswith(("object_annotation", "object_date", "object_time")):
        return False
    filled = [value for value in values if value]
    return bool(filled) and all(re.fullmatch(r"-?\d+(\.\d*)?([eE][-+]?\d+)?", value) for value in filled)


def plain_text(text: str) -> str:
    """Text without tabs, line ends and quotation marks, which the format cannot express."""
    return re.sub(r"[\t\r\n\"\x00-\x1f]", "_", text)


def _column(name: str) -> str:
    """Name of a free column: lower case, letters, digits and underscores."""
    return re.sub(r"[^a-z0-9_]", "_", name.lower()) or "column"
