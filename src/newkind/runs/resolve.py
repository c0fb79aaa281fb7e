"""Check a decision against the current answer, and fill in what it leaves open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from newkind.errors import RunError
from newkind.runs.answer import Answer
from newkind.runs.decision import Decision, Event
from newkind.runs.replay import effective, last_redoable, last_undoable

__all__ = ["new_ids", "resolve", "resolve_undo"]


def resolve(decision: Decision, answer: Answer, events: Sequence[Event]) -> Decision:
    """Decision with ids instead of names, the target of a merge, and ids of new categories.

    Parameters
    ----------
    decision : Decision
        Decision as it was asked for, other than an undo or a redo. Categories may be named by id or by name.
    answer : Answer
        Current answer.
    events : sequence of Event
        All events.

    Returns
    -------
    Decision

    Raises
    ------
    RunError
        With the code `unknown-category`, `unknown-file`, `name-taken` or `nothing-to-do`.
    """
    _ = answer.rows_of((*decision.files, *decision.without))
    if decision.category:
        decision = replace(decision, category=answer.find(decision.category).id)
    files, without = (tuple(dict.fromkeys(names)) for names in (decision.files, decision.without))
    decision = replace(decision, files=files, without=without)
    if decision.kind == "rename":
        return _resolve_rename(decision, answer)
    if decision.kind == "merge":
        return _resolve_merge(decision, answer)
    if decision.kind == "split":
        return _resolve_split(decision, answer, events)
    if decision.kind == "move":
        return _resolve_move(decision, answer, events)
    if decision.kind == "approve":
        return _resolve_approve(decision, answer)
    return decision


def resolve_undo(decision: Decision, events: Sequence[Event]) -> Decision:
    """Undo or redo with the number of its event. It needs no answer, so that a damaged refit can be undone.

    Parameters
    ----------
    decision : Decision
        An undo or a redo.
    events : sequence of Event
        All events.

    Returns
    -------
    Decision

    Raises
    ------
    RunError
        With the code `nothing-to-undo`, `nothing-to-redo`, or `learned-by-refit` if a refit has learned from other decisions than those that
        would count.
    """
    counts = {event.number for event in effective(events)}
    undone = {event.number for event in events if event.decision.kind not in ("undo", "redo")} - counts
    if decision.kind == "undo":
        number = decision.event or last_undoable(events)
        allowed, code = counts, "nothing-to-undo"
    else:
        number = decision.event or last_redoable(events)
        allowed, code = undone, "nothing-to-redo"
    if number is None or number not in allowed:
        which = f"Event {decision.event} cannot" if decision.event else "There is no decision to"
        ending = " be undone." if decision.kind == "undo" else " be redone."
        what = f"{which}{ending}" if decision.event else f"{which} {decision.kind}."
        raise RunError(what, fix="`newkind history RUN` lists all decisions.", code=code, event=decision.event)
    found = replace(decision, event=number)
    _check_refits(found, events)
    return found


def _check_refits(decision: Decision, events: Sequence[Event]) -> None:
    """Raise if an undo or a redo changes what a refit that counts has learned from: its answer would still follow it."""
    after = effective([*events, Event(len(events) + 1, "", "", 0, decision)], notes=False)
    numbers = {event.number for event in after}
    for refit in (event for event in after if event.decision.kind == "refit"):
        learned = effective([event for event in events if event.number < refit.number], notes=False)
        changed = {event.number for event in learned} ^ {number for number in numbers if number < refit.number}
        if decision.event == refit.number and changed:
            raise RunError(
                f"The refit, event {refit.number}, has learned from other decisions than those that count now.",
                fix="Refit again: `newkind refit RUN`.",
                code="learned-by-refit",
                event=refit.number,
            )
        if decision.event in changed:
            raise RunError(
                f"A refit, event {refit.number}, came after event {decision.event} and would not follow.",
                fix=f"Undo the refit first: `newkind undo RUN --event {refit.number}`. Then refit again.",
                code="learned-by-refit",
                event=refit.number,
            )


def _resolve_rename(decision: Decision, answer: Answer) -> Decision:
    _check_name(decision.name, decision.category, answer)
    if answer.find(decision.category).name == decision.name:
        raise RunError(f"The category is called {decision.name} already.", code="nothing-to-do", name=decision.name)
    return decision


def _check_name(name: str, category: str, answer: Answer) -> None:
    """Raise unless a category may have this name."""
    others = [state for state in answer.categories if state.id != category]
    taken = {state.name for state in others} | {state.id for state in others}
    taken |= {old for old, new in answer.merged.items() if new != category}
    if name in taken:
        raise RunError(
            f"There is another category {name}.",
            fix="Use another name, or merge the two categories.",
            code="name-taken",
            name=name,
        )


def _resolve_merge(decision: Decision, answer: Answer) -> Decision:
    states = [answer.find(name) for name in decision.categories]
    into = answer.find(decision.into) if decision.into else None
    if into is None:
        sizes = np.bincount(answer.category[answer.category >= 0], minlength=len(answer.categories))
        # A class that was given, then one that a person named or approved, then the largest one.
        into = max(states, key=lambda s: (s.given, s.renamed or s.approved, sizes[answer.position[s.id]]))
    merged = tuple(dict.fromkeys(state.id for state in states if state.id != into.id))
    if not merged:
        raise RunError("A merge needs at least two categories.", code="nothing-to-do")
    return replace(decision, categories=merged, into=into.id)


def _resolve_split(decision: Decision, answer: Answer, events: Sequence[Event]) -> Decision:
    members = set(answer.members(decision.category).tolist())
    seen: set[int] = set()
    for group in decision.groups:
        rows = set(answer.rows_of(group).tolist())
        if not rows or len(rows) < len(group) or rows & seen:
            raise RunError(
                "The groups of a split must not be empty, and an image can be in one group only.",
                code="invalid-decision",
            )
        outside = rows - members
        if outside:
            name = answer.files[min(outside)]
            raise RunError(f"{name} is not in {decision.category}.", code="unknown-file", file=name)
        seen |= rows
    groups = decision.groups[1:] if seen == members else decision.groups
    if not groups:
        raise RunError(
            "All images of the category are in one group, so there is nothing to split.", code="nothing-to-do"
        )
    return replace(decision, groups=groups, ids=new_ids(len(groups), answer, events))


def _resolve_move(decision: Decision, answer: Answer, events: Sequence[Event]) -> Decision:
    if decision.into:
        if decision.name:
            raise RunError("A move has `into` or the `name` of a new category, not both.", code="invalid-decision")
        into = answer.find(decision.into)
        return replace(decision, into=into.id, ids=())
    if decision.name:
        _check_name(decision.name, "", answer)
    ids = new_ids(1, answer, events)
    return replace(decision, into=ids[0], ids=ids)


def _resolve_approve(decision: Decision, answer: Answer) -> Decision:
    if decision.category:
        _check_name(decision.name, decision.category, answer)
        return decision
    if set(decision.files) & set(decision.without):
        raise RunError("An image cannot be approved and rejected by one decision.", code="invalid-decision")
    rows = answer.rows_of((*decision.files, *decision.without))
    without = rows[answer.category[rows] < 0]
    if len(without):
        name = answer.files[int(without[0])]
        raise RunError(
            f"{name} has no category to approve.", fix="Move it to a category.", code="unknown-category", file=name
        )
    return decision


def new_ids(n: int, answer: Answer, events: Sequence[Event]) -> tuple[str, ...]:
    """Ids new-01, ... that no category ever had, also none whose split was undone."""
    used = {state.id for state in answer.categories} | {state.name for state in answer.categories} | set(answer.merged)
    used |= {name for event in events for name in event.decision.ids}
    numbers = [name.removeprefix("new-") for name in used if name.startswith("new-") and name[4:].isdecimal()]
    number, width = max(map(int, numbers), default=0), max(map(len, numbers), default=2)
    found: list[str] = []
    while len(found) < n:
        number += 1
        found.append(f"new-{number:0{width}d}")
    return tuple(found)
