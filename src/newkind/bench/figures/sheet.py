"""A sheet to draw on: panels in one style, saved as SVG and PNG. No window, no global state."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newkind.bench.results import Finished
from newkind.errors import ConfigError, RunError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "GREY", "PARTS", "Sheet", "by_data", "colour_of", "sheet"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C564B", "#F0E442")
"""Okabe and Ito's, which colour-blind people can tell apart."""
GREY = "#555555"
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
    "svg.hashsalt": "newkind",
}


@dataclass(frozen=True)
class Sheet:
    """One figure with panels in reading order."""

    figure: Figure
    panels: list[Axes]

    def legend(self, *, most: int = 6) -> None:
        """One for all panels, below them, each name once."""
        named: dict[str, Any] = {}
        for panel in self.panels:
            for handle, name in zip(*panel.get_legend_handles_labels(), strict=True):
                named.setdefault(name, handle)
        if named:
            self.figure.legend(
                list(named.values()), list(named), loc="outside lower center", ncols=min(len(named), most)
            )


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
    with rc_context(STYLE):
        figure = Figure(figsize=(width * n_columns, height * n_rows), layout="constrained")
        axes = figure.subplots(n_rows, n_columns, squeeze=False, subplot_kw={"projection": "polar"} if polar else None)
        yield Sheet(figure, [axis for line in axes for axis in line])
        for suffix, more in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": 160})):
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


def colour_of(found: Finished, i: int) -> str:
    """The method's own, or the i-th."""
    if not found.row.settings and found.row.method in METHOD_COLOURS:
        return METHOD_COLOURS[found.row.method]
    return COLOURS[i % len(COLOURS)]
