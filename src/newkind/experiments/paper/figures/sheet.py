"""A sheet to draw on: panels in one style, saved as SVG and PNG. No window, no global state."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any, cast

from newkind.errors import ConfigError, RunError
from newkind.experiments.paper.results import Finished

__all__ = ["COLOURS", "GREY", "PARTS", "Axes", "Sheet", "by_data", "colours_of", "sheet", "whole_numbers"]

Axes = Any
"""A panel. matplotlib's own types differ from release to release."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C564B", "#F0E442")
"""Okabe and Ito's, which colour-blind people can tell apart."""
GREY = "#555555"
OTHER = "#0072B2"
PARTS = {"all": ("All", "#333333"), "old": ("Old", "#0072B2"), "new": ("New", "#D55E00")}
METHOD_COLOURS = {
    "kmeans": "#8C564B",
    "rankstats": "#E69F00",
    "uno": "#CC79A7",
    "orca": "#56B4E9",
    "debiaspl": "#B5A300",
    "gcd": "#009E73",
    "simgcd": "#D55E00",
}
STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 4.5,
    "errorbar.capsize": 2,
    "svg.hashsalt": "newkind",
}
FORMATS: dict[str, dict[str, Any]] = {"svg": {"metadata": {"Date": None}}, "png": {"dpi": 160}}


@dataclass(frozen=True)
class Sheet:
    """One figure with panels in reading order."""

    figure: Any
    panels: list[Axes]

    def legend(self) -> None:
        """One for all panels, below them, each name once; in as many columns as there is room for."""
        named: dict[str, Any] = {}
        for panel in self.panels:
            for handle, name in zip(*panel.get_legend_handles_labels(), strict=True):
                named.setdefault(name, handle)
        names = sorted(named, key=lambda name: name.startswith(("published", "the truth")))  # references come last
        if not names:
            return
        inches = 0.65 + 0.075 * max(map(len, names))
        n_rows = ceil(len(names) / max(int(self.figure.get_figwidth() / inches), 1))
        handles = [named[name] for name in names]
        self.figure.legend(handles, names, loc="outside lower center", ncols=ceil(len(names) / n_rows))


@contextmanager
def sheet(
    paths: list[Path],
    path: Path,
    n_columns: int,
    n_rows: int = 1,
    *,
    width: float = 4.0,
    height: float = 3.1,
    polar: bool = False,
) -> Iterator[Sheet]:
    """Panels to draw into; written as path.svg and path.png afterwards, which are added to `paths`."""
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError(
            "Figures need matplotlib, which is not installed; the tables are made.", fix="pip install 'newkind[plots]'"
        ) from None
    with rc_context(cast(Any, STYLE)):
        figure: Any = Figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
        axes = figure.subplots(n_rows, n_columns, squeeze=False, subplot_kw={"projection": "polar"} if polar else None)
        yield Sheet(figure, [axis for line in axes for axis in line])
        for suffix, more in FORMATS.items():
            content = io.BytesIO()
            figure.savefig(content, format=suffix, facecolor="white", **more)
            paths.append(_write(path.with_name(f"{path.name}.{suffix}"), content.getvalue()))


def _write(path: Path, content: bytes) -> Path:
    """Whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise RunError(f"{path} could not be written ({error.strerror}).") from None
    return path


def by_data(finished: Sequence[Finished]) -> dict[str, list[Finished]]:
    """The lines that have something to show, data by data."""
    found: dict[str, list[Finished]] = {}
    for line in finished:
        if line.results:
            found.setdefault(line.data.title, []).append(line)
    return found


def colours_of(lines: Sequence[Finished]) -> list[str]:
    """A method under its own defaults has its own colour everywhere; rows that differ by settings have others."""
    if all(line.row.settings for line in lines):
        return [COLOURS[i % len(COLOURS)] for i in range(len(lines))]
    return [OTHER if line.row.settings else METHOD_COLOURS.get(line.row.method, OTHER) for line in lines]


def whole_numbers(panel: Axes) -> None:
    """Ticks of the x axis for something that is counted."""
    from matplotlib.ticker import MaxNLocator

    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
