"""All that a run folder tells, read once and checked: what every part of the report is made from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind.errors import RunError
from newkind.runs.assignments import Category, read_assignments
from newkind.runs.run import Run

__all__ = ["KNOWN", "LABELLED", "NEW", "STATUSES", "Story", "read_story"]

STATUSES = ("labelled", "known", "new")
LABELLED = 0
KNOWN = 1
NEW = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Story:
    """A finished run: n images (lines of assignments.csv) in K categories."""

    run: Run
    files: list[str]
    """(n,), names as the run has them."""
    categories: list[Category]
    """(K,)"""
    category: NDArray[np.int32]
    """(n,), an index into `categories`."""
    second: NDArray[np.int32]
    """(n,), the second guess; for a labelled image that the model would sort elsewhere, where."""
    status: NDArray[np.uint8]
    """(n,), LABELLED, KNOWN or NEW."""
    confidence: NDArray[np.float32]
    second_confidence: NDArray[np.float32]
    features: NDArray[np.float16] | None
    """(n, d), on disk; None for a run that kept none."""
    config: dict[str, Any]
    environment: dict[str, Any]
    metrics: list[dict[str, Any]]
    scores: dict[str, Any] | None
    """Of scores.json; None without truth."""
    estimate: dict[str, Any] | None
    """Of estimate-k.json, if the number of categories was found out."""

    def __len__(self) -> int:
        return len(self.files)

    @cached_property
    def is_free(self) -> NDArray[np.bool_]:
        """(n,): not labelled."""
        return np.not_equal(self.status, LABELLED)

    @cached_property
    def members(self) -> list[NDArray[np.int64]]:
        """Of each category, the lines of all its images, labelled ones too."""
        order = np.argsort(self.category, kind="stable")
        ends = np.cumsum(np.bincount(self.category, minlength=len(self.categories)))
        return np.split(order, ends[:-1])

    @cached_property
    def shown(self) -> list[int]:
        """Categories that hold an image: new ones first, then known ones, the largest first."""
        used = [k for k, lines in enumerate(self.members) if len(lines)]
        return sorted(
            used,
            key=lambda k: (self.categories[k].status != "new", -self.categories[k].n_images, self.categories[k].name),
        )

    @property
    def settings(self) -> dict[str, Any]:
        """What `discover` was asked to do, in groups."""
        found = self.config.get("config")
        return found if isinstance(found, dict) else {}


def read_story(run: Run) -> Story:
    """Everything of a finished run; RunError if it is not finished, or if its parts do not belong together."""
    config = run.config()
    lines = read_assignments(run)
    categories = _read_categories(run)
    number = {category.name: k for k, category in enumerate(categories)}
    try:
        category = np.fromiter((number[line.category] for line in lines), np.int32, len(lines))
        second = np.fromiter((number[line.second] for line in lines), np.int32, len(lines))
        status = np.fromiter((STATUSES.index(line.status) for line in lines), np.uint8, len(lines))
    except (KeyError, ValueError) as error:
        raise RunError(
            f"{run.assignments_file} speaks of {error}, which {run.categories_file.name} does not have.",
            fix="The two files must be of the same run; run discover again.",
        ) from None
    confidence = np.nan_to_num(np.fromiter((line.confidence for line in lines), np.float32, len(lines)))
    second_confidence = np.nan_to_num(np.fromiter((line.second_confidence for line in lines), np.float32, len(lines)))
    features = run.features()
    return Story(
        run=run,
        files=[line.file for line in lines],
        categories=categories,
        category=category,
        second=second,
        status=status,
        confidence=confidence.clip(0, 1),
        second_confidence=second_confidence.clip(0, 1),
        features=features if features is not None and len(features) == len(lines) else None,
        config=config,
        environment=_read(run, "environment_file") or {},
        metrics=[row for row in run.metrics() if isinstance(row, dict)],
        scores=_read(run, "scores_file"),
        estimate=_read(run, "estimate_file"),
    )


def _read_categories(run: Run) -> list[Category]:
    try:
        found = [Category(**row) for row in run.read_json(run.categories_file)["categories"]]
        if all(isinstance(c.name, str) and c.n_images >= 0 and 0 <= c.mean_confidence <= 1.01 for c in found):
            return found
    except (KeyError, TypeError) as error:
        raise RunError(f"{run.categories_file} cannot be read ({error}).") from None
    raise RunError(f"{run.categories_file} holds values that no run writes.")


def _read(run: Run, name: str) -> dict[str, Any] | None:
    """A file that a run may lack."""
    path = getattr(run, name)
    return run.read_json(path) if path.exists() else None
