"""Which decisions conflict: what a decision relies on, and what it changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from newkind.runs.decision import Decision, Event

__all__ = ["conflicting"]

EVERYTHING = "everything"
Key = tuple[str, str]


def conflicting(decision: Decision, since: Iterable[Event], all_events: Mapping[int, Event]) -> Event | None:
    """First event that changes what a decision relies on or changes too; None if there is none.

    Two moves of different images into one category do not conflict; a merge conflicts with everything about the category
    that it removes.

    Parameters
    ----------
    decision : Decision
        The decision, with all defaults filled in.
    since : iterable of Event
        Events that its author has not seen.
    all_events : mapping of int to Event
        All events by number, to look up what was undone.

    Returns
    -------
    Event or None
    """
    keys = _relied_on(decision) | _changed(decision, all_events)
    for event in since:
        changed = _changed(event.decision, all_events)
        if keys & changed or (keys and _is_everything(changed)) or (changed and _is_everything(keys)):
            return event
    return None


def _is_everything(keys: set[Key]) -> bool:
    return (EVERYTHING, "") in keys


def _changed(decision: Decision, all_events: Mapping[int, Event]) -> set[Key]:
    """What a decision changes: names, existence and content of categories, and images."""
    kind = decision.kind
    files = {("file", name) for name in (*decision.files, *decision.without)}
    if kind == "rename":
        return {("name", decision.category)}
    if kind == "merge":
        return {(what, k) for k in decision.categories for what in ("exists", "name")} | {("content", decision.into)}
    if kind == "split":
        return {("content", decision.category)} | {("file", name) for group in decision.groups for name in group}
    if kind == "approve" and decision.category and not decision.files:
        named = {("name", decision.category)} if decision.name else set()
        return {("content", decision.category)} | named | files
    if kind in ("move", "approve", "reject", "junk"):
        return files
    if kind == "refit":
        return {(EVERYTHING, "")}
    if kind in ("undo", "redo") and decision.event in all_events:
        return {("event", str(decision.event))} | _changed(all_events[decision.event].decision, all_events)
    return set()


def _relied_on(decision: Decision) -> set[Key]:
    """What a decision relies on without changing it."""
    if decision.kind == "refit":
        return {(EVERYTHING, "")}
    if decision.kind == "note":
        return set()
    named = {decision.category, decision.into, *decision.categories} - {""}
    return {("exists", k) for k in named}
