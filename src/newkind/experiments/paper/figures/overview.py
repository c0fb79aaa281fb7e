"""Methods at a glance: a radar chart of their scores, and Old against New."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from newkind.experiments.paper.figures.sheet import GREY, Axes, Layout, by_data, colours_of, draw_by_data, sheet
from newkind.experiments.paper.results import Finished

__all__ = ()

ONE_DATA = {"all": "All", "old": "Old", "new": "New", "nmi": "NMI", "ari": "ARI"}


def draw_methods(name: str, finished: Sequence[Finished], out: Path) -> list[Path]:
    """Radar chart, and a separate figure of Old against New."""
    groups = by_data(finished)
    if not groups:
        return []
    paths: list[Path] = []
    lines = [line for group in groups.values() for line in group]
    axes = [(data, key) for data in groups for key in (("old", "new") if len(groups) > 1 else ONE_DATA)]
    angles = np.linspace(0, 2 * np.pi, len(axes), endpoint=False)
    with sheet(paths, out / name, 1, width=6.0, height=5.2, polar=True) as drawn:
        panel = drawn.panels[0]
        for label in dict.fromkeys(line.row.label for line in lines):
            own = {line.data.title: line for line in lines if line.row.label == label}
            spreads = [own[data].spread(key) if data in own else None for data, key in axes]
            values = [0.0 if spread is None else max(spread.mean, 0.0) for spread in spreads]
            colour = colours_of([next(iter(own.values()))])[0]
            closed = ([*angles, angles[0]], [*values, values[0]])
            panel.plot(*closed, color=colour, label=label, marker="o", markersize=3.5, linewidth=1.5)
        panel.set_xticks(angles, [f"{data}\n{key.title()}" if len(groups) > 1 else ONE_DATA[key] for data, key in axes])
        for text, angle in zip(panel.get_xticklabels(), angles, strict=True):
            across = np.sin(angle)
            text.set_horizontalalignment("center" if abs(across) < 0.1 else "left" if across > 0 else "right")
        panel.set_theta_offset(np.pi / 2)
        panel.set_theta_direction(-1)
        panel.set_ylim(0, None)
        panel.set_rlabel_position(180 / len(axes))
        panel.spines["polar"].set_color("#cccccc")
        panel.tick_params(axis="y", labelsize=7, labelcolor="#888888")
        drawn.legend()
    return paths + draw_tradeoff(f"{name}-tradeoff", finished, out)


def draw_tradeoff(name: str, finished: Sequence[Finished], out: Path) -> list[Path]:
    """Old against New: one point per method with its deviation; published values are hollow."""

    def draw(panels: list[Axes], title: str, lines: list[Finished]) -> None:
        (panel,) = panels
        for line, colour in zip(lines, colours_of(lines), strict=True):
            old, new = line.spread("old"), line.spread("new")
            if old is None or new is None:
                continue
            style = {"fmt": "o", "color": colour, "label": line.row.label, "elinewidth": 1}
            panel.errorbar(old.mean, new.mean, xerr=old.std, yerr=new.std, **style)
            if line.row.published is not None:
                panel.plot(*line.row.published[1:], "o", markerfacecolor="none", color=colour)
        if any(line.row.published for line in lines):
            panel.plot([], [], "o", markerfacecolor="none", color=GREY, label="published")
        panel.set(title=title, xlabel="Old (%)")
        panel.margins(0.12)

    return draw_by_data(out / name, finished, draw, Layout(width=4.2, height=4.0, ylabel="New (%)"))
