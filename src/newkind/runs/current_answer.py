"""The current answer of a run: the answer of its model, with all decisions."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from newkind import atomic
from newkind.errors import RunError
from newkind.runs.answer import Answer, answer_of
from newkind.runs.assignment import category_from_json, parse_assignments
from newkind.runs.decision_log import DecisionLog
from newkind.runs.replay import replay
from newkind.runs.run import Run

__all__ = ["REFITS", "current_answer", "keep_model_answer", "load_refit", "model_answer", "refit_run"]

REFITS = "refits"
"""Folder of accepted refits."""


def current_answer(run: Run) -> Answer:
    """Current answer of a finished run: the answer of its model, with all decisions.

    Parameters
    ----------
    run : Run
        A finished run.

    Returns
    -------
    Answer

    Raises
    ------
    RunError
        With the code `not-finished`, `missing-file`, `unreadable` or `assignments-mismatch`.
    """
    events = DecisionLog(run.folder).events()
    found = model_answer(run)
    return replay(found, events, partial(load_refit, run)) if events else found


def model_answer(run: Run) -> Answer:
    """Answer as `discover` wrote it, which is kept apart from assignments.csv since the first decision."""
    if run.model_categories_file.exists():
        return _read(run, run.model_assignments_file, run.model_categories_file)
    return _read(run, run.assignments_file, run.categories_file)


def keep_model_answer(run: Run) -> None:
    """Keep the model's answer apart from assignments.csv and categories.json, which follow decisions from now on."""
    if not run.model_categories_file.exists():
        model_answer(run)  # raises if the files do not fit together
        atomic.write_bytes(run.model_assignments_file, run.assignments_file.read_bytes())
        atomic.write_bytes(run.model_categories_file, run.categories_file.read_bytes())


def refit_run(run: Run, name: str) -> Run:
    """Folder of a refit: a model with its answer by category ids, in files named as those of a run."""
    return Run(run.folder / REFITS / Path(name).name)


def load_refit(run: Run, name: str) -> Answer:
    """Answer of a refit."""
    found = refit_run(run, name)
    return _read(found, found.assignments_file, found.categories_file)


def _read(run: Run, assignments_file: Path, categories_file: Path) -> Answer:
    try:
        lines = parse_assignments(assignments_file)
    except FileNotFoundError:
        raise RunError(
            f"{run.folder} is not finished: it has no {assignments_file.name}.",
            fix="Repeat the discover command that started it.",
            code="not-finished",
            folder=run.folder,
        ) from None
    try:
        categories = [category_from_json(row) for row in run.read_json(categories_file)["categories"]]
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"{categories_file} cannot be read ({error}).", code="unreadable", file=categories_file
        ) from None
    try:
        return answer_of(lines, categories)
    except KeyError as error:
        raise RunError(
            f"{assignments_file} names {error}, which is not in {categories_file.name}.",
            fix="Both files must come from the same run, unedited. To give a category another name, use `newkind rename`.",
            code="assignments-mismatch",
            file=assignments_file,
        ) from None
