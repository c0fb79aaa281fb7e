"""Export for EcoTaxa: a folder with the images and a table ecotaxa_items.tsv, ready to be zipped and imported.

The limits are those of EcoTaxa's importer: it reads a table as UTF-8 only if it starts with a byte order mark, takes JPEG, PNG and
GIF images, and has 20 columns of text for each object, of 250 characters.
"""

from __future__ import annotations

import logging
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

__all__ = ["EVENT_COLUMN", "FILE_COLUMN", "TABLE_NAME", "file_text", "plain_text", "write_ecotaxa"]

logger = logging.getLogger(__name__)

TABLE_NAME = "ecotaxa_items.tsv"
FILE_COLUMN, EVENT_COLUMN = "object_newkind_file", "object_newkind_event"
BYTE_ORDER_MARK = "\ufeff"
LONGEST_ID, LONGEST_TEXT, MAX_TEXTS = 200, 250, 20
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif")
OWN = (
    "depth_min",
    "depth_max",
    "annotation_date",
    "annotation_time",
    "annotation_person_name",
    "annotation_person_email",
)
"""Columns of EcoTaxa with a fixed meaning, without the prefix `object_`."""
FIXED = (
    "object_id",
    "object_date",
    "object_time",
    "object_link",
    "object_annotation_category",
    "object_annotation_status",
    *(f"object_{name}" for name in OWN),
)
"""Columns of objects that are not among the 20 of text."""
NUMBERS = ("img_rank", "object_lat", "object_lon", EVENT_COLUMN)


def write_ecotaxa(contents: ExportContents, out: Path, options: ExportOptions) -> None:
    """Write images and table. Items that a person decided about are `validated`, others `predicted`."""
    occasions = find_occasions(contents, options)
    with new_folder(out) as folder:
        names, others = FreeNames(), _other_images(contents)
        targets = []
        for number, name in enumerate(file_names(contents)):
            own = f"{name.rpartition('.')[0] or name}.png" if number in others else name
            targets.append(folder / "images" / names.take_file(plain_text(own)))
        placed = place_items(contents, targets, options, folder, as_png=others)
        rows = [
            _row(contents, item, occasion, image)
            for item, occasion, image in zip(contents.items, occasions, placed, strict=True)
        ]
        ids = FreeNames()
        for row in rows:
            row["object_id"] = ids.take(row["object_id"][-LONGEST_ID:])
        write_text(folder / TABLE_NAME, BYTE_ORDER_MARK + _table(rows))


def _other_images(contents: ExportContents) -> frozenset[int]:
    """Rows of whole images that EcoTaxa refuses, such as WebP and HEIC. Boxes are written as PNG anyway."""
    if contents.images.boxes is not None:
        return frozenset()
    return frozenset(
        row for row in range(len(contents.items)) if contents.images.facts(row).media_type not in IMAGE_TYPES
    )


def _row(contents: ExportContents, item: ExportItem, occasion: Occasion, image: str) -> dict[str, str]:
    """Values of one object by column."""
    line, run = item.line, contents.run.folder.resolve().name
    found = {"img_file_name": image, "img_rank": "0", "object_id": plain_text(line.file)}
    if occasion.latitude is not None and occasion.longitude is not None:
        found |= {"object_lat": f"{occasion.latitude:.7g}", "object_lon": f"{occasion.longitude:.7g}"}
    if occasion.time is not None:
        found |= {"object_date": f"{occasion.time:%Y%m%d}"}
        found |= {} if occasion.is_day else {"object_time": f"{occasion.time:%H%M%S}"}
    found |= {
        "object_annotation_category": plain_text(line.category),
        "object_annotation_status": ("validated" if item.is_reviewed else "predicted") if line.category else "",
        FILE_COLUMN: file_text(line.file),
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
    kinds = {name: "[f]" if _is_number(name, [row.get(name, "") for row in rows]) else "[t]" for name in columns}
    texts = [name for name in columns if name.startswith("object_") and kinds[name] == "[t]" and name not in FIXED]
    if left_out := texts[MAX_TEXTS:]:
        columns = [name for name in columns if name not in left_out]
        logger.warning(
            f"EcoTaxa has {MAX_TEXTS} columns of text for an object; left out: "
            f"{', '.join(name.removeprefix('object_') for name in left_out)}."
        )
    lines = [columns, [kinds[name] for name in columns], *([row.get(name, "") for name in columns] for row in rows)]
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
    """Text without tabs, line ends, quotation marks and invalid characters, of at most 250 characters."""
    return re.sub(r"[\"\x00-\x1f\ud800-\udfff]", "_", text)[:LONGEST_TEXT]


def file_text(name: str) -> str:
    """Name of an item as EcoTaxa keeps it; the end of a long one, where names differ."""
    return plain_text(name[-LONGEST_TEXT:])


def _column(name: str) -> str:
    """Name of a free column: lower case, letters, digits and underscores."""
    return re.sub(r"[^a-z0-9_]", "_", name.lower()) or "column"
