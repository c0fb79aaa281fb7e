"""Categories and assignments: which category each image belongs to, and with which confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from newkind.clustering.estimate import Estimate
from newkind.runs.assignment import COLUMNS, Assignment, Category, assignments_csv
from newkind.runs.assignments_record import write_recorded
from newkind.runs.current_answer import current_answer
from newkind.runs.formulas import warn_of_formulas
from newkind.runs.run import Run

if TYPE_CHECKING:
    from newkind.runs.metadata import RunMetadata
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
    "read_categories",
    "write_assignments",
]


def name_categories(
    known: Sequence[str],
    n_categories: int,
    best: NDArray[np.int64],
    confidence: NDArray[np.float32],
    *,
    min_confidence: float = 0.0,
) -> list[Category]:
    """Name the categories: known classes by their names, new ones new-01, new-02, ... by size.

    Parameters
    ----------
    known : sequence of str
        Names of the known classes.
    n_categories : int
        Number of categories K, known and new together.
    best : ndarray of int64, shape (n,)
        Category of each unlabelled image.
    confidence : ndarray of float32, shape (n,)
        Its probability.
    min_confidence : float, default=0.0
        Images with a lower confidence are counted as unsure.

    Returns
    -------
    list of Category
        In the order of the classifier's prototypes.
    """
    counts = np.bincount(best, minlength=n_categories)
    unsure = np.bincount(best[confidence < min_confidence], minlength=n_categories)
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
            n_unsure=int(unsure[k]),
            id=known[k] if k < len(known) else names[k],
            prototypes=(k,),
        )
        for k in range(n_categories)
    ]


def assignments_of(
    files: Sequence[str],
    labels: NDArray[np.integer],
    categories: Sequence[Category],
    predictions: Predictions,
    *,
    min_confidence: float = 0.0,
) -> list[Assignment]:
    """One assignment per image.

    Parameters
    ----------
    files : sequence of str, of length n
        Names of the images.
    labels : ndarray of int, shape (n,)
        Given labels, -1 for unlabelled. A labelled image keeps its label, with the probability the model gives to it.
    categories : sequence of Category
        All categories.
    predictions : Predictions
        Of the n images.
    min_confidence : float, default=0.0
        Unlabelled images with a lower confidence get the status `unsure`; their categories stay.

    Returns
    -------
    list of Assignment
    """
    lines = []
    for i, file in enumerate(files):
        best, second = int(predictions.best[i]), int(predictions.second[i])
        status, p, p2 = categories[best].status, predictions.best_probability[i], predictions.second_probability[i]
        if labels[i] >= 0:
            if best != labels[i]:  # the model disagrees: its own answer becomes the second category
                best, second, p, p2 = int(labels[i]), best, predictions.given_probability[i], p
            status = "labelled"
        elif p < min_confidence:
            status = "unsure"
        lines.append(
            Assignment(
                file=file,
                category=categories[best].name,
                status=status,
                confidence=round(float(p), 4),
                second=categories[second].name,
                second_confidence=round(float(p2), 4),
                novelty=round(float(predictions.novelty[i]), 4),
                outlier=None if predictions.outlier is None else bool(predictions.outlier[i]),
            )
        )
    return lines


def read_assignments(run: Run) -> list[Assignment]:
    """Assignments of a finished run, with all decisions. Runs of earlier versions have neither `novelty` nor `outlier`.

    Raises
    ------
    RunError
        With the code `not-finished`, `unreadable`, `assignments-mismatch` or `incomplete`.
    """
    return current_answer(run).assignments()


def write_assignments(run: Run, lines: Sequence[Assignment], metadata: RunMetadata | None = None) -> None:
    """Write the model's answer as assignments.csv, with metadata of the images, and its record in config.json."""
    warn_of_formulas(name for line in lines for name in (line.file, line.category))
    write_recorded(run, run.assignments_file, assignments_csv(lines, metadata), n_rows=len(lines))


def read_categories(run: Run) -> list[Category]:
    """Categories of a finished run, with all decisions."""
    return current_answer(run).list_categories()


def category_rows(categories: Sequence[Category], estimate: Estimate | None = None) -> dict[str, Any]:
    """Content of categories.json: the number of new categories in use, with its estimate and interval, and all categories."""
    found: dict[str, Any] = {"found": sum(c.status == "new" and c.n_images > 0 for c in categories)}
    if estimate is not None:
        found |= {
            name: max(value - estimate.n_known, 0)
            for name, value in {"estimate": estimate.n_categories, "low": estimate.low, "high": estimate.high}.items()
        }
    return {"n_new": found, "categories": [asdict(category) for category in categories]}
