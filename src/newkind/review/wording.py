"""Decisions in words, with present names of categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from newkind.data import printable
from newkind.runs.answer import Answer
from newkind.runs.decision import Decision, Event
from newkind.runs.describe import describe

__all__ = ["describe_event", "describe_named"]


def describe_named(decision: Decision, answer: Answer) -> str:
    """One sentence about a recorded decision; categories have the names of the answer where they have one."""
    names = {state.id: state.name for state in answer.categories}
    if not decision.name and decision.category:
        decision = replace(decision, category=names.get(decision.category, decision.category))
    if decision.into and decision.ids and decision.name:
        decision = replace(decision, into=decision.name, name="")
    if decision.into and not decision.ids:
        decision = replace(decision, into=names.get(decision.into, decision.into))
    return printable(f"{describe(decision)}.")


def describe_event(event: Event, events: Sequence[Event], answer: Answer) -> str:
    """One sentence about an event; what an undo or redo is about is among `events`."""
    done = {"undo": "Undone", "redo": "Redone"}.get(event.decision.kind)
    about = next((each for each in events if done and each.number == event.decision.event), None)
    return f"{done}: {describe_named(about.decision, answer)}" if about else describe_named(event.decision, answer)
