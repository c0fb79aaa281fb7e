"""Everything that the pages of one run share: its answer, its images, and what is in progress."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from newkind.data import printable
from newkind.errors import RunError
from newkind.paths import cache_dir
from newkind.pipeline.refit import Refit
from newkind.report.images import find_run_images
from newkind.report.map import ImageMap, make_map
from newkind.review.columns import read_columns
from newkind.review.growths import Growths
from newkind.review.originals import Originals
from newkind.review.snapshot import Snapshot
from newkind.review.space import FeatureSpace
from newkind.review.thumbnails import Thumbnails
from newkind.runs.decision import Decision, Event
from newkind.runs.decisions import Decisions
from newkind.runs.replay import effective
from newkind.runs.run import Run
from newkind.runs.run_files import run_files
from newkind.runs.write_answer import write_answer

__all__ = ["ReviewOptions", "Workbench"]


@dataclass(frozen=True)
class ReviewOptions:
    """How a run is reviewed.

    Parameters
    ----------
    read_only : bool, default=False
        Whether decisions are refused.
    data : Path, default=None
        Folder that contains the images now. Default: where the run read them.
    allow_outside : bool, default=False
        Whether images outside the data folder are shown.
    """

    read_only: bool = False
    data: Path | None = None
    allow_outside: bool = False


@dataclass(frozen=True)
class _Names:
    """Names of the images of a run, and contents of its config.json."""

    files: tuple[str, ...]
    config: dict[str, Any]

    def __len__(self) -> int:
        return len(self.files)


class Workbench:
    """One run under review. Threads may share it.

    Parameters
    ----------
    run : Run
        A finished run.
    options : ReviewOptions, optional
        How it is reviewed.
    """

    def __init__(self, run: Run, options: ReviewOptions | None = None) -> None:
        self.run = run
        self.options = options or ReviewOptions()
        self.decisions = Decisions(run)
        self._kind = run.answer
        answer = self.decisions.answer
        features = run.features()
        has_features = features is not None and len(features) == len(answer) > 0
        self.space = FeatureSpace(features) if has_features and features is not None else None
        self.images = find_run_images(_Names(answer.files, run.config()), data=self.options.data)
        added = run_files(run.config(), self.options.data).added
        self.originals = Originals(self.images, allow_outside=self.options.allow_outside, added=added)
        self.thumbnails = Thumbnails(self.originals, cache_dir("thumbnails"))
        self.columns = read_columns(run, answer.files)
        self.growths = Growths()
        self.refit_plan: tuple[str, Refit] | None = None
        self._snapshot = Snapshot(answer, self.space)
        self._written = 0  # not answer.last: a process that was killed has recorded decisions that it did not write
        self._lock = threading.Lock()
        self._map: ImageMap | None = None
        self._map_lock = threading.Lock()

    @property
    def snapshot(self) -> Snapshot:
        """The current answer, with the decisions of other processes."""
        with self._lock:
            if self.decisions.log.last != self._snapshot.number:
                self._snapshot = Snapshot(self.decisions.answer, self.space)
            return self._snapshot

    def decide(self, decision: Decision, based_on: int) -> Event:
        """Record a decision; RunError as in `Decisions.decide` and `check_writable`."""
        self.check_writable()
        return self.decisions.decide(decision, based_on=based_on)

    def check_writable(self) -> None:
        """Raise RunError with the code `read-only` if decisions are refused, or `stale` if the final answer has replaced the first one."""
        if self.options.read_only:
            raise RunError("This page is read-only.", fix="Start newkind review without --read-only.", code="read-only")
        if self.run.answer != self._kind:  # the features that were loaded are others, and nobody has seen the images
            raise RunError(
                "The final answer has replaced the first one, which this page shows.",
                fix="Start `newkind review` again.",
                code="stale",
            )

    @property
    def n_to_learn(self) -> int:
        """Number of decisions since the last refit; notes do not count."""
        kinds = [event.decision.kind for event in effective(self.decisions.log.events(), notes=False)]
        return kinds[::-1].index("refit") if "refit" in kinds else len(kinds)

    @property
    def image_map(self) -> ImageMap | None:
        """Positions of the images by their features, computed once; None for a run without features."""
        with self._map_lock:
            if self._map is None and self.space is not None:
                category = np.maximum(self.snapshot.answer.category, 0).astype(np.int32)
                self._map = make_map(self.space.features, category)
            return self._map

    def write_answer(self) -> None:
        """Write assignments.csv and categories.json if there are decisions that they do not contain."""
        if self.options.read_only or self.decisions.log.last == self._written:
            return
        self._written = write_answer(self.run).last

    def close(self) -> None:
        """Write the answer and close files."""
        self.write_answer()
        self.thumbnails.close()

    def about(self, line: int) -> dict[str, Any]:
        """Name and facts of an image, for the reader."""
        answer = self.snapshot.answer
        names = [*(state.name for state in answer.categories), "none"]
        facts = {
            "Category": names[int(answer.category[line])],
            "Status": str(answer.status[line]),
            "Confidence": f"{100 * answer.confidence[line]:.0f} %",
        }
        if answer.second[line] >= 0 and answer.second_confidence[line] > 0:
            facts["Second category"] = (
                f"{names[int(answer.second[line])]} ({100 * answer.second_confidence[line]:.0f} %)"
            )
        if answer.outlier is not None and answer.outlier[line]:
            facts["Outlier"] = "yes"
        facts |= self.originals.facts(line)
        facts |= {name: values[line] for name, values in self.columns.items() if values[line]}
        problem = self.originals.problem(line)
        facts |= {"Problem": problem} if problem else {}
        return {
            "name": printable(answer.files[line]),
            "facts": {name: printable(value) for name, value in facts.items()},
        }
