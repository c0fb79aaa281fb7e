"""Decisions about a run as a short log for the run that continues it: what they led to, not how."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from newkind.runs.answer import APPROVED, JUNK, LABELLED, Answer
from newkind.runs.decision import Decision, Event
from newkind.runs.replay import apply, effective

__all__ = ["carry_decisions"]


def carry_decisions(
    start: Answer, model: Answer, events: Sequence[Event], names: Mapping[str, Sequence[str]]
) -> tuple[list[Event], Answer]:
    """Decisions that lead from the answer of a continued run's model to what persons decided about the run before.

    Merged ids, names, confirmed images, junk, rejections and notes stay. A category is still approved if all its images
    were confirmed; not if there are new ones, which nobody has seen. Each decision has the author and the time of the last
    one of its kind about the same categories or images.

    Parameters
    ----------
    start : Answer
        What is known about the images of the continued run from the run before, with their names now.
    model : Answer
        Answer of the continued run's model.
    events : sequence of Event
        Events of the run before.
    names : mapping of str to sequence of str
        Names of images in the run before, to their names now.

    Returns
    -------
    list of Event
        Numbered from 1.
    Answer
        The model's answer with these decisions.
    """
    found: list[Event] = []
    counted = effective(events)
    answer = model

    def add(decision: Decision) -> None:
        nonlocal answer
        origin = _origin(decision, counted)
        event = Event(len(found) + 1, origin.time, origin.author, len(found), decision)
        answer = apply(answer, event, lambda _: model)  # no decision is a refit
        found.append(event)

    for decision in _decisions(start, model):
        add(decision)
    for state in start.categories:
        if state.approved and state.id in answer.position:
            members = answer.members(state.id)
            if len(members) and np.isin(answer.status[members], (LABELLED, APPROVED)).all():
                add(Decision("approve", category=state.id))
    for note in start.notes:
        files = [now for name in note.files for now in names.get(name, ())]
        if files or not note.files:
            add(replace(note, files=tuple(files)))
    return found, answer


def _decisions(start: Answer, model: Answer) -> Iterable[Decision]:
    """Merges, names, confirmed images, junk and rejections."""
    there = [state for state in start.categories if state.id in model.position]
    for state in there:
        merged = tuple(sorted(old for old, new in start.merged.items() if new == state.id))
        if merged:
            yield Decision("merge", categories=merged, into=state.id)
    for state in there:
        if state.renamed:
            yield Decision("rename", category=state.id, name=state.name)
    for state in there:
        rows = start.members(state.id)
        is_confirmed = (start.status[rows] == APPROVED) | np.isin(rows, list(start.confirmed))
        if files := _files(start, rows[is_confirmed]):
            yield Decision("approve", category=state.id, files=files)
    if files := _files(start, np.flatnonzero(start.status == JUNK)):
        yield Decision("junk", files=files)
    for state in there:
        if files := _files(start, _rejected_from(start, state.id)):
            yield Decision("reject", category=state.id, files=files)


def _rejected_from(start: Answer, category: str) -> list[int]:
    """Rows that were rejected from a category or from one that was merged into it, and that no person put there."""
    k, parts = start.position[category], {category, *(old for old, new in start.merged.items() if new == category)}
    is_there = (start.category == k) & np.isin(start.status, (LABELLED, APPROVED))
    return [row for row, ids in sorted(start.rejected.items()) if not (is_there[row] or parts.isdisjoint(ids))]


def _files(start: Answer, rows: Iterable[int]) -> tuple[str, ...]:
    return tuple(start.files[int(row)] for row in rows)


def _origin(decision: Decision, events: Sequence[Event]) -> Event:
    """Last event of the same kind about the same category; otherwise the last of that kind, otherwise the last one."""
    kinds = ("approve", "move", "split") if decision.kind == "approve" else (decision.kind,)
    same = [event for event in events if event.decision.kind in kinds] or list(events)
    category = decision.category or decision.into
    about = [event for event in same if category and category in (event.decision.category, event.decision.into)]
    return (about or same)[-1]
