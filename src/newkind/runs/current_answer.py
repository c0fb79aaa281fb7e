"""The current answer of a run: the answer of its model, with all decisions."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from newkind import atomic
from newkind.data.wording import shell_quoted
from newkind.errors import RunError
from newkind.runs.answer import Answer, answer_of
from newkind.runs.assignment import Category, category_from_json, parse_assignments
from newkind.runs.assignments_record import check_recorded
from newkind.runs.decision_log import DecisionLog
from newkind.runs.replay import replay
from newkind.runs.run import ANSWER_LOCK, REFITS, Run
from newkind.runs.run_schemas import CategoriesFile

__all__ = ["current_answer", "keep_model_answer", "load_refit", "model_answer", "refit_run"]

logger = logging.getLogger(__name__)


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
        With the code `not-finished`, `missing-file`, `unreadable`, `incomplete` or `assignments-mismatch`.
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
    if run.model_categories_file.exists():
        return
    model_answer(run)  # raises if the files do not fit together
    with (
        atomic.write_errors(run.folder),
        atomic.file_lock(run.folder / ANSWER_LOCK),
    ):  # not while `discover` replaces them
        atomic.write_bytes(run.model_assignments_file, run.assignments_file.read_bytes())
        atomic.write_bytes(run.model_categories_file, run.categories_file.read_bytes())


def refit_run(run: Run, name: str) -> Run:
    """Folder of a refit: a model with its answer by category ids, in files named as those of a run."""
    return Run(run.folder / REFITS / name)


def load_refit(run: Run, name: str) -> Answer:
    """Answer of a refit."""
    found = refit_run(run, name)
    try:
        return _read(found, found.assignments_file, found.categories_file)
    except RunError as error:
        raise RunError(
            f"The refit in {found.folder} cannot be used: {error.what}",
            fix="Undo it: `newkind history RUN` shows the number of the event, `newkind undo RUN --event NUMBER` undoes it.",
            code="refit-damaged",
            folder=found.folder,
        ) from None


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
    check_recorded(run, assignments_file, n_rows=len(lines))
    categories = _read_categories(run, categories_file)
    try:
        return answer_of(lines, categories)
    except KeyError as error:
        raise RunError(
            f"{assignments_file} names {error}, which is not in {categories_file.name}.",
            fix="Both files must come from the same run, unedited. Category names are changed with `newkind rename`.",
            code="assignments-mismatch",
            file=assignments_file,
        ) from None


def _read_categories(run: Run, path: Path) -> list[Category]:
    """Categories as the model named them. A name that was edited by hand is not followed, which is logged."""
    try:
        found = [category_from_json(row) for row in run.read_json(path, CategoriesFile)["categories"]]
        if len({category.id for category in found}) < len(found):
            raise ValueError("two categories have one id")
    except TypeError as error:  # an entry of a later version
        raise RunError(f"{path} cannot be read ({error}).", code="unreadable", file=path) from None
    except ValueError as error:
        raise RunError(f"{path} cannot be used: {error}.", code="categories-invalid", file=path) from None
    for category in found:
        if category.name != category.id:
            _warn_of_edit(path, category.id, category.name)
    return [replace(category, name=category.id) for category in found]


@cache
def _warn_of_edit(path: Path, category: str, name: str) -> None:
    """Log once that a name was edited by hand."""
    logger.warning(
        f"{path} was edited by hand, which is ignored. To rename the category: "
        f"newkind rename {shell_quoted(str(path.parent))} {shell_quoted(category)} {shell_quoted(name)}"
    )
