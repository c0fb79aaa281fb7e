"""Figures in one style, saved as SVG and PNG, without a window and without global state."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any, cast

from newkind.atomic import write_bytes
from newkind.errors import ConfigError
from newkind.experiments.paper.results import Finished

__all__ = ()

Axes = Any
"""A panel. The types of matplotlib differ between its releases."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C564B", "#F0E442")
"""Palette of Okabe and Ito, for people with and without colour blindness."""
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
    "modern": "#0072B2",
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


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Panels of a figure.

    Parameters
    ----------
    columns : int or None, default=None
        Number of panels per data, each data in a row of its own. Default: one panel per data, all in one row.
    width, height : float
        Size of a panel in inches.
    ylabel : str, default="accuracy (%)"
        Label of the y axis of the first panel of each row.
    """

    columns: int | None = None
    width: float = 4.0
    height: float = 3.1
    ylabel: str = "accuracy (%)"


@dataclass(frozen=True)
class Sheet:
    """One figure.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        The figure.
    panels : list of matplotlib.axes.Axes
        Its panels in reading order.
    """

    figure: Any
    panels: list[Axes]

    def legend(self) -> None:
        """Draw one legend for all panels below them, with each name once, in as many columns as fit."""
        named: dict[str, Any] = {}
        for panel in self.panels:
            for handle, name in zip(*panel.get_legend_handles_labels(), strict=True):
                named.setdefault(name, handle)
        names = sorted(named, key=lambda name: name.startswith(("published", "true ")))  # references come last
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
    """Figure to draw into; when the context is closed, it is written and its files are appended to `paths`.

    `path` is a file without suffix; `width` and `height` are those of a panel in inches.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError(
            "Figures need matplotlib, which is not installed. The tables are written.",
            fix="pip install 'newkind[plots]'",
            code="no-matplotlib",
        ) from None
    with rc_context(cast(Any, STYLE)):
        figure: Any = Figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
        axes = figure.subplots(n_rows, n_columns, squeeze=False, subplot_kw={"projection": "polar"} if polar else None)
        yield Sheet(figure, [axis for line in axes for axis in line])
        for suffix, more in FORMATS.items():
            content = io.BytesIO()
            figure.savefig(content, format=suffix, facecolor="white", **more)
            paths.append(path.with_name(f"{path.name}.{suffix}"))
            write_bytes(paths[-1], content.getvalue())


def draw_by_data(
    path: Path,
    finished: Sequence[Finished],
    draw: Callable[[list[Axes], str, list[Finished]], None],
    layout: Layout,
) -> list[Path]:
    """Figure with the panels of every data and one legend; its files, or none if there is nothing to draw.

    `path` is a file without suffix; `draw` gets (panels, title, lines) of one data.
    """
    paths: list[Path] = []
    groups = by_data(finished)
    if not groups:
        return paths
    per_data = layout.columns or 1
    n_columns, n_rows = (layout.columns, len(groups)) if layout.columns else (len(groups), 1)
    with sheet(paths, path, n_columns, n_rows, width=layout.width, height=layout.height) as drawn:
        for i, (title, lines) in enumerate(groups.items()):
            draw(drawn.panels[per_data * i : per_data * (i + 1)], title, lines)
        for first in drawn.panels[:: len(drawn.panels) // n_rows]:
            first.set_ylabel(layout.ylabel)
        drawn.legend()
    return paths


def by_data(finished: Sequence[Finished]) -> dict[str, list[Finished]]:
    """Lines with at least one result, by title of the data."""
    found: dict[str, list[Finished]] = {}
    for line in finished:
        if line.results:
            found.setdefault(line.data.title, []).append(line)
    return found


def colours_of(lines: Sequence[Finished]) -> list[str]:
    """Colour per line: of the method, if it has its default settings; rows that differ by settings have others."""
    if all(line.row.settings for line in lines):
        return [COLOURS[i % len(COLOURS)] for i in range(len(lines))]
    return [OTHER if line.row.settings else METHOD_COLOURS.get(line.row.method, OTHER) for line in lines]


def whole_numbers(panel: Axes) -> None:
    """Put ticks of the x axis at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    panel.xaxis.set_major_locator(MaxNLocator(integer=True))
