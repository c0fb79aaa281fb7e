"""`evaluate`: a finished run against a table of true classes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from newkind.data import read_truth
from newkind.errors import DataError
from newkind.evaluation import Evaluation, evaluate
from newkind.runs.assignments import read_assignments
from newkind.runs.run import Run

__all__ = ["RunScores", "score_run"]


@dataclass(frozen=True)
class RunScores:
    """The scores, and how many unlabelled images the truth does not name."""

    evaluation: Evaluation
    n_without: int


def score_run(run: Run, truth_file: Path) -> RunScores:
    """Old classes are those that the run knew; every other class of the truth is New."""
    truth = read_truth(truth_file)
    known = {
        category["name"]
        for category in run.read_json(run.categories_file)["categories"]
        if category["status"] == "known"
    }
    lines = [line for line in read_assignments(run) if line.status != "labelled"]
    scored = [line for line in lines if truth.get(line.file)]
    if not scored:
        raise DataError(
            f"{truth_file} names none of the run's {len(lines)} unlabelled images.",
            fix="File names must be those of assignments.csv.",
        )
    true = np.array([truth[line.file] for line in scored])
    found = evaluate(true, np.array([line.category for line in scored]), np.array([name in known for name in true]))
    return RunScores(found, len(lines) - len(scored))
