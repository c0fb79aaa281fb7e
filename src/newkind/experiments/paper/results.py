"""From finished cells to the rows of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from newkind.experiments.cells import Cell, CellResult
from newkind.experiments.paper.dataset import BenchData
from newkind.experiments.paper.published import statistics_of
from newkind.experiments.paper.rows import Row
from newkind.experiments.spread import Spread, spread_of

__all__ = ["ERRORS", "Finished", "Line", "data_rows", "distance_rows", "epoch_rows", "score_rows"]

ERRORS = {"true_old": "True Old", "false_new": "False New", "false_old": "False Old", "true_new": "True New"}
PERCENT = ("all", "old", "new", "all_balanced", "old_balanced", "new_balanced", "nmi", "ari", *ERRORS)


@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
    """A row on one data, and its cells: one a seed, none as long as the number of categories is not known."""

    data: BenchData
    row: Row
    cells: tuple[Cell, ...]

    def words(self, *, with_data: bool) -> str:
        return f"{self.data.title}, {self.row.words()}" if with_data else self.row.words()


@dataclass(frozen=True, eq=False)
class Finished:
    """A line with those of its cells that are finished."""

    line: Line
    results: list[CellResult]

    @property
    def data(self) -> BenchData:
        return self.line.data

    @property
    def row(self) -> Row:
        return self.line.row

    def spread(self, name: str) -> Spread | None:
        """Of a score over the seeds, shares in percent."""
        return spread_of((result.score(name) for result in self.results), times=100 if name in PERCENT else 1)

    def k(self) -> int | Spread | str | None:
        """The number of categories that was asked for, or that the runs ended with."""
        if self.row.is_open:
            return "to be estimated"
        if self.row.n_categories == "auto":
            return self.spread("n_categories")
        return self.data.n_classes if self.row.n_categories is None else self.row.n_categories


def score_rows(found: Finished) -> list[dict[str, Any]]:
    """One row with all scores."""
    row = _head(found) | {"k": found.k()} | {name: found.spread(name) for name in PERCENT}
    return [row | {"active": found.spread("n_active_clusters"), "published": found.row.published} | _tail(found)]


def distance_rows(found: Finished) -> list[dict[str, Any]]:
    """Also how far the sizes of the found categories are from those of the true ones."""
    distances = [100 * _distance(result.scores()["distribution"]) for result in found.results]
    return [row | {"distance": spread_of(distances)} for row in score_rows(found)]


def _distance(distribution: dict[str, list[float]]) -> float:
    """Half the sum of the differences of both, each sorted by size: 0 for the same sizes, below 1 always."""
    true = sorted(distribution["true_old"] + distribution["true_new"], reverse=True)
    predicted = sorted(distribution["predicted_old"] + distribution["predicted_new"], reverse=True)
    length = max(len(true), len(predicted))
    pairs = zip(true + [0.0] * (length - len(true)), predicted + [0.0] * (length - len(predicted)), strict=True)
    return sum(abs(a - b) for a, b in pairs) / 2


def epoch_rows(found: Finished) -> list[dict[str, Any]]:
    """A row for each epoch that was scored."""
    by_epoch: dict[int, list[dict[str, Any]]] = {}
    for result in found.results:
        for metrics in result.run.metrics():
            if "accuracy/all" in metrics:
                by_epoch.setdefault(int(metrics["epoch"]), []).append(metrics)
    return [
        _head(found)
        | {"epoch": epoch}
        | {name: spread_of((m[f"accuracy/{name}"] for m in rows), times=100) for name in ("all", "old", "new")}
        | {"seeds": len(rows)}
        for epoch, rows in sorted(by_epoch.items())
    ]


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
    """How much of what each data has; nothing is run."""
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
