"""Random decisions that fit an answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from newkind.errors import RunError
from newkind.runs.answer import APPROVED, JUNK, LABELLED, Answer, CategoryState
from newkind.runs.decision import Decision, Event
from newkind.runs.replay import LoadRefit, replay
from newkind.runs.resolve import resolve, resolve_undo

__all__ = ["ALL_KINDS", "KINDS", "Refits", "no_refit", "random_decision", "random_events"]

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
ALL_KINDS = (*KINDS, "refit", "undo-any", "redo-any")


def no_refit(name: str) -> Answer:
    raise AssertionError(name)


class Refits:
    """Refits by name. Each keeps confirmed images in their categories, and assigns all others at random."""

    def __init__(self) -> None:
        self.found: dict[str, Answer] = {}

    def __call__(self, name: str) -> Answer:
        return self.found[name]

    def make(self, answer: Answer, rng: np.random.Generator) -> str:
        """Add a refit of an answer; returns its name."""
        rows = np.flatnonzero(answer.status != JUNK)
        used = np.unique(answer.category[rows][answer.category[rows] >= 0])
        is_label = np.isin(answer.status[rows], (LABELLED, APPROVED))
        own, n, k = answer.category[rows], len(rows), len(used)
        category = np.where(is_label, np.searchsorted(used, own), rng.integers(k, size=n))
        second = (category + rng.integers(1, k, size=n)) % k if k > 1 else category
        states = []
        for i, state in enumerate(answer.categories[j] for j in used):
            is_known = state.status == "known" or state.approved or state.renamed
            states.append(
                CategoryState(state.id, state.id, "known" if is_known else "new", prototypes=(2 * i, 2 * i + 1))
            )
        confidence = rng.uniform(0, 1, n).astype(np.float32)  # below a half, the model would assign a label elsewhere
        name = f"{len(self.found)}"
        self.found[name] = Answer(
            files=tuple(answer.files[i] for i in rows),
            category=category.astype(np.int64),
            status=np.where(is_label, LABELLED, np.array([states[c].status for c in category], dtype="<U10")),
            confidence=confidence,
            second=second.astype(np.int64),
            second_confidence=(1 - confidence).astype(np.float32),
            novelty=rng.uniform(0, 1, n).astype(np.float32),
            outlier=np.zeros(n, dtype=bool),
            categories=tuple(states),
        )
        return name


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
            if kind == "refit" and isinstance(load_refit, Refits):
                asked = Decision("refit", refit=load_refit.make(answer, rng))
            elif kind.endswith("-any"):
                asked = Decision(kind.removesuffix("-any"), event=int(rng.integers(1, len(events) + 2)))
            else:
                asked = random_decision(kind, answer, rng)
            is_undo = asked.kind in ("undo", "redo")
            decision = resolve_undo(asked, events) if is_undo else resolve(asked, answer, events)
        except RunError:
            continue
        events.append(Event(len(events) + 1, "2026-01-01T00:00:00.000Z", "ada", len(events), decision))
    return events
