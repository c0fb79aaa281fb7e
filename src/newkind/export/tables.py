"""Items of an export as a table: the columns of every format that is one, or that has one beside it."""

from __future__ import annotations

from collections.abc import Sequence

from newkind.export.contents import ExportContents, ExportItem
from newkind.runs.assignment import csv_line
from newkind.runs.formulas import warn_of_formulas

__all__ = ["ITEM_COLUMNS", "item_attributes", "items_csv", "unique_columns", "yes_no"]

ITEM_COLUMNS = (
    "file",
    "category",
    "category_id",
    "status",
    "reviewed",
    "confidence",
    "second",
    "second_confidence",
    "novelty",
    "outlier",
)


def yes_no(value: bool | None) -> str:
    """A truth value as in assignments.csv; empty if it is unknown."""
    return "" if value is None else "yes" if value else "no"


def unique_columns(names: Sequence[str], taken: Sequence[str]) -> list[str]:
    """Names of columns that differ from each other and from those that are taken; others get the prefix `data_`.

    Examples
    --------
    >>> unique_columns(["site", "Status"], ["status"])
    ['site', 'data_Status']
    """
    used = {name.casefold() for name in taken}
    found: list[str] = []
    for name in names:
        unique = name
        while unique.casefold() in used:
            unique = f"data_{unique}"
        used.add(unique.casefold())
        found.append(unique)
    return found


def item_attributes(item: ExportItem) -> dict[str, str]:
    """Values of ITEM_COLUMNS as texts."""
    line = item.line
    values = (
        line.file,
        line.category,
        item.category_id,
        line.status,
        yes_no(item.is_reviewed),
        f"{line.confidence:.4f}",
        line.second,
        f"{line.second_confidence:.4f}",
        "" if line.novelty is None else f"{line.novelty:.4f}",
        yes_no(line.outlier),
    )
    return dict(zip(ITEM_COLUMNS, values, strict=True))


def items_csv(contents: ExportContents, *, files: Sequence[str] | None = None) -> str:
    """CSV text with one row per item: ITEM_COLUMNS and metadata.

    Parameters
    ----------
    contents : ExportContents
        The items.
    files : sequence of str, optional
        Where the image of each item was put, as a further column `placed`.
    """
    own = [*ITEM_COLUMNS, *(["placed"] if files is not None else [])]
    header = [*own, *unique_columns(contents.columns, own)]
    rows = [header]
    for row, item in enumerate(contents.items):
        placed = [] if files is None else [files[row]]
        rows.append([*item_attributes(item).values(), *placed, *item.metadata.values()])
    warn_of_formulas(name for item in contents.items for name in (item.line.file, item.line.category))
    return "".join(csv_line(row) for row in rows)
