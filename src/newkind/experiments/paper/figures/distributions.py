"""Sizes of predicted categories beside those of the true classes, known and new apart; and what becomes of tail classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from newkind.experiments.cells import CellResult
from newkind.experiments.paper.figures.sheet import COLOURS, GREY, Axes, by_data, colours_of, sheet, whole_numbers
from newkind.experiments.paper.results import Finished

__all__ = ["draw_distribution"]

GROUPS = 10
"""Of classes, from those that GCD does best to those that it does worst."""


def draw_distribution(
    name: str,
    finished: Sequence[Finished],
    out: Path,
    *,
    label: Callable[[Finished], str] = lambda line: line.row.label,
    with_tail: bool = True,
) -> list[Path]:
    """Of each line's first seed. with_tail: rows are methods, and if GCD is there, a third panel shows the accuracy from its head
    to its tail classes."""
    groups = by_data(finished)
    paths: list[Path] = []
    tails = with_tail and any(line.row.method == "gcd" for lines in groups.values() for line in lines)
    n_columns = 3 if tails else 2
    if not groups:
        return paths
    with sheet(paths, out / name, n_columns, len(groups), width=4.0, height=3.0) as drawn:
        for i, (title, lines) in enumerate(groups.items()):
            panels = drawn.panels[n_columns * i : n_columns * (i + 1)]
            labels = [label(line) for line in lines]
            colours = colours_of(lines) if with_tail else [COLOURS[j % len(COLOURS)] for j in range(len(lines))]
            firsts = [min(line.results, key=lambda result: result.seed) for line in lines]
            for panel, part in zip(panels, ("old", "new"), strict=False):
                _sizes(panel, firsts, labels, colours, part)
                panel.set_title(f"{title}: {'known' if part == 'old' else 'new'} categories")
            panels[0].set_ylabel("share of all unlabelled images, %")
            if tails:
                _tail(panels[2], lines, firsts, labels, colours)
                panels[2].set_title(f"{title}: from head to tail")
        drawn.legend()
    return paths


def _sizes(
    panel: Axes, results: Sequence[CellResult], labels: Sequence[str], colours: Sequence[str], part: str
) -> None:
    found = [result.scores()["distribution"] for result in results]
    true = [100 * share for share in found[0][f"true_{part}"]]
    panel.plot(range(1, len(true) + 1), true, color=GREY, linestyle=":", label="the truth")
    for shares, label, colour in zip(found, labels, colours, strict=True):
        sizes = [100 * share for share in shares[f"predicted_{part}"]]
        panel.plot(range(1, len(sizes) + 1), sizes, color=colour, label=label, marker="." if len(sizes) < 4 else "")
    whole_numbers(panel)
    panel.set_xlabel("category, by size")
    panel.set_ylim(0, None)


def _tail(
    panel: Axes, lines: Sequence[Finished], results: Sequence[CellResult], labels: Sequence[str], colours: Sequence[str]
) -> None:
    """Mean accuracy of groups of classes in the order of GCD's own accuracy."""
    gcd = next((i for i, line in enumerate(lines) if line.row.method == "gcd"), None)
    if gcd is None:
        return
    accuracies = [_accuracies(result.scores()["classes"]) for result in results]
    order = sorted(accuracies[gcd], key=lambda label: -accuracies[gcd][label])
    groups = [group.tolist() for group in np.array_split(np.array(order), min(GROUPS, len(order)))]
    for own, label, colour in zip(accuracies, labels, colours, strict=True):
        means = [100 * float(np.mean([own[c] for c in group])) for group in groups]
        panel.plot(range(1, len(groups) + 1), means, color=colour, marker="o", label=label)
    panel.set_xlabel("classes, from GCD's best to its worst")
    panel.set_ylabel("accuracy, %")
    panel.set_ylim(0, None)
    panel.set_xticks(range(1, len(groups) + 1))


def _accuracies(classes: list[dict[str, Any]]) -> dict[str, float]:
    return {str(row["label"]): float(row["accuracy"]) for row in classes}
