"""Write the current answer of a run into assignments.csv and categories.json."""

from __future__ import annotations

import logging

from newkind import atomic
from newkind.errors import RunError
from newkind.runs.answer import Answer
from newkind.runs.assignments import assignments_csv, category_rows
from newkind.runs.decisions import Decisions
from newkind.runs.estimate_file import load_estimate
from newkind.runs.metadata import read_metadata
from newkind.runs.run import ANSWER_LOCK, Run

__all__ = ["write_answer"]

logger = logging.getLogger(__name__)


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
    with (
        atomic.write_errors(run.folder),
        atomic.file_lock(run.folder / ANSWER_LOCK),
    ):  # so that the last one to write has the last decision
        decisions = Decisions(run)
        answer = decisions.answer
        if run.model_categories_file.exists():  # otherwise there was no decision
            _warn_of_edits(decisions)
            rows = category_rows(answer.list_categories(), load_estimate(run))
            run.write_json(run.categories_file, {"event": answer.last, **rows})
            run.write_text(run.assignments_file, assignments_csv(answer.assignments(), read_metadata(run)))
    return answer


def _warn_of_edits(decisions: Decisions) -> None:
    """Log if categories.json, which is about to be replaced, has other names than those that were written."""
    path = decisions.run.categories_file
    try:
        content = decisions.run.read_json(path)
        names = {row.get("id") or row["name"]: row["name"] for row in content["categories"]}
        event = int(content.get("event", 0))
    except (RunError, KeyError, TypeError, ValueError, AttributeError):
        logger.warning(f"{path} was damaged; it is written again.")
        return
    try:
        written = decisions.at(event)
    except RunError:  # a refit that was damaged since
        return
    if names != {state.id: state.name for state in written.categories}:
        logger.warning(f"{path} was edited by hand, which is ignored. Categories are renamed with `newkind rename`.")
