"""How a run was made: its curves over the epochs, its settings, the machine, the weights."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Any

from newkind.data.benchmarks import BENCHMARKS
from newkind.data.names import printable
from newkind.progress import duration
from newkind.report.charts import Panel, line_panel
from newkind.report.contents import RunContents
from newkind.report.images import benchmark_of

__all__ = ["Facts", "curves_of", "data_of", "estimate_panel", "facts_of", "flatten", "title_of"]

Facts = list[tuple[str, list[tuple[str, str]]]]
"""Groups of names and values."""
ACTIVE = "active_prototypes"
"""Categories that unlabelled images are sorted into."""
PARTS = {
    "loss/total": "Loss, all parts together",
    "loss/infonce": "Contrastive loss (InfoNCE)",
    "loss/supcon": "Supervised contrastive loss",
    "loss/distil": "Self-distillation loss",
    "loss/entropy": "Entropy term",
    "loss/supervised": "Supervised loss (labelled images)",
    "learning_rate": "Learning rate",
    ACTIVE: "Active prototypes",
}
ACCURACY = ("accuracy/all", "accuracy/old", "accuracy/new")
PLACE = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?[\\/](?:.*[\\/])?(?=[^\\/])", re.DOTALL)
"""The folders of a path."""


def curves_of(metrics: list[dict[str, Any]]) -> list[Panel]:
    """Accuracy, every loss part, and whatever else a run wrote down for each epoch."""
    series: dict[str, list[tuple[Any, Any]]] = {}
    for row in metrics:
        for key, value in row.items():
            if key not in ("epoch", "seconds"):
                series.setdefault(key, []).append((row.get("epoch"), value))
    scores = {key.partition("/")[2].capitalize(): series.pop(key) for key in ACCURACY if key in series}
    panels = [line_panel("Accuracy", scores, percent=True)] if scores else []
    order = sorted(series, key=lambda key: (key == "learning_rate", key != ACTIVE, key != "loss/total"))
    for key in order:
        group, _, name = key.rpartition("/")
        title = PARTS.get(key, f"{group.capitalize()}: {name}" if group else name.replace("_", " ").capitalize())
        panels.append(line_panel(title, {name.replace("_", " "): series[key]}, whole=key == ACTIVE))
    return [panel for panel in panels if panel is not None]


def estimate_panel(contents: RunContents) -> Panel | None:
    """The curve behind the number of categories, if it was found out."""
    found = contents.estimate or {}
    curve = found.get("curve")
    if not isinstance(curve, list):
        return None
    points = [tuple(point) for point in curve if isinstance(point, list) and len(point) == 2]
    low, high, best = (found.get(key) for key in ("low", "high", "n_categories"))
    numbers = all(isinstance(value, int) for value in (low, high, best))
    return line_panel(
        "How many categories",
        {"score": points},
        x_name="number of categories",
        band=(low, high) if numbers else None,  # type: ignore[arg-type]
        mark=best if numbers else None,
    )


def facts_of(contents: RunContents) -> Facts:
    """All that is known of how it came about, nothing interpreted."""
    settings = dict(contents.settings)
    groups = {
        "Method": settings.pop("method", {}),
        "Training": settings.pop("training", {}),
        "Backbone and views": settings.pop("trunk", {}),
    }
    spent = dict(contents.seconds)
    lengths = [row["seconds"] for row in contents.metrics if isinstance(row.get("seconds"), int | float)]
    if lengths:
        spent.setdefault("training", float(sum(lengths)))
    run = {
        "data": data_of(contents),
        "images": len(contents),
        **settings,
        **{f"time: {name}": duration(value) for name, value in spent.items()},
        "epochs done": len(contents.metrics) or None,
        "fingerprint": contents.config.get("fingerprint"),
    }
    return [
        (title, rows)
        for title, values in (("Run", run), ("Machine, versions, weights", contents.environment), *groups.items())
        if (rows := flatten(values))
    ]


def title_of(contents: RunContents) -> str:
    """The data's name, as a person would say it."""
    root, origin = contents.config.get("root"), str(contents.config.get("data") or "")
    if found := benchmark_of(origin):
        return BENCHMARKS[found[0]].title
    return PurePath(str(root) if root else origin).name or origin or "Newkind"


def data_of(contents: RunContents) -> str:
    """What was sorted, without where it lay."""
    origin = str(contents.config.get("data") or "")
    if found := benchmark_of(origin):
        return f"{BENCHMARKS[found[0]].title} ({found[0]})"
    path = PurePath(origin)
    # A table of the usual name says nothing by itself.
    return f"{path.parent.name}/{path.name}" if path.stem == "metadata" and path.parent.name else _unplaced(origin)


def flatten(values: Any) -> list[tuple[str, str]]:
    """Nested settings as names and texts; empty ones are left out."""
    found: list[tuple[str, str]] = []
    for key, value in values.items() if isinstance(values, dict) else ():
        name = printable(str(key)).replace("_", " ")
        if isinstance(value, dict):
            found += [(f"{name}: {inner}", text) for inner, text in flatten(value)]
        elif value is not None and value != "":
            found.append((name, _text(value)))
    return found


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return printable(f"{value:g}" if isinstance(value, float) else _unplaced(str(value)))


def _unplaced(text: str) -> str:
    """A path's last part: a report is mailed, and folders tell of people and machines. Other texts stay as they are."""
    return PLACE.sub("", text, count=1) if PLACE.match(text) else text
