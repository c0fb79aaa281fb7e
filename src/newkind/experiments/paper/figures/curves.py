"""Scores as curves: over the steps of the ablation, epsilon, the number of categories, epochs."""

from __future__ import annotations

from collections.abc import Sequence
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
    Layout,
    colours_of,
    draw_by_data,
    whole_numbers,
)
from newkind.experiments.paper.results import Finished, epoch_rows
from newkind.experiments.spread import Spread

__all__ = ()


def _curve(panel: Axes, xs: Sequence[Any], spreads: Sequence[Spread | None], **style: Any) -> None:
    """Draw means with error bars; missing values are left out."""
    there = [(x, spread) for x, spread in zip(xs, spreads, strict=True) if spread is not None]
    if there:
        panel.errorbar(
            [x for x, _ in there],
            [spread.mean for _, spread in there],
            yerr=deviations([spread for _, spread in there]),
            **({"marker": "o", "elinewidth": 1} | style),
        )


def _parts_by_row(panel: Axes, title: str, lines: Sequence[Finished]) -> None:
    """Draw All, Old and New in one panel, with one tick per row."""
    for key, (part, colour) in PARTS.items():
        _curve(panel, range(len(lines)), [line.spread(key) for line in lines], color=colour, label=part)
    panel.set_xticks(range(len(lines)), [line.row.label for line in lines])
    panel.set_title(title)


def draw_ablation(name: str, finished: Sequence[Finished], out: Path) -> list[Path]:
    """All, Old and New after each step; published values are hollow."""

    def draw(panels: list[Axes], title: str, lines: list[Finished]) -> None:
        (panel,) = panels
        _parts_by_row(panel, title, lines)
        published = [(x, line.row.published) for x, line in enumerate(lines) if line.row.published]
        for x, scores in published:
            for value, (_, colour) in zip(scores, PARTS.values(), strict=True):
                panel.plot(x, value, "o", markerfacecolor="none", color=colour, markersize=6.5)
        if published:
            panel.plot([], [], "o", markerfacecolor="none", color=GREY, label="published")

    return draw_by_data(out / name, finished, draw, Layout())


def draw_epsilon(name: str, finished: Sequence[Finished], out: Path) -> list[Path]:
    """Accuracy by epsilon, and separate figures of the error kinds and of the distributions."""

    def draw(panels: list[Axes], title: str, lines: list[Finished]) -> None:
        _parts_by_row(panels[0], title, lines)
        panels[0].set_xlabel("epsilon (weight of the entropy term)")

    paths = draw_by_data(out / name, finished, draw, Layout())
    paths += draw_errors(f"{name}-errors", finished, out, prefix="epsilon ")
    return paths + draw_distribution(
        f"{name}-distribution", finished, out, label=lambda line: f"epsilon {line.row.label}", with_tail=False
    )


def draw_k(name: str, finished: Sequence[Finished], out: Path) -> list[Path]:
    """All, Old and New by K, one curve per method or epsilon, and a separate figure of the distributions."""

    def draw(panels: list[Axes], title: str, lines: list[Finished]) -> None:
        labels = list(dict.fromkeys(line.row.label for line in lines))
        for panel, (key, (part, _)) in zip(panels, PARTS.items(), strict=True):
            for j, label in enumerate(labels):
                own = [line for line in lines if line.row.label == label]
                xs = [line.row.n_categories and line.row.n_categories.number for line in own]
                _curve(panel, xs, [line.spread(key) for line in own], color=COLOURS[j % len(COLOURS)], label=label)
            panel.axvline(lines[0].data.n_classes, color=GREY, linestyle=":", linewidth=1.2, label="true K")
            panel.set(title=f"{title}: {part}", xlabel="K")

    paths = draw_by_data(out / name, finished, draw, Layout(columns=3, width=3.5, height=2.8))
    first = [line for line in finished if line.row.label == finished[0].row.label]
    return paths + draw_distribution(f"{name}-distribution", first, out, label=_factor, with_tail=False)


def _factor(line: Finished) -> str:
    """Label such as "1.25 x the true number", the same for every data."""
    return f"{str(line.row.values['factor']).partition(' ')[0]} x the true number"


def draw_epochs(name: str, finished: Sequence[Finished], out: Path) -> list[Path]:
    """Old and New over epochs on the left, New over Old on the right."""

    def draw(panels: list[Axes], title: str, lines: list[Finished]) -> None:
        left, right = panels
        for line, colour in zip(lines, colours_of(lines), strict=True):
            _over_epochs(left, line, colour, alone=len(lines) == 1)
            _old_and_new(right, line, colour)
        whole_numbers(left)
        left.set(title=title, xlabel="epoch")
        right.set(title=f"{title}: Old and New per epoch", xlabel="Old (%)", ylabel="New (%)")
        right.margins(0.15)

    return draw_by_data(out / name, finished, draw, Layout(columns=2, width=4.3, height=3.2))


def _over_epochs(panel: Axes, line: Finished, colour: str, *, alone: bool) -> None:
    """Draw means with a band for the deviation; a single method has the colours of Old and New."""
    rows = epoch_rows(line)
    for key, style in (("old", "-"), ("new", "--")):
        there = [(row["epoch"], row[key]) for row in rows if row[key] is not None]
        own = PARTS[key][1] if alone else colour
        epochs, means = [epoch for epoch, _ in there], np.array([spread.mean for _, spread in there])
        band = np.array([spread.std or 0.0 for _, spread in there])
        label = f"{line.row.label}, {key.title()}"
        panel.plot(epochs, means, color=own, linestyle="-" if alone else style, label=label)
        panel.fill_between(epochs, means - band, means + band, color=own, alpha=0.15, linewidth=0)


def _old_and_new(panel: Axes, line: Finished, colour: str) -> None:
    """Draw New over Old as one path through the epochs."""
    path = [(row["old"].mean, row["new"].mean) for row in epoch_rows(line) if row["old"] and row["new"]]
    if path:
        panel.plot(*zip(*path, strict=True), color=colour, marker="o", markersize=3, linewidth=1.2)
        panel.plot(*path[-1], "o", color=colour, markersize=8)
        panel.annotate("last epoch", path[-1], xytext=(7, 5), textcoords="offset points", fontsize=8)
