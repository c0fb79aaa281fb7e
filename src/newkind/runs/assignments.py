"""Categories and assignments: which category each image belongs to, and with which confidence."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind.clustering.estimate import Estimate
from newkind.errors import RunError
from newkind.runs.assignments_record import check_recorded, write_recorded
from newkind.runs.formulas import warn_of_formulas
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
    "read_categories",
    "write_assignments",
]

COLUMNS = ("file", "category", "status", "confidence", "second", "second_confidence", "novelty", "outlier")


@dataclass(frozen=True)
class Category:
    """A known class or a discovered category.

    Parameters
    ----------
    name : str
        Name of the known class, or new-01, new-02, ... by size.
    status : {"known", "new"}
        Whether it is a known class.
    prototype : int
        Its index in the classifier.
    n_images : int
        Number of unlabelled images assigned to it; 0 for a category that is not in use.
    mean_confidence : float
        Mean confidence of these images.
    n_unsure : int, default=0
        Number of these images that are not confident enough.
    """

    name: str
    status: str
    prototype: int
    n_images: int
    mean_confidence: float
    n_unsure: int = 0


@dataclass(frozen=True)
class Assignment:
    """Category of one image; a line of assignments.csv.

    Parameters
    ----------
    file : str
        Name of the image.
    category : str
        Its category; empty for an image that cannot be read.
    status : {"labelled", "known", "new", "unsure", "unreadable"}
        Whether the category was given as a label, is a known class, is new, is less confident than asked for, or the image
        cannot be read.
    confidence : float
        Probability of the category.
    second : str
        Second most likely category; for a labelled image that the model would assign elsewhere, that category.
    second_confidence : float
        Its probability.
    novelty : float, optional
        Probability of all new categories together; None where it was not computed.
    outlier : bool, optional
        Whether the image fits no category; None where the method has no rule for it.
    """

    file: str
    category: str
    status: str
    confidence: float
    second: str
    second_confidence: float
    novelty: float | None = None
    outlier: bool | None = None


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


def assignments_csv(lines: Sequence[Assignment]) -> str:
    """CSV text with the columns of COLUMNS."""
    rows = ([_text(getattr(line, name)) for name in COLUMNS] for line in lines)
    return "".join(_csv_line(row) for row in [list(COLUMNS), *rows])


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return ("yes" if value else "no") if isinstance(value, bool) else f"{value:.4f}"


def _csv_line(cells: list[str]) -> str:
    """CSV line that ends with a newline; written with CRLF first, so that a carriage return inside a name is quoted."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().removesuffix("\r\n") + "\n"


def read_assignments(run: Run) -> list[Assignment]:
    """Assignments of a finished run. Runs of earlier versions have neither `novelty` nor `outlier`.

    Raises
    ------
    RunError
        With the code `not-finished`, `unreadable` or `incomplete`.
    """
    path = run.assignments_file
    try:
        content = path.read_bytes()
        with io.TextIOWrapper(io.BytesIO(content), newline="", encoding="utf-8", errors="surrogateescape") as file:
            found = [
                Assignment(
                    row["file"],
                    row["category"],
                    row["status"],
                    float(row["confidence"]),
                    row["second"],
                    float(row["second_confidence"]),
                    float(row["novelty"]) if row.get("novelty") else None,
                    row["outlier"] == "yes" if row.get("outlier") else None,
                )
                for row in csv.DictReader(file)
            ]
    except FileNotFoundError:
        raise RunError(
            f"{run.folder} is not finished: it has no {path.name}.",
            fix="Repeat the discover command that started it.",
            code="not-finished",
            folder=run.folder,
        ) from None
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        raise RunError(f"{path} cannot be read ({error}).", code="unreadable", file=path) from None
    check_recorded(run, content, n_rows=len(found))
    return found


def write_assignments(run: Run, lines: Sequence[Assignment]) -> None:
    """Write assignments.csv with its record in config.json."""
    warn_of_formulas(name for line in lines for name in (line.file, line.category))
    write_recorded(run, assignments_csv(lines), n_rows=len(lines))


def read_categories(run: Run) -> list[Category]:
    """Categories of a finished run."""
    try:
        return [Category(**row) for row in run.read_json(run.categories_file)["categories"]]
    except (KeyError, TypeError) as error:
        raise RunError(
            f"{run.categories_file} cannot be read ({error}).", code="unreadable", file=run.categories_file
        ) from None


def category_rows(categories: Sequence[Category], estimate: Estimate | None = None) -> dict[str, Any]:
    """Content of categories.json: the number of new categories in use, with its estimate and interval, and all categories."""
    found: dict[str, Any] = {"found": sum(c.status == "new" and c.n_images > 0 for c in categories)}
    if estimate is not None:
        found |= {
            name: max(value - estimate.n_known, 0)
            for name, value in {"estimate": estimate.n_categories, "low": estimate.low, "high": estimate.high}.items()
        }
    return {"n_new": found, "categories": [asdict(category) for category in categories]}
