"""Keep decisions when the model's answer of a run is computed again."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Set
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from newkind import atomic
from newkind.data.wording import count
from newkind.evaluation.correspondence import corresponding_categories
from newkind.runs.answer import Answer
from newkind.runs.assignments import assignments_csv, category_rows
from newkind.runs.assignments_record import write_recorded
from newkind.runs.current_answer import model_answer
from newkind.runs.decision_log import DecisionLog
from newkind.runs.replay import effective
from newkind.runs.run import ANSWER_LOCK, Run
from newkind.runs.write_answer import write_answer

__all__ = ["carry_over", "with_stable_ids"]

logger = logging.getLogger(__name__)


@contextmanager
def carry_over(run: Run, following: Run) -> Iterator[None]:
    """In this context, the complete answer in `following` replaces that of `run`. Decisions of the run stay.

    If there are decisions, the new answer gets category ids that fit those of the last one, and assignments.csv and
    categories.json are written with the decisions.

    Parameters
    ----------
    run : Run
        The run.
    following : Run
        Folder of the next answer, with assignments.csv and categories.json.
    """
    place = run if run.replaces is None else run.replaces
    with atomic.write_errors(place.folder), atomic.file_lock(place.folder / ANSWER_LOCK):  # a first decision waits
        decided = run.model_categories_file.exists()
        if decided:
            last, found = model_answer(run), model_answer(following)
            events = DecisionLog(run.folder).events()
            stable = with_stable_ids(found, last, opened={name for event in events for name in event.decision.ids})
            lines = stable.assignments()
            write_recorded(following, following.model_assignments_file, assignments_csv(lines), n_rows=len(lines))
            following.write_json(following.model_categories_file, category_rows(stable.list_categories()))
        yield
    if decided:
        write_answer(run)
        n = len(effective(DecisionLog(run.folder).events()))
        changed = (
            "" if _same(stable, last) else " Their categories were matched to those of the new answer by their images."
        )
        logger.info(f"{count(n, 'decision')} of the run {'is' if n == 1 else 'are'} kept and applied.{changed}")


def with_stable_ids(answer: Answer, last: Answer, *, opened: Set[str] = frozenset()) -> Answer:
    """Answer whose new categories have the ids of those that they correspond to in the last answer.

    Parameters
    ----------
    answer : Answer
        Answer of a model.
    last : Answer
        Earlier answer of a model about the same images.
    opened : set of str, default=frozenset()
        Ids of categories that persons opened, which no other category may get.

    Returns
    -------
    Answer
    """
    overlap = np.zeros((len(answer.categories), len(last.categories)), dtype=np.int64)
    rows = np.array([last.row.get(name, -1) for name in answer.files], dtype=np.int64)
    both = (rows >= 0) & (answer.category >= 0) & (last.category[rows] >= 0)
    np.add.at(overlap, (answer.category[both], last.category[rows[both]]), 1)
    names, other = (
        [state.id if state.status == "known" else None for state in each.categories] for each in (answer, last)
    )
    partner = corresponding_categories(overlap, names, other).tolist()
    taken = {state.id for state in last.categories} | opened
    numbers = (f"new-{number:02d}" for number in range(1, 10**9))
    ids = []
    for state, k in zip(answer.categories, partner, strict=True):
        if k >= 0:
            ids.append(last.categories[k].id)
            continue
        chosen = state.id if state.id not in taken else next(name for name in numbers if name not in taken)
        taken.add(chosen)
        ids.append(chosen)
    states = (replace(state, id=name, name=name) for state, name in zip(answer.categories, ids, strict=True))
    return replace(answer, categories=tuple(states))


def _same(answer: Answer, last: Answer) -> bool:
    """Whether two answers assign the same images to the same categories."""
    return answer.files == last.files and [answer.categories[k].id for k in answer.category] == [
        last.categories[k].id for k in last.category
    ]
