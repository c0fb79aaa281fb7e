"""How a run was made: metrics over the epochs, settings, machine and weights."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from newkind.data import printable
from newkind.progress import duration
from newkind.report.charts import Axes, Panel, Series, line_panel
from newkind.report.contents import RunContents
from newkind.report.images import benchmark_of

__all__ = ["SettingsTable", "data_name", "estimate_panel", "flatten", "metric_panels", "settings_tables", "title_of"]

ACTIVE = "active_prototypes"
TITLES = {
    "loss/total": "Total loss",
    "loss/infonce": "Contrastive loss (InfoNCE)",
    "loss/supcon": "Supervised contrastive loss",
    "loss/distil": "Self-distillation loss",
    "loss/entropy": "Entropy term",
    "loss/supervised": "Supervised loss (labelled images)",
    "learning_rate": "Learning rate",
    ACTIVE: "Categories in use",
}
ACCURACIES = {"Accuracy": "accuracy", "Accuracy by name": "by_name"}
PARTS = {"all": ("All", "all"), "old": ("Old", "known"), "new": ("New", "new")}
FOLDERS = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?[\\/](?:.*[\\/])?(?=[^\\/])", re.DOTALL)  # the folders of a path


@dataclass(frozen=True)
class SettingsTable:
    """A titled table of names and values."""

    title: str
    rows: list[tuple[str, str]]


def metric_panels(metrics: list[dict[str, Any]]) -> list[Panel]:
    """Charts of accuracy, of every loss term, and of all other numbers that a run wrote per epoch."""
    series: dict[str, list[tuple[Any, Any]]] = {}
    for row in metrics:
        for key, value in row.items():
            if key not in ("epoch", "seconds"):
                series.setdefault(key, []).append((row.get("epoch"), value))
    panels = []
    for title, group in ACCURACIES.items():
        keys = {f"{group}/{part}": shown for part, shown in PARTS.items()}
        lines = [Series(name, series.pop(key), kind) for key, (name, kind) in keys.items() if key in series]
        panels.append(line_panel(title, lines, Axes(percent=True)))
    order = sorted(series, key=lambda key: (key == "learning_rate", key != ACTIVE, key != "loss/total"))
    panels += [line_panel(_title(key), [Series(key, series[key])], Axes(whole=key == ACTIVE)) for key in order]
    # A number that was measured only once is no curve; it is shown elsewhere.
    return [panel for panel in panels if panel is not None and len(panel.x_ticks) > 1]


def _title(key: str) -> str:
    group, _, name = key.rpartition("/")
    words = name.replace("_", " ")
    return TITLES.get(key) or (f"{group.capitalize()}: {words}" if group else words.capitalize())


def estimate_panel(contents: RunContents) -> Panel | None:
    """Chart of the score per number of categories; None if the number was given."""
    found = contents.estimate or {}
    curve = found.get("curve")
    if not isinstance(curve, list):
        return None
    points = [(point[0], point[1]) for point in curve if isinstance(point, list) and len(point) == 2]
    low, high, best = (found.get(key) for key in ("low", "high", "n_categories"))
    series, axes = [Series("score", points)], Axes(x_name="number of categories")
    if isinstance(low, int) and isinstance(high, int) and isinstance(best, int):
        return line_panel("Estimated number of categories", series, axes, band=(low, high), mark=best)
    return line_panel("Estimated number of categories", series, axes)


def settings_tables(contents: RunContents) -> list[SettingsTable]:
    """Tables of everything that the run folder records about how the run was made."""
    settings = dict(contents.settings)
    groups = {
        "Method": settings.pop("method", {}),
        "Training": settings.pop("training", {}),
        "Backbone and views": settings.pop("backbone", None) or settings.pop("trunk", {}),
    }
    seconds = dict(contents.seconds)
    lengths = [row["seconds"] for row in contents.metrics if isinstance(row.get("seconds"), int | float)]
    if lengths:
        seconds.setdefault("training", float(sum(lengths)))
    asked, used = settings.pop("n_categories", None), contents.config.get("n_categories")
    run = {
        "data": data_name(contents),
        "images": len(contents),
        "number of categories": (asked if isinstance(asked, dict) else {}) | (used if isinstance(used, dict) else {}),
        **settings,
        **{f"time: {name}": duration(value) for name, value in seconds.items()},
        "epochs": len(contents.metrics) or None,
        "fingerprint": contents.config.get("fingerprint"),
    }
    titled = {"Run": run, "Machine, versions, weights": contents.environment, **groups}
    return [SettingsTable(title, rows) for title, values in titled.items() if (rows := flatten(values))]


def title_of(contents: RunContents) -> str:
    """Title of the page: the name of the data."""
    if benchmark := benchmark_of(contents.config):
        return benchmark.title
    root, origin = contents.config.get("root"), str(contents.config.get("data") or "")
    return PurePath(str(root) if root else origin).name or origin or "Newkind"


def data_name(contents: RunContents) -> str:
    """Name of the data without the folders above it."""
    if benchmark := benchmark_of(contents.config):
        return f"{benchmark.title} ({benchmark.name})"
    origin = str(contents.config.get("data") or "")
    path = PurePath(origin)
    # The usual name of a table says nothing by itself.
    return (
        f"{path.parent.name}/{path.name}" if path.stem == "metadata" and path.parent.name else _without_folders(origin)
    )


def flatten(values: Any) -> list[tuple[str, str]]:
    """Nested settings as pairs of name and text; empty values are left out."""
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
    return printable(f"{value:g}" if isinstance(value, float) else _without_folders(str(value)))


def _without_folders(text: str) -> str:
    """Last part of a path: reports are mailed, and folder names reveal users and machines. Other texts are unchanged."""
    return FOLDERS.sub("", text, count=1) if FOLDERS.match(text) else text
