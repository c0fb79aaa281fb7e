"""Scores along something: the steps of the ablation, epsilon, the number of categories, epochs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from newkind.experiments.paper.figures.bars import deviations, draw_errors
from newkind.experiments.paper.figures.distributions import draw_distribution
from newkind.experiments.paper.figures.sheet import (
    COLOURS,
    GREY,
    PARTS,
    Axes,
    by_data,
    colours_of,
    sheet,
    whole_numbers,
)
from newkind.experiments.paper.results import Finished, epoch_rows
from newkind.experiments.spread import Spread

__all__ = ["draw_ablation", "draw_epochs", "draw_epsilon", "draw_k"]


def _curve(panel: Axes, xs: Sequence[Any], spreads: Sequence[Spread | None], **how: Any) -> None:
    """Means with a bar for the deviation; what does not exist is left out."""
    there = [(x, spread) for x, spread in zip(xs, spreads, strict=True) if spread is not None]
    if there:
        panel.errorbar(
            [x for x, _ in there],
            [spread.mean for _, spread in there],
            yerr=deviations([spread for _, spread in there]),
            **({"marker": "o", "elinewidth": 1} | how),
        )


def _three_curves(panel: Axes, lines: Sequence[Finished], xs: Sequence[Any]) -> None:
    for key, (title, colour) in PARTS.items():
        _curve(panel, xs, [line.spread(key) for line in lines], color=colour, label=title)


def draw_ablation(name: str, finished: Sequence[Finished], out: Path) -> list[Path]:
    """All, Old and New after each step; published ends are hollow."""

    def draw(panel: Axes, lines: list[Finished]) -> None:
        xs = list(range(len(lines)))
        _three_curves(panel, lines, xs)
        published = [(x, line.row.published) for x, line in zip(xs, lines, strict=True) if line.row.published]
        for x, scores in published:
            for value, (_, colour) in zip(scores, PARTS.values(), strict=True):
                panel.plot(x, value, "o", markerfacecolor="none", color=colour, markersize=6.5)
        if published:
            panel.plot([], [], "o", markerfacecolor="none", color=GREY, label="published")
        panel.set_xticks(xs, [line.row.label for line in lines])

    return _panels(name, finished, out, draw)


def draw_epsilon(name: str, finished: Sequence[Finished], out: Path) -> list[Path]:
    """Accuracy against epsilon; the error kinds and the distributions in files of their own."""

    def draw(panel: Axes, lines: list[Finished]) -> None:
        _three_curves(panel, lines, list(range(len(lines))))
        panel.set_xticks(range(len(lines)), [line.row.label for line in lines])
        panel.set_xlabel("epsilon, the weight of the entropy term")

    paths = _panels(name, finished, out, draw)
    paths += draw_errors(f"{name}-errors", finished, out, prefix="epsilon ")
    return paths + draw_distribution(
        f"{name}-distribution", finished, out, label=lambda line: f"epsilon {line.row.label}", with_tail=False
    )


def draw_k(name: str, finished: Sequence[Finished], out: Path) -> list[Path]:
    """All, Old and New against K, a curve a method or an epsilon; the distributions in a file of their own."""
    groups = by_data(finished)
    paths: list[Path] = []
    if not groups:
        return paths
    with sheet(paths, out / name, 3, len(groups), width=3.5, height=2.8) as drawn:
        for i, (title, lines) in enumerate(groups.items()):
            labels = list(dict.fromkeys(line.row.label for line in lines))
            for panel, (key, (part, _)) in zip(drawn.panels[3 * i : 3 * i + 3], PARTS.items(), strict=True):
                for j, label in enumerate(labels):
                    own = [line for line in lines if line.row.label == label]
                    xs = [line.row.n_categories for line in own]
                    _curve(panel, xs, [line.spread(key) for line in own], color=COLOURS[j % len(COLOURS)], label=label)
                panel.axvline(lines[0].data.n_classes, color=GREY, linestyle=":", linewidth=1.2, label="the truth's K")
                panel.set_title(f"{title}: {part}")
                panel.set_xlabel("K")
            drawn.panels[3 * i].set_ylabel("accuracy, %")
        drawn.legend()
    first = [line for line in finished if line.row.label == finished[0].row.label]
    return paths + draw_distribution(f"{name}-distribution", first, out, label=_times, with_tail=False)


def _times(line: Finished) -> str:
    """1.25 x the truth's K; the same words for every data."""
    return f"{str(line.row.values['factor']).partition(' ')[0]} x the true number"


def draw_epochs(name: str, finished: Sequence[Finished], out: Path) -> list[Path]:
    """Left: Old and New over epochs. Right: the way that they take together."""
    groups = by_data(finished)
    paths: list[Path] = []
    if not groups:
        return paths
    with sheet(paths, out / name, 2, len(groups), width=4.3, height=3.2) as drawn:
        for i, (title, lines) in enumerate(groups.items()):
            left, right = drawn.panels[2 * i : 2 * i + 2]
            for line, colour in zip(lines, colours_of(lines), strict=True):
                _over_epochs(left, right, line, colour, alone=len(lines) == 1)
            whole_numbers(left)
            left.set(title=title, xlabel="epoch", ylabel="accuracy, %")
            right.set(title=f"{title}: Old against New, epoch by epoch", xlabel="Old, %", ylabel="New, %")
            right.margins(0.15)
        drawn.legend()
    return paths


def _over_epochs(left: Axes, right: Axes, line: Finished, colour: str, *, alone: bool) -> None:
    """Means with a band for the deviation; a method alone has the colours of Old and New."""
    rows = epoch_rows(line)
    for key, style in (("old", "-"), ("new", "--")):
        there = [(row["epoch"], row[key]) for row in rows if row[key] is not None]
        own = PARTS[key][1] if alone else colour
        epochs, means = [epoch for epoch, _ in there], np.array([spread.mean for _, spread in there])
        band = np.array([spread.std or 0.0 for _, spread in there])
        left.plot(epochs, means, color=own, linestyle="-" if alone else style, label=f"{line.row.label}, {key.title()}")
        left.fill_between(epochs, means - band, means + band, color=own, alpha=0.15, linewidth=0)
    way = [(row["old"].mean, row["new"].mean) for row in rows if row["old"] and row["new"]]
    if way:
        right.plot(*zip(*way, strict=True), color=colour, marker="o", markersize=3, linewidth=1.2)
        right.plot(*way[-1], "o", color=colour, markersize=8)
        right.annotate("last epoch", way[-1], xytext=(7, 5), textcoords="offset points", fontsize=8)


def _panels(
    name: str, finished: Sequence[Finished], out: Path, draw: Callable[[Axes, list[Finished]], None]
) -> list[Path]:
    """One panel a data."""
    groups = by_data(finished)
    paths: list[Path] = []
    if groups:
        with sheet(paths, out / name, len(groups)) as drawn:
            for panel, (title, lines) in zip(drawn.panels, groups.items(), strict=True):
                draw(panel, lines)
                panel.set_title(title)
            drawn.panels[0].set_ylabel("accuracy, %")
            drawn.legend()
    return paths
