"""`evaluate`: scores of a finished run against a table of true classes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from newkind.data import read_truth
from newkind.data.table_rows import plain_name
from newkind.errors import DataError
from newkind.evaluation import Evaluation, evaluate
from newkind.reading import ReadingConfig
from newkind.runs.answer import LABELLED
from newkind.runs.current_answer import current_answer, model_answer
from newkind.runs.run import Run

__all__ = ["RunScores", "evaluate_run"]


@dataclass(frozen=True)
class RunScores:
    """Scores of a run.

    Parameters
    ----------
    evaluation : Evaluation
        All scores.
    n_without : int
        Number of unlabelled images without a truth.
    """

    evaluation: Evaluation
    n_without: int


def evaluate_run(run: Run, truth_file: Path, reading: ReadingConfig | None = None) -> RunScores:
    """Score the unlabelled images of a run. Classes that the run knew are Old; all others are New.

    These are the classes of its labelled images, and categories that a person named before the model learned from it, in a run that
    was continued or refitted. A known category without a name stands for no class of the truth, so that it is matched as a new one.

    Parameters
    ----------
    run : Run
        A finished run.
    truth_file : Path
        Table with the true class of each image, or other data that has them.
    reading : ReadingConfig, optional
        How to read it.

    Returns
    -------
    RunScores
    """
    truth = read_truth(truth_file, **(reading or ReadingConfig()).given())
    answer = current_answer(run)
    # A class that was given is called by its id, as in the truth, also if it was renamed; others as persons call them.
    label = {state.id: state.id if state.given else state.name for state in answer.categories} | {"": ""}
    id_of = {state.name: state.id for state in answer.categories if state.given}
    known = {label[s.id] for s in answer.categories if s.given or (s.renamed and s.status == "known")}
    is_labelled = model_answer(run).status == LABELLED
    lines = [line for line, given in zip(answer.assignments_by_id(), is_labelled, strict=True) if not given]
    true_class = {line.file: truth.get(line.file) or truth.get(plain_name(line.file)) for line in lines}
    scored = [line for line in lines if true_class[line.file]]
    if not scored:
        raise DataError(
            f"{truth_file} contains none of the {len(lines)} unlabelled images of the run.",
            fix="File names must be those of assignments.csv.",
            code="no-truth",
            file=truth_file,
        )
    true = np.array([id_of.get(name, name) for line in scored if (name := true_class[line.file])])
    found = evaluate(
        true,
        np.array([label[line.category] for line in scored]),
        np.array([name in known for name in true]),
        known_names=sorted(known),
        confidence=[line.confidence for line in scored],
        is_sure=[line.status != "unsure" for line in scored]
        if any(line.status == "unsure" for line in lines)
        else None,
    )
    return RunScores(found, len(lines) - len(scored))
