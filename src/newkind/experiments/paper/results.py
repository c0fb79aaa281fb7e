"""From finished cells to the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from newkind.experiments.cells import BY_NAME, Cell, CellResult
from newkind.experiments.paper.dataset import BenchData
from newkind.experiments.paper.published import statistics_of
from newkind.experiments.paper.rows import Row
from newkind.experiments.spread import Spread, spread_of

__all__ = ["ERRORS", "Finished"]

ERRORS = {"true_old": "True Old", "false_new": "False New", "false_old": "False Old", "true_new": "True New"}
"""Kinds of errors and their column titles."""
ACCURACIES = ("all", "old", "new", "by_name_all", "by_name_old", "by_name_new")
PERCENT = (
    *ACCURACIES,
    *("all_balanced", "old_balanced", "new_balanced", "novelty_auroc", "calibration_error", "nmi", "ari"),
    *ERRORS,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
    """A row of a study on one data, with one cell per seed; none while the number of categories has to be estimated."""

    data: BenchData
    row: Row
    cells: tuple[Cell, ...]


@dataclass(frozen=True, eq=False)
class Finished:
    """A line with the results of its finished cells.

    Parameters
    ----------
    line : Line
        The line.
    results : list of CellResult
        Results of its finished cells.
    """

    line: Line
    results: list[CellResult]

    @property
    def data(self) -> BenchData:
        """Data of the line."""
        return self.line.data

    @property
    def row(self) -> Row:
        """Row of the line."""
        return self.line.row

    def spread(self, name: str) -> Spread | None:
        """A score over the seeds.

        Parameters
        ----------
        name : str
            Name of the score, as in `CellResult.score`.

        Returns
        -------
        Spread or None
            Shares are in percent. None if there is no value.
        """
        return spread_of((result.score(name) for result in self.results), times=100 if name in PERCENT else 1)

    def k(self) -> int | Spread | str | None:
        """Number of categories that was requested, or that the runs have in the end if it is estimated."""
        if self.row.is_open:
            return "to be estimated"
        if self.row.n_categories is None:
            return self.data.n_classes
        return self.row.n_categories.number if self.row.n_categories.rule == "fixed" else self.spread("n_categories")


def score_rows(found: Finished) -> list[dict[str, Any]]:
    """One table row with all scores."""
    row = _head(found) | {"k": found.k()} | {name: found.spread(name) for name in PERCENT}
    return [row | {"active": found.spread("n_active_clusters"), "published": found.row.published} | _tail(found)]


def distance_rows(found: Finished) -> list[dict[str, Any]]:
    """One table row with all scores, and the distance between predicted and true category sizes."""
    distances = [100 * _distance(result.scores()["distribution"]) for result in found.results]
    return [row | {"distance": spread_of(distances)} for row in score_rows(found)]


def _distance(distribution: dict[str, list[float]]) -> float:
    """Half the sum of absolute differences of the shares, both sorted by size: 0 for equal sizes, always below 1."""
    true = sorted(distribution["true_old"] + distribution["true_new"], reverse=True)
    predicted = sorted(distribution["predicted_old"] + distribution["predicted_new"], reverse=True)
    length = max(len(true), len(predicted))
    pairs = zip(true + [0.0] * (length - len(true)), predicted + [0.0] * (length - len(predicted)), strict=True)
    return sum(abs(a - b) for a, b in pairs) / 2


def epoch_rows(found: Finished) -> list[dict[str, Any]]:
    """One table row per epoch that was evaluated."""
    by_epoch: dict[int, list[dict[str, Any]]] = {}
    for result in found.results:
        for metrics in result.run.metrics():
            if "accuracy/all" in metrics:
                by_epoch.setdefault(int(metrics["epoch"]), []).append(metrics)
    return [
        _head(found)
        | {"epoch": epoch}
        | {name: spread_of((m.get(metric_name(name)) for m in rows), times=100) for name in ACCURACIES}
        | {"seeds": len(rows)}
        for epoch, rows in sorted(by_epoch.items())
    ]


def metric_name(score: str) -> str:
    """Key of an accuracy in metrics.jsonl: accuracy/all or by_name/all."""
    part = score.removeprefix(BY_NAME)
    return f"accuracy/{part}" if part == score else f"by_name/{part}"


def _head(found: Finished) -> dict[str, Any]:
    head = {"data": found.data.title, "method": found.row.method, "label": found.row.label}
    return head | dict(found.row.values)


def _tail(found: Finished) -> dict[str, Any]:
    return {
        "seeds": len(found.results),
        "seconds": fmean(result.seconds for result in found.results) if found.results else None,
        "runs": [result.name for result in found.results],
    }


def data_rows(datas: Sequence[BenchData]) -> list[dict[str, Any]]:
    """One table row per data with its numbers of images and classes; nothing is run."""
    found = []
    for data in datas:
        is_labelled = data.collection.catalog.is_labelled
        sizes = [int((data.truth.labels == k).sum()) for k in range(data.n_classes)]
        present = [size for size in sizes if size]
        unlabelled = data.truth.labels[~is_labelled]
        found.append(
            {
                "data": data.title,
                "label": data.title,
                "labelled_images": int(is_labelled.sum()),
                "labelled_classes": data.n_known,
                "unlabelled_images": int((~is_labelled).sum()),
                "unlabelled_classes": len({int(label) for label in unlabelled if label >= 0}),
                "imbalance": round(max(present) / min(present), 1) if present else None,
                "statistics": statistics_of(data.benchmark),
            }
        )
    return found
