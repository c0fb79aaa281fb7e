"""Decisions in words, with present names of categories."""

from __future__ import annotations

from dataclasses import replace

from newkind.data import printable
from newkind.runs.answer import Answer
from newkind.runs.decision import Decision
from newkind.runs.describe import describe

__all__ = ["describe_named"]


def describe_named(decision: Decision, answer: Answer) -> str:
    """One sentence about a recorded decision; categories have the names of the answer where they have one."""
    names = {state.id: state.name for state in answer.categories}
    if not decision.name and decision.category:
        decision = replace(decision, category=names.get(decision.category, decision.category))
    if decision.into and not decision.ids:
        decision = replace(decision, into=names.get(decision.into, decision.into))
    return printable(f"{describe(decision)}.")
