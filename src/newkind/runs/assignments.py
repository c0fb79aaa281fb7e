"""The result: which category each image belongs to, and how sure that is."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind.errors import RunError
from newkind.runs.run import Run
from newkind.training.inference import Predictions

__all__ = [
    "COLUMNS",
    "Assignment",
    "Category",
    "assignments_csv",
    "assignments_of",
    "category_rows",
    "name_categories",
    "read_assignments",
]

COLUMNS = ("file", "category", "status", "confidence", "second", "second_confidence")


@dataclass(frozen=True)
class Category:
    """One prototype of the classifier, as people see it."""

    name: str
    status: str
    """known or new"""
    prototype: int
    n_images: int
    """Unlabelled images that were sorted into it; 0 for one that is not in use."""
    mean_confidence: float


@dataclass(frozen=True)
class Assignment:
    """A line of assignments.csv."""

    file: str
    category: str
    status: str
    """labelled (the label that was given), known or new."""
    confidence: float
    second: str
    second_confidence: float


def name_categories(
    known: tuple[str, ...], n_categories: int, best: NDArray[np.int64], confidence: NDArray[np.float32]
) -> list[Category]:
    """Known classes by their names, new ones as new-01, new-02, ... by size. best, confidence: (n,) of unlabelled images."""
    counts = np.bincount(best, minlength=n_categories)
    means = np.bincount(best, weights=confidence, minlength=n_categories) / np.maximum(counts, 1)
    new = sorted(range(len(known), n_categories), key=lambda k: (-counts[k], k))
    width = max(2, len(str(len(new))))
    taken, number, names = set(known), 0, {}
    for k in new:
        number += 1
        while f"new-{number:0{width}d}" in taken:
            number += 1
        names[k] = f"new-{number:0{width}d}"
    return [
        Category(
            name=known[k] if k < len(known) else names[k],
            status="known" if k < len(known) else "new",
            prototype=k,
            n_images=int(counts[k]),
            mean_confidence=round(float(means[k]), 4),
        )
        for k in range(n_categories)
    ]


def assignments_of(
    files: list[str], labels: NDArray[np.integer], categories: list[Category], predictions: Predictions
) -> list[Assignment]:
    """One line an image; a labelled image keeps its label, with the probability that the model gives to it."""
    lines = []
    for i, file in enumerate(files):
        best, second = int(predictions.best[i]), int(predictions.second[i])
        status, p, p2 = categories[best].status, predictions.best_probability[i], predictions.second_probability[i]
        if labels[i] >= 0:
            if best != labels[i]:  # the model would have said otherwise: that is the second opinion
                best, second, p, p2 = int(labels[i]), best, predictions.given_probability[i], p
            status = "labelled"
        lines.append(
            Assignment(
                file, categories[best].name, status, round(float(p), 4), categories[second].name, round(float(p2), 4)
            )
        )
    return lines


def assignments_csv(lines: list[Assignment], *, extra: dict[str, list[float]] | None = None) -> str:
    """CSV text with the columns of COLUMNS, and those of `extra` after them."""
    extra = extra or {}
    rows = [_csv_line([*COLUMNS, *extra])]
    for i, line in enumerate(lines):
        first = (
            line.file,
            line.category,
            line.status,
            f"{line.confidence:.4f}",
            line.second,
            f"{line.second_confidence:.4f}",
        )
        rows.append(_csv_line([*first, *(f"{column[i]:.4f}" for column in extra.values())]))
    return "".join(rows)


def _csv_line(cells: list[str]) -> str:
    """Written with the standard's line end, so that a carriage return inside a name is quoted, and ended with ours."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().removesuffix("\r\n") + "\n"


def read_assignments(run: Run) -> list[Assignment]:
    """The lines of a finished run."""
    try:
        with open(run.assignments_file, newline="", encoding="utf-8", errors="surrogateescape") as file:
            return [
                Assignment(
                    row["file"],
                    row["category"],
                    row["status"],
                    float(row["confidence"]),
                    row["second"],
                    float(row["second_confidence"]),
                )
                for row in csv.DictReader(file)
            ]
    except FileNotFoundError:
        raise RunError(
            f"{run.folder} is not finished: it has no assignments.csv.", fix="Run the same discover command again."
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{run.assignments_file} cannot be read ({error}).") from None


def category_rows(categories: list[Category]) -> dict[str, Any]:
    """For categories.json."""
    return {"categories": [asdict(category) for category in categories]}
