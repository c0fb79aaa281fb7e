"""Sizes of predicted and true categories, known and new separately, and the accuracy of tail classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from newkind.experiments.cells import CellResult
from newkind.experiments.paper.figures.sheet import COLOURS, GREY, Axes, Layout, colours_of, draw_by_data, whole_numbers
from newkind.experiments.paper.results import Finished

__all__ = ()

GROUPS = 10
"""Number of groups of classes, from those with the highest accuracy of GCD to those with the lowest."""
Curve = tuple[CellResult, dict[str, str]]
"""Result of a line's first seed, and the label and colour of its curve."""


def draw_distribution(
    name: str,
    finished: Sequence[Finished],
    out: Path,
    *,
    label: Callable[[Finished], str] = lambda line: line.row.label,
    with_tail: bool = True,
) -> list[Path]:
    """Category sizes of each line's first seed.

    `with_tail`: rows are methods, and if GCD is among them, a third panel shows the accuracy from head to tail classes of GCD.
    """
    tails = with_tail and any(line.row.method == "gcd" and line.results for line in finished)

    def draw(panels: list[Axes], title: str, lines: list[Finished]) -> None:
        colours = colours_of(lines) if with_tail else [COLOURS[j % len(COLOURS)] for j in range(len(lines))]
        firsts = [min(line.results, key=lambda result: result.seed) for line in lines]
        curves: list[Curve] = [
            (first, {"label": label(line), "color": colour})
            for first, line, colour in zip(firsts, lines, colours, strict=True)
        ]
        for panel, part in zip(panels, ("old", "new"), strict=False):
            _sizes(panel, curves, part)
            panel.set_title(f"{title}: {'known' if part == 'old' else 'new'} categories")
        if tails:
            _tail(panels[2], [line.row.method for line in lines], curves)
            panels[2].set_title(f"{title}: head to tail classes")

    layout = Layout(columns=3 if tails else 2, height=3.0, ylabel="share of all unlabelled images (%)")
    return draw_by_data(out / name, finished, draw, layout)


def _sizes(panel: Axes, curves: Sequence[Curve], part: str) -> None:
    """Draw the sorted sizes of true and predicted categories."""
    found = [(result.scores()["distribution"], style) for result, style in curves]
    true = [100 * share for share in found[0][0][f"true_{part}"]]
    panel.plot(range(1, len(true) + 1), true, color=GREY, linestyle=":", label="true classes")
    for shares, style in found:
        sizes = [100 * share for share in shares[f"predicted_{part}"]]
        panel.plot(range(1, len(sizes) + 1), sizes, marker="." if len(sizes) < 4 else "", **style)
    whole_numbers(panel)
    panel.set_xlabel("category, by size")
    panel.set_ylim(0, None)


def _tail(panel: Axes, methods: Sequence[str], curves: Sequence[Curve]) -> None:
    """Draw the mean accuracy of groups of classes, ordered by the accuracy of GCD."""
    if "gcd" not in methods:
        return
    accuracies = [_accuracies(result.scores()["classes"]) for result, _ in curves]
    gcd = accuracies[methods.index("gcd")]
    order = sorted(gcd, key=lambda label: -gcd[label])
    groups = [group.tolist() for group in np.array_split(np.array(order), min(GROUPS, len(order)))]
    for own, (_, style) in zip(accuracies, curves, strict=True):
        means = [100 * float(np.mean([own[c] for c in group])) for group in groups]
        panel.plot(range(1, len(groups) + 1), means, marker="o", **style)
    panel.set_xlabel("classes, from highest to lowest accuracy of GCD")
    panel.set_ylabel("accuracy (%)")
    panel.set_ylim(0, None)
    panel.set_xticks(range(1, len(groups) + 1))


def _accuracies(classes: list[dict[str, Any]]) -> dict[str, float]:
    return {str(row["label"]): float(row["accuracy"]) for row in classes}
