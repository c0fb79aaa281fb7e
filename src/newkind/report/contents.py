"""Contents of a finished run, checked once: the input of every part of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from newkind.errors import RunError
from newkind.runs.answer import APPROVED
from newkind.runs.assignments import Assignment, Category
from newkind.runs.current_answer import current_answer
from newkind.runs.decision_log import DecisionLog
from newkind.runs.metadata import RunMetadata, read_metadata
from newkind.runs.replay import effective
from newkind.runs.run import Run
from newkind.runs.run_schemas import ContinuedFile

if TYPE_CHECKING:
    from newkind.pipeline.results import Outcome

__all__ = [
    "KNOWN",
    "LABELLED",
    "NEW",
    "STATUSES",
    "UNSURE",
    "RunContents",
    "contents_of",
    "outcome_contents",
    "read_contents",
]

STATUSES = ("labelled", "known", "new", "unsure")
LABELLED = 0
KNOWN = 1
NEW = 2
UNSURE = 3
LARGEST_HALF = 65504.0
ROWS = 65_536  # Features that are converted at a time.


@dataclass(frozen=True, kw_only=True, eq=False)
class RunContents:
    """Results of a finished run: n images (rows of assignments.csv) in K categories.

    Build it with `read_contents` (from a run folder) or with `contents_of` (from results in memory).

    Parameters
    ----------
    run : Run
        The run folder.
    files : list of str, length n
        Names of the images, as in assignments.csv.
    categories : list of Category, length K
        All categories, also those without images.
    category : ndarray of int32, shape (n,)
        Index of each image's category in `categories`.
    second : ndarray of int32, shape (n,)
        Index of the second most probable category. For a labelled image that the model assigns to another category
        than its label, that category.
    status : ndarray of uint8, shape (n,)
        `LABELLED`, `KNOWN`, `NEW` or `UNSURE`.
    confidence : ndarray of float32, shape (n,)
        Probability of `category`, between 0 and 1.
    second_confidence : ndarray of float32, shape (n,)
        Probability of `second`, between 0 and 1.
    outlier : ndarray of bool, shape (n,), or None
        Whether each image fits no category. None if the method has no rule for it.
    features : ndarray of float16, shape (n, d), or None
        Features of the images. None if the run kept none.
    config : dict
        Contents of config.json.
    environment : dict
        Contents of environment.json; empty if the run has none.
    metrics : list of dict
        One dict per epoch, from metrics.jsonl.
    scores : dict or None
        Contents of scores.json; None without true classes.
    estimate : dict or None
        Contents of estimate-k.json; None if the number of categories is that of the truth.
    calibration : dict
        Entry `confidence` of model.json; empty for runs of earlier versions.
    seconds : dict of str to float, default={}
        Duration of each stage of the run, if known.
    n_decisions : int, default=0
        Number of decisions that are part of the answer.
    n_left_out : int, default=0
        Number of images that are not among the n because they are junk or have no category.
    metadata : RunMetadata, default=RunMetadata()
        Further columns of the data, by file.
    digests : list of bytes, length n, or None, default=None
        Digests of the images' contents. None for older runs and for runs from features.
    is_added : ndarray of bool, shape (n,), or None, default=None
        Whether each image is new since the run that this one continues. None if it continues none.
    """

    run: Run
    files: list[str]
    categories: list[Category]
    category: NDArray[np.int32]
    second: NDArray[np.int32]
    status: NDArray[np.uint8]
    confidence: NDArray[np.float32]
    second_confidence: NDArray[np.float32]
    outlier: NDArray[np.bool_] | None
    features: NDArray[np.float16] | None
    config: dict[str, Any]
    environment: dict[str, Any]
    metrics: list[dict[str, Any]]
    scores: dict[str, Any] | None
    estimate: dict[str, Any] | None
    calibration: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    n_decisions: int = 0
    n_left_out: int = 0
    metadata: RunMetadata = field(default_factory=RunMetadata)
    digests: list[bytes] | None = None
    is_added: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        """Return the number of images."""
        return len(self.files)

    @cached_property
    def is_free(self) -> NDArray[np.bool_]:
        """Whether each image is unlabelled, shape (n,)."""
        return np.not_equal(self.status, LABELLED)

    @cached_property
    def members(self) -> list[NDArray[np.int64]]:
        """Row numbers of the images of each category, including labelled ones; length K."""
        order = np.argsort(self.category, kind="stable")
        ends = np.cumsum(np.bincount(self.category, minlength=len(self.categories)))
        return np.split(order, ends[:-1])

    @cached_property
    def shown(self) -> list[int]:
        """Categories that contain images: new ones first, then known ones, each sorted by decreasing size."""
        used = [k for k, lines in enumerate(self.members) if len(lines)]
        return sorted(
            used,
            key=lambda k: (self.categories[k].status != "new", -self.categories[k].n_images, self.categories[k].name),
        )

    @property
    def min_confidence(self) -> float:
        """Confidence below which images are unsure; 0 if none are."""
        found = self.settings.get("min_confidence")
        return float(found) if isinstance(found, int | float) else 0.0

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of `discover`, in groups."""
        found = self.config.get("config")
        return found if isinstance(found, dict) else {}


def contents_of(
    run: Run,
    *,
    assignments: Sequence[Assignment],
    categories: Sequence[Category],
    features: NDArray[np.floating[Any]] | None = None,
    scores: dict[str, Any] | None = None,
    seconds: Mapping[str, float] | None = None,
) -> RunContents:
    """Contents of a run whose results are in memory, without reading assignments.csv, features.npy or scores.json.

    Configuration, environment, metrics and the estimated number of categories come from the run folder.

    Parameters
    ----------
    run : Run
        The run folder. config.json must exist.
    assignments : sequence of Assignment, length n
        One entry per image.
    categories : sequence of Category, length K
        All categories; every category that `assignments` names is among them.
    features : ndarray of float, shape (n, d), default=None
        Features in the order of `assignments`, kept in half precision. Ignored if the number of rows is not n.
    scores, seconds : mapping, default=None
        `Evaluation.to_dict()`, as written to scores.json, if true classes are known; duration of each stage of the run.

    Returns
    -------
    RunContents

    Raises
    ------
    RunError
        If an assignment names an unknown category or status.
    """
    n_all, kept = len(assignments), np.array([bool(row.category) for row in assignments], dtype=bool)
    assignments = [row for row in assignments if row.category]
    category, second, status = _numbers(run, assignments, categories)
    return RunContents(
        run=run,
        files=[row.file for row in assignments],
        categories=list(categories),
        category=category,
        second=second,
        status=status,
        confidence=_probabilities([row.confidence for row in assignments]),
        second_confidence=_probabilities([row.second_confidence for row in assignments]),
        outlier=_flags([row.outlier for row in assignments]),
        features=None if features is None or len(features) != n_all else _half(features, kept),
        scores=scores,
        seconds=dict(seconds or {}),
        n_left_out=n_all - len(assignments),
        metadata=read_metadata(run),
        **_from_folder(run, kept),
    )


def _from_folder(run: Run, kept: NDArray[np.bool_]) -> dict[str, Any]:
    """Fields that are read from the run folder; `kept` (n,) are the images that are part of the contents."""
    return {
        "config": run.config(),
        "environment": _read_if_present(run, run.environment_file) or {},
        "metrics": _metrics(run),
        "estimate": _read_if_present(run, run.estimate_file),
        "calibration": _calibration(run),
        "digests": _kept_digests(run, kept),
        "is_added": _added(run, kept),
    }


def _kept_digests(run: Run, kept: NDArray[np.bool_]) -> list[bytes] | None:
    """Digests of the images that are kept, of those (n,) of a run; None if they are not those of the run."""
    found = run.digests()
    if found is None or len(found) != len(kept):
        return None
    return [digest for digest, is_kept in zip(found, kept.tolist(), strict=True) if is_kept]


def _added(run: Run, kept: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Which of the images that are kept, of those (n,) of a run, are new since the run that it continues."""
    if not run.continued_file.exists():
        return None
    rows = run.read_json(run.continued_file, ContinuedFile)["new_rows"]
    found = np.zeros(len(kept), dtype=bool)
    found[[row for row in rows if 0 <= row < len(kept)]] = True
    return found[kept]


def _metrics(run: Run) -> list[dict[str, Any]]:
    """Metrics per epoch; a first answer has none, those in the folder are of a training that has not ended."""
    return [] if run.answer == "first" else [row for row in run.metrics() if isinstance(row, dict)]


def outcome_contents(outcome: Outcome) -> RunContents:
    """Contents of a discovery that has just finished, from its results in memory.

    A repeated discovery may have decisions; then its contents are those of the run folder.

    Parameters
    ----------
    outcome : Outcome
        Result of `newkind.pipeline.discover.discover`.

    Returns
    -------
    RunContents
    """
    if DecisionLog(outcome.run.folder).last:
        return replace(read_contents(outcome.run), seconds=outcome.seconds)
    return contents_of(
        outcome.run,
        assignments=outcome.assignments,
        categories=outcome.categories,
        features=outcome.run.features(),
        scores=outcome.evaluation.to_dict() if outcome.evaluation else None,
        seconds=outcome.seconds,
    )


def read_contents(run: Run) -> RunContents:
    """Contents of a finished run, from its folder; RunError if its files are missing, damaged or of different runs.

    After decisions, scores.json is not that of the current answer; it is left out.
    """
    answer = current_answer(run)
    n_decisions = len(effective(DecisionLog(run.folder).events(), notes=False))
    # Scores name clusters by number, so that categories need numbers after merges and splits, too.
    categories = [replace(category, prototype=k) for k, category in enumerate(answer.list_categories())]
    found = contents_of(
        run,
        assignments=answer.assignments(),
        categories=categories,
        features=run.features(),
        scores=None if n_decisions else _read_if_present(run, run.scores_file),
    )
    return replace(found, n_decisions=n_decisions)


def _numbers(
    run: Run, assignments: Sequence[Assignment], categories: Sequence[Category]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]]:
    """Numbers (n,) of the category, the second category and the status of each image."""
    n = len(assignments)
    number = {category.name: k for k, category in enumerate(categories)}
    status_of = {category.name: category.status for category in categories}
    statuses = (status_of[row.category] if row.status == APPROVED else row.status for row in assignments)
    try:
        return (
            np.fromiter((number[row.category] for row in assignments), np.int32, n),
            np.fromiter((number[row.second or row.category] for row in assignments), np.int32, n),
            np.fromiter(map(STATUSES.index, statuses), np.uint8, n),
        )
    except (KeyError, ValueError) as error:
        raise RunError(
            f"{run.assignments_file} names {error}, which is not in {run.categories_file.name}.",
            fix="Both files must come from the same run. Run discover again.",
            code="assignments-mismatch",
            file=run.assignments_file,
        ) from None


def _probabilities(values: list[float]) -> NDArray[np.float32]:
    """Values between 0 and 1; NaN becomes 0. Shape (n,)."""
    clean: NDArray[np.float32] = np.nan_to_num(np.array(values, dtype=np.float32)).clip(0, 1)
    return clean


def _flags(values: list[bool | None]) -> NDArray[np.bool_] | None:
    """(n,); None if a value is missing."""
    return None if None in values else np.array(values, dtype=bool)


def _calibration(run: Run) -> dict[str, Any]:
    """Entry `confidence` of model.json, if there is one."""
    found = (_read_if_present(run, run.model_card) or {}).get("confidence")
    return found if isinstance(found, dict) else {}


def _half(features: NDArray[np.floating[Any]], kept: NDArray[np.bool_]) -> NDArray[np.float16]:
    """Kept rows of features in half precision; an array that has it already (on disk) is not copied for all rows."""
    features = features if kept.all() else features[kept]
    if features.dtype == np.float16:
        return features
    half = np.empty(features.shape, dtype=np.float16)
    for start in range(0, len(features), ROWS):
        part = slice(start, start + ROWS)
        half[part] = np.clip(features[part], -LARGEST_HALF, LARGEST_HALF)
    return half


def _read_if_present(run: Run, path: Path) -> dict[str, Any] | None:
    """Content of a JSON file that a run may lack."""
    return run.read_json(path) if path.exists() else None
