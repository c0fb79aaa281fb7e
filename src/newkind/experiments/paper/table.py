"""The table of a study with its protocol and notes, as CSV, JSON, Markdown and LaTeX."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from newkind.atomic import write_text
from newkind.experiments.paper.latex import latex_table
from newkind.experiments.spread import Spread
from newkind.progress import duration

__all__ = ["NOTHING", "Column", "Table", "shown", "write_table"]

NOTHING = "–"
TITLES = {
    "data": "Data",
    "backbone": "Backbone",
    "image_size": "Image size",
    "views": "Views",
    "epochs": "Epochs",
    "optimizer": "Optimizer",
    "recipe": "Recipe",
    "k_rule": "Number of categories",
    "selection": "Selection",
    "seeds": "Seeds",
    "published": "Published",
}


@dataclass(frozen=True)
class Column:
    """Column of a table.

    Parameters
    ----------
    key : str
        Key of its values in the rows.
    title : str
        Heading.
    kind : {"text", "spread", "count", "number", "time", "short"}, default="text"
        How values are shown: as text; mean ± deviation; a count, possibly with deviation; a number; a time in the largest
        fitting unit; seconds with three significant digits.
    """

    key: str
    title: str
    kind: str = "text"

    @property
    def is_text(self) -> bool:
        """Whether the column is aligned to the left."""
        return self.kind == "text"


@dataclass(frozen=True, kw_only=True)
class Table:
    """Table of a study.

    Parameters
    ----------
    study : str
        Name of the study, and of the files.
    title : str
        Title.
    about : dict of str to str
        The protocol.
    columns : tuple of Column
        Columns that are shown. Rows may have further values, which only the CSV and JSON files contain.
    rows : list of dict
        Values by key.
    notes : tuple of str, default=()
        Sentences below the table.
    """

    study: str
    title: str
    about: dict[str, str]
    columns: tuple[Column, ...]
    rows: list[dict[str, Any]]
    notes: tuple[str, ...] = ()

    def cells(self) -> list[list[str]]:
        """Rows as they are shown."""
        return [[shown(row.get(column.key), column.kind) for column in self.columns] for row in self.rows]

    def lines(self) -> list[str]:
        """The protocol and the notes as sentences."""
        return [f"{TITLES.get(name, name)}: {text}." for name, text in self.about.items()] + list(self.notes)

    def groups(self) -> list[int]:
        """Indices of rows at which the data changes."""
        names = [row.get("data") for row in self.rows]
        return [i for i in range(1, len(names)) if names[i] != names[i - 1]]


def shown(value: Any, kind: str) -> str:
    """Value as it is shown in a table.

    Parameters
    ----------
    value : Any
        Value of a row; None for a missing one.
    kind : str
        Kind of the column, as in `Column`.

    Returns
    -------
    str
    """
    if value is None:
        return NOTHING
    if isinstance(value, Spread):
        return value.shown(0 if kind == "count" and not value.std else 1)
    if isinstance(value, tuple | list):
        return " / ".join(f"{item:.1f}" for item in value)
    if kind == "time":
        return duration(value)
    if kind == "short":
        return f"{value:.3g} s"
    return f"{value:g}" if isinstance(value, float) else str(value)


def write_table(table: Table, out: Path) -> list[Path]:
    """Write a table as .csv, .json, .md and .tex, each file atomically.

    Parameters
    ----------
    table : Table
        The table.
    out : Path
        Existing folder.

    Returns
    -------
    list of Path
        The four files.
    """
    texts = {"csv": to_csv(table), "json": to_json(table), "md": to_markdown(table), "tex": to_latex(table)}
    paths = []
    for suffix, text in texts.items():
        paths.append(out / f"{table.study}.{suffix}")
        write_text(paths[-1], text)
    return paths


def to_csv(table: Table) -> str:
    """All values as numbers, with the protocol in every row, so that rows of several tables can be joined."""
    flat = [_flat(row) | {f"protocol_{name}": text for name, text in table.about.items()} for row in table.rows]
    names = list(dict.fromkeys(name for row in flat for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return text.getvalue()


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Row with one plain value per column."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Spread):
            found |= {f"{name}_mean": round(value.mean, 4)}
            found |= {f"{name}_std": "" if value.std is None else round(value.std, 4)}
        elif name == "published":
            triple: Sequence[Any] = value or ("", "", "")
            found |= {f"published_{part}": item for part, item in zip(("all", "old", "new"), triple, strict=True)}
        elif isinstance(value, list | tuple):
            found[name] = " ".join(map(str, value))
        else:
            found[name] = "" if value is None else value
    return found


def to_json(table: Table) -> str:
    """All values, with every single value behind a mean."""

    def plain(value: Any) -> Any:
        if isinstance(value, Spread):
            return {"mean": value.mean, "std": value.std, "n": len(value.values), "values": list(value.values)}
        return list(value) if isinstance(value, tuple) else value

    content = {
        "study": table.study,
        "title": table.title,
        "protocol": table.about,
        "rows": [{name: plain(value) for name, value in row.items()} for row in table.rows],
        "notes": list(table.notes),
    }
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def to_markdown(table: Table) -> str:
    """Title, table, protocol and notes."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("\\", "\\\\").replace("|", "\\|") for cell in cells) + " |"

    rows = [
        line([column.title for column in table.columns]),
        line([":---" if column.is_text else "---:" for column in table.columns]),
        *map(line, table.cells()),
    ]
    below = "\n".join(f"- {sentence}" for sentence in table.lines())
    return f"# {table.title}\n\n" + "\n".join(rows) + f"\n\n{below}\n"


def to_latex(table: Table) -> str:
    """Table environment with a rule where the data changes."""
    return latex_table(
        label=f"tab:newkind-{table.study}",
        caption=" ".join([f"{table.title}.", *table.lines()]),
        titles=[column.title for column in table.columns],
        is_text=[column.is_text for column in table.columns],
        rows=table.cells(),
        rules=table.groups(),
    )
