"""Decisions in words, for messages and for the history."""

from __future__ import annotations

from newkind.data import printable
from newkind.data.wording import count
from newkind.review.snapshot import DIFFERENT
from newkind.runs.answer import Answer
from newkind.runs.decision import Decision

__all__ = ["describe"]


def describe(decision: Decision, answer: Answer) -> str:
    """One sentence about a decision, with present names of categories.

    Parameters
    ----------
    decision : Decision
        A recorded decision.
    answer : Answer
        Current answer, which knows the names.

    Returns
    -------
    str
    """
    names = {state.id: state.name for state in answer.categories}

    def name(category: str) -> str:
        return printable(names.get(category, category))

    files = count(len(decision.files), "image")
    own = name(decision.category)
    texts = {
        "rename": f"Renamed {printable(decision.category)} to {printable(decision.name)}.",
        "merge": f"Merged {', '.join(map(printable, decision.categories))} into {name(decision.into)}.",
        "split": f"Split {own} into {len(decision.groups) + 1} categories.",
        "move": f"Moved {files} to {name(decision.into)}.",
        "approve": f"Approved {files + ' of ' if decision.files else ''}{own}." if own else f"Approved {files}.",
        "reject": f"{files} not in {own}.",
        "junk": f"Removed {files} as junk.",
        "note": _note(decision, own, name),
        "undo": f"Undid decision {decision.event}.",
        "redo": f"Redid decision {decision.event}.",
        "refit": "Refitted the model.",
    }
    return texts[decision.kind]


def _note(decision: Decision, own: str, name: object) -> str:
    if decision.category and decision.text.startswith(DIFFERENT):
        other = decision.text.removeprefix(DIFFERENT)
        return f"{own} and {name(other) if callable(name) else other} are different."
    return f"Note: {printable(decision.text)}"
