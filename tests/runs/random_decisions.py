"""Random decisions that fit an answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from newkind.errors import RunError
from newkind.runs.answer import Answer
from newkind.runs.decision import Decision, Event
from newkind.runs.replay import LoadRefit, replay
from newkind.runs.resolve import resolve, resolve_undo

__all__ = ["KINDS", "no_refit", "random_decision", "random_events"]

KINDS = (
    "rename",
    "merge",
    "split",
    "move",
    "open",
    "approve",
    "approve-images",
    "approve-as",
    "reject",
    "junk",
    "note",
    "undo",
    "redo",
)


def no_refit(name: str) -> Answer:
    raise AssertionError(name)


def random_decision(kind: str, answer: Answer, rng: np.random.Generator) -> Decision:
    """A decision of this kind about random categories and images; it may be refused."""
    ids = [state.id for state in answer.categories]
    category, other = rng.choice(ids), rng.choice(ids)
    files = tuple(rng.choice(answer.files, size=rng.integers(1, 5), replace=False).tolist())
    members = [answer.files[i] for i in answer.members(str(category))]
    if kind == "rename":
        return Decision("rename", category=str(category), name=f"name {rng.integers(12)}")
    if kind == "merge":
        return Decision("merge", categories=(str(category), str(other)))
    if kind == "split" and members:
        return Decision("split", category=str(category), groups=(tuple(members[: int(rng.integers(1, 4))]),))
    if kind == "open":
        return Decision("move", files=files)
    if kind == "approve-images":
        return Decision("approve", files=files[:2], without=files[2:])
    if kind == "approve-as":
        name = f"name {rng.integers(12)}" if rng.integers(2) else ""
        return Decision("approve", category=str(category), name=name, without=tuple(members[: int(rng.integers(3))]))
    if kind == "move":
        return Decision("move", files=files, into=str(category))
    if kind == "reject":
        return Decision("reject", files=files, category=str(category))
    if kind == "junk":
        return Decision("junk", files=files)
    if kind in ("undo", "redo"):
        return Decision(kind)
    return Decision("approve", category=str(category)) if kind == "approve" else Decision("note", text="a note")


def random_events(
    model_answer: Answer, kinds: Sequence[str], seed: int, load_refit: LoadRefit = no_refit
) -> list[Event]:
    """Events of these kinds as the log would have them; those that would be refused are left out."""
    rng, events = np.random.default_rng(seed), list[Event]()
    for kind in kinds:
        answer = replay(model_answer, events, load_refit)
        try:
            asked = random_decision(kind, answer, rng)
            is_undo = asked.kind in ("undo", "redo")
            decision = resolve_undo(asked, events) if is_undo else resolve(asked, answer, events)
        except RunError:
            continue
        events.append(Event(len(events) + 1, "2026-01-01T00:00:00.000Z", "ada", len(events), decision))
    return events
