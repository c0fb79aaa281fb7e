"""Write the current answer of a run into assignments.csv and categories.json."""

from __future__ import annotations

from filelock import FileLock

from newkind.runs.answer import Answer
from newkind.runs.assignments import assignments_csv, category_rows
from newkind.runs.current_answer import current_answer
from newkind.runs.estimate_file import load_estimate
from newkind.runs.run import ANSWER_LOCK, Run

__all__ = ["write_answer"]


def write_answer(run: Run) -> Answer:
    """Write assignments.csv and categories.json as the current answer has them.

    Programs of this project do not depend on it, because they read the log of decisions; other programs do.

    Parameters
    ----------
    run : Run
        A finished run.

    Returns
    -------
    Answer
        The answer that was written.
    """
    with FileLock(run.folder / ANSWER_LOCK):  # so that the last one to write has the last decision
        answer = current_answer(run)
        if run.model_categories_file.exists():  # otherwise there was no decision
            run.write_json(run.categories_file, category_rows(answer.list_categories(), load_estimate(run)))
            run.write_text(run.assignments_file, assignments_csv(answer.assignments()))
    return answer
