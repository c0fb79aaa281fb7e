"""Accuracy where true classes are known: scores, kinds of errors, every class, and the confusion matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind.errors import RunError
from newkind.evaluation import Accuracy, Matching, match
from newkind.report.calibration import read_share
from newkind.report.charts import Axes, Panel, Series, line_panel
from newkind.report.contents import RunContents
from newkind.report.images import RunImages
from newkind.report.matrix import MatrixLayout, matrix_layout

__all__ = [
    "AccuracyDetails",
    "ClassAccuracy",
    "ConfusedPair",
    "ConfusionCell",
    "ConfusionMatrix",
    "ErrorKind",
    "accuracy_details",
]

MAX_CELLS = 4000
MAX_PAIRS = 20
MAX_NAMED = 40  # A confusion matrix of more classes than this is drawn without their names.
ERRORS = (
    ("true_old", "Known → other known", "Images of a known class in the category of another known class."),
    ("false_new", "Known → new", "Images of a known class in a new category."),
    ("false_old", "New → known", "Images of a new class in a known category."),
    ("true_new", "New → other new", "Images of a new class in the category of another new class."),
)


@dataclass(frozen=True)
class ErrorKind:
    """A kind of error and its share of all scored images."""

    name: str
    meaning: str
    share: float


@dataclass(frozen=True)
class ClassAccuracy:
    """A true class; `number` is the category that it is matched to, or None."""

    name: str
    is_old: bool
    n_true: int
    n_predicted: int
    accuracy: float
    number: int | None


@dataclass(frozen=True)
class ConfusionCell:
    """Images of one class (row) in one category (column); `share` is their share of the class."""

    row: int
    column: int
    count: int
    share: float
    is_correct: bool


@dataclass(frozen=True)
class ConfusedPair:
    """Images of the class `true` in category `number`, which is matched to another class, or to none (None)."""

    true: str
    number: int
    matched: str | None
    count: int
    share: float


@dataclass(frozen=True)
class ConfusionMatrix:
    """True classes against categories.

    Parameters
    ----------
    rows : tuple of str
        True classes, the known ones first.
    n_old : int
        Number of known classes.
    columns : tuple of int
        Categories, in the order of the classes that they are matched to; unmatched ones at the end.
    column_names : tuple of str
        Names of these categories.
    n_old_columns : int
        Number of categories that are matched to known classes.
    cells : tuple of ConfusionCell
        Cells that are not empty, by decreasing share.
    pairs : tuple of ConfusedPair
        The most frequent errors.
    """

    rows: tuple[str, ...]
    n_old: int
    columns: tuple[int, ...]
    column_names: tuple[str, ...]
    n_old_columns: int
    cells: tuple[ConfusionCell, ...]
    pairs: tuple[ConfusedPair, ...]

    @property
    def is_named(self) -> bool:
        """Whether there is room for the names of classes and categories."""
        return max(len(self.rows), len(self.columns)) <= MAX_NAMED

    @property
    def layout(self) -> MatrixLayout:
        """Geometry of the matrix."""
        return matrix_layout(self.rows, self.column_names, is_named=self.is_named)


@dataclass(frozen=True, kw_only=True)
class AccuracyDetails:
    """Contents of the section "Accuracy".

    Parameters
    ----------
    n_samples, n_classes : int
        Scored images, and their true classes.
    accuracy, by_name : dict of str to float
        Accuracy under one matching, and with known classes under their own names; empty where unknown.
    errors : tuple of ErrorKind
        Shares of the four kinds of errors.
    nmi, ari : float or None
        Normalised mutual information, adjusted Rand index.
    classes : tuple of ClassAccuracy
        All classes, the least accurate first.
    distributions : tuple of Panel
        Sizes of classes and of categories.
    confusion : ConfusionMatrix or None
        None if the true class of each image is not at hand.
    """

    n_samples: int
    n_classes: int
    accuracy: dict[str, float]
    by_name: dict[str, float]
    errors: tuple[ErrorKind, ...]
    nmi: float | None
    ari: float | None
    classes: tuple[ClassAccuracy, ...]
    distributions: tuple[Panel, ...]
    confusion: ConfusionMatrix | None


def accuracy_details(contents: RunContents, images: RunImages) -> AccuracyDetails | None:
    """Collect the scores of a run and its confusion matrix; None if true classes are unknown."""
    if contents.scores is None:
        return None
    try:
        return _read(contents, images, contents.scores)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunError(
            f"{contents.run.scores_file} cannot be read ({error}).",
            code="scores-unreadable",
            file=contents.run.scores_file,
        ) from None


def _read(contents: RunContents, images: RunImages, scores: dict[str, Any]) -> AccuracyDetails:
    number = {category.prototype: k for k, category in enumerate(contents.categories)}
    classes = [
        ClassAccuracy(
            name=str(row["name"]),
            is_old=bool(row["is_old"]),
            n_true=int(row["n_true"]),
            n_predicted=int(row["n_predicted"]),
            accuracy=float(row["accuracy"]),
            number=number.get(row["cluster"]),
        )
        for row in scores["classes"]
    ]
    accuracy = _shares(scores["accuracy"])
    return AccuracyDetails(
        n_samples=int(scores["n_samples"]),
        n_classes=len(classes),
        accuracy=accuracy,
        by_name=_shares(scores.get("by_name") or {}),
        errors=tuple(ErrorKind(name, meaning, float(scores["errors"][key])) for key, name, meaning in ERRORS),
        nmi=read_share(scores.get("nmi")),
        ari=read_share(scores.get("ari"), least=-1.0),
        classes=tuple(sorted(classes, key=lambda c: c.accuracy)),
        distributions=tuple(_distributions(scores["distribution"])),
        confusion=_confusion(contents, images, accuracy.get("all")),
    )


def _shares(values: dict[str, Any]) -> dict[str, float]:
    return {key: share for key, value in values.items() if (share := read_share(value)) is not None}


def _distributions(found: dict[str, Any]) -> list[Panel]:
    """Sizes of true classes and of the categories matched to them, one panel for known and one for new classes."""
    panels = []
    for key, kind, title in (("old", "known", "Known classes (Old)"), ("new", "new", "New classes (New)")):
        true, predicted = (
            [(rank, float(share)) for rank, share in enumerate(found[f"{source}_{key}"], start=1)]
            for source in ("true", "predicted")
        )
        most = max((share for _, share in true + predicted), default=1.0)
        axes = Axes(x_name="classes, the largest first", percent=True, y_range=(0.0, most))
        series = [Series("true classes", true, "true"), Series("categories", predicted, kind)]
        panel = line_panel(title, series, axes)
        panels += [panel] if panel else []
    return panels


def _confusion(contents: RunContents, images: RunImages, expected: float | None) -> ConfusionMatrix | None:
    """Return None without true classes, or if those of the data are no longer the ones that were scored."""
    if images.truth is None:
        return None
    scored = contents.is_free & (images.truth >= 0)
    if not scored.any():
        return None
    true = images.truth[scored]
    matching = match(true, contents.category[scored], true < images.n_old)
    if expected is None or abs(Accuracy.of(matching).all - expected) > 1e-6:
        return None
    rows = np.argsort(~matching.is_old, kind="stable")  # known classes first
    own = matching.cluster_of_class[rows]  # -1 for a class that is matched to no category
    columns = np.concatenate([own[own >= 0], np.setdiff1d(np.arange(len(matching.clusters)), own)])
    numbers = tuple(int(matching.clusters[j]) for j in columns)
    names = [images.class_names[int(c)] for c in matching.classes]
    return ConfusionMatrix(
        rows=tuple(names[int(i)] for i in rows),
        n_old=int(matching.is_old.sum()),
        columns=numbers,
        column_names=tuple(contents.categories[k].name for k in numbers),
        n_old_columns=int((own[matching.is_old[rows]] >= 0).sum()),
        cells=_cells(matching, rows, columns),
        pairs=_confused_pairs(matching, names),
    )


def _cells(matching: Matching, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> tuple[ConfusionCell, ...]:
    """Cells with images, the largest shares first; at most `MAX_CELLS`."""
    own = matching.cluster_of_class[rows]
    counts = matching.counts[np.ix_(rows, columns)]
    shares = counts / matching.n_true[rows][:, None]
    found = np.argwhere(counts)
    found = found[np.argsort(-shares[tuple(found.T)], kind="stable")][:MAX_CELLS]
    return tuple(
        ConfusionCell(int(i), int(j), int(counts[i, j]), float(shares[i, j]), bool(own[i] == columns[j]))
        for i, j in found
    )


def _confused_pairs(matching: Matching, names: list[str]) -> tuple[ConfusedPair, ...]:
    class_of = {int(j): names[i] for i, j in enumerate(matching.cluster_of_class) if j >= 0}
    wrong = matching.counts.copy()
    paired = np.flatnonzero(matching.is_matched)
    wrong[paired, matching.cluster_of_class[paired]] = 0
    order = np.argsort(-wrong, axis=None, kind="stable")[:MAX_PAIRS]
    places = zip(*np.unravel_index(order, wrong.shape), strict=True)
    return tuple(
        ConfusedPair(
            true=names[int(i)],
            number=int(matching.clusters[j]),
            matched=class_of.get(int(j)),
            count=int(wrong[i, j]),
            share=float(wrong[i, j] / matching.n_true[i]),
        )
        for i, j in places
        if wrong[i, j]
    )
