"""Where the truth is known: accuracy, kinds of errors, class by class, and what was taken for what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from newkind.errors import RunError
from newkind.evaluation import Accuracy, Matching, match
from newkind.report.charts import Panel, line_panel
from newkind.report.contents import RunContents
from newkind.report.headline import share
from newkind.report.images import Pictures

__all__ = ["Cell", "ClassLine", "Confusion", "ErrorKind", "Slip", "Verdict", "verdict_of"]

MAX_CELLS = 4000
MANY_SLIPS = 20
LABELLED_UP_TO = 40
"""A confusion matrix of more classes than this is drawn without their names."""
ERRORS = (
    ("true_old", "Old for another Old", "an image of a known class, taken for another known class"),
    ("false_new", "Old for New", "an image of a known class, taken for a new category"),
    ("false_old", "New for Old", "an image of a new class, taken for a known category"),
    ("true_new", "New for another New", "an image of a new class, taken for another new category"),
)


@dataclass(frozen=True)
class ErrorKind:
    name: str
    meaning: str
    share: float


@dataclass(frozen=True)
class ClassLine:
    """A true class and the category that was matched to it."""

    name: str
    is_old: bool
    n_true: int
    n_predicted: int
    accuracy: float
    number: int | None
    """The category."""


@dataclass(frozen=True)
class Cell:
    row: int
    column: int
    count: int
    share: float
    """Of the row."""
    right: bool
    """The category stands for the class."""


@dataclass(frozen=True)
class Slip:
    """Images of one class in a category that stands for another."""

    true: str
    number: int
    """The category."""
    matched: str | None
    """The class that the category stands for; None if it stands for none."""
    count: int
    share: float
    """Of the class."""


@dataclass(frozen=True)
class Confusion:
    rows: tuple[str, ...]
    """True classes, Old ones first."""
    n_old: int
    columns: tuple[int, ...]
    """Categories, each in the place of its class; those that stand for none at the end."""
    n_old_columns: int
    """So many of them stand for Old classes."""
    cells: tuple[Cell, ...]
    slips: tuple[Slip, ...]

    @property
    def named(self) -> bool:
        return max(len(self.rows), len(self.columns)) <= LABELLED_UP_TO


@dataclass(frozen=True, kw_only=True)
class Verdict:
    n_samples: int
    n_classes: int
    accuracy: dict[str, float]
    errors: tuple[ErrorKind, ...]
    nmi: float | None
    ari: float | None
    classes: tuple[ClassLine, ...]
    distributions: tuple[Panel, ...]
    confusion: Confusion | None
    """None if the truth of single images is not at hand."""


def verdict_of(contents: RunContents, pictures: Pictures) -> Verdict | None:
    """From scores.json; the confusion from the data's own truth. None for a run without truth."""
    scores = contents.scores
    if scores is None:
        return None
    try:
        return _read(contents, pictures, scores)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunError(f"{contents.run.scores_file} cannot be read ({error}).") from None


def _read(contents: RunContents, pictures: Pictures, scores: dict[str, Any]) -> Verdict:
    number = {category.prototype: k for k, category in enumerate(contents.categories)}
    lines = [
        ClassLine(
            str(row["name"]),
            bool(row["is_old"]),
            int(row["n_true"]),
            int(row["n_predicted"]),
            float(row["accuracy"]),
            number.get(row["cluster"]),
        )
        for row in scores["classes"]
    ]
    accuracy = {key: found for key, value in scores["accuracy"].items() if (found := share(value)) is not None}
    return Verdict(
        n_samples=int(scores["n_samples"]),
        n_classes=len(lines),
        accuracy=accuracy,
        errors=tuple(ErrorKind(name, meaning, float(scores["errors"][key])) for key, name, meaning in ERRORS),
        nmi=share(scores.get("nmi")),
        ari=share(scores.get("ari"), least=-1.0),
        classes=tuple(sorted(lines, key=lambda line: line.accuracy)),
        distributions=tuple(_distributions(scores["distribution"])),
        confusion=_confusion(contents, pictures, accuracy.get("all")),
    )


def _distributions(found: dict[str, Any]) -> list[Panel]:
    panels = []
    for kind, title in (("old", "Old classes"), ("new", "New classes")):
        series = {
            name: [(rank, float(value)) for rank, value in enumerate(found[f"{key}_{kind}"], start=1)]
            for name, key in (("true", "true"), ("sorted", "predicted"))
        }
        most = max((y for points in series.values() for _, y in points), default=1.0)
        panel = line_panel(title, series, x_name="classes, largest first", percent=True, y_range=(0.0, most))
        panels += [panel] if panel else []
    return panels


def _confusion(contents: RunContents, pictures: Pictures, expected: float | None) -> Confusion | None:
    """None without truth, or if the data's truth is no longer the one that the scores are of."""
    if pictures.truth is None:
        return None
    scored = contents.is_free & (pictures.truth >= 0)
    if not scored.any():
        return None
    true = pictures.truth[scored]
    matching = match(true, contents.category[scored], true < pictures.n_old)
    if expected is None or abs(Accuracy.of(matching).all - expected) > 1e-6:
        return None
    rows = np.argsort(~matching.is_old, kind="stable")  # Old first
    own = matching.cluster_of_class[rows]  # -1 for a class that has none
    columns = np.concatenate([own[own >= 0], np.setdiff1d(np.arange(len(matching.clusters)), own)])
    counts = matching.counts[np.ix_(rows, columns)]
    shares = counts / matching.n_true[rows][:, None]
    found = np.argwhere(counts)
    found = found[np.argsort(-shares[tuple(found.T)], kind="stable")][:MAX_CELLS]
    names = [pictures.class_names[int(c)] for c in matching.classes]
    return Confusion(
        rows=tuple(names[int(i)] for i in rows),
        n_old=int(matching.is_old.sum()),
        columns=tuple(int(matching.clusters[j]) for j in columns),
        n_old_columns=int((own[matching.is_old[rows]] >= 0).sum()),
        cells=tuple(
            Cell(int(i), int(j), int(counts[i, j]), float(shares[i, j]), bool(own[i] == columns[j])) for i, j in found
        ),
        slips=_slips(matching, names),
    )


def _slips(matching: Matching, names: list[str]) -> tuple[Slip, ...]:
    class_of = {int(j): names[i] for i, j in enumerate(matching.cluster_of_class) if j >= 0}
    wrong = matching.counts.copy()
    paired = np.flatnonzero(matching.is_matched)
    wrong[paired, matching.cluster_of_class[paired]] = 0
    order = np.argsort(-wrong, axis=None, kind="stable")[:MANY_SLIPS]
    places = zip(*np.unravel_index(order, wrong.shape), strict=True)
    return tuple(
        Slip(
            names[int(i)],
            int(matching.clusters[j]),
            class_of.get(int(j)),
            int(wrong[i, j]),
            float(wrong[i, j] / matching.n_true[i]),
        )
        for i, j in places
        if wrong[i, j]
    )
