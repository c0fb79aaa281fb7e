"""From the model's answer and a sequence of decisions to the current answer. The same input always gives the same answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from newkind.runs.answer import APPROVED, JUNK, LABELLED, UNSURE, Answer, CategoryState, Ints
from newkind.runs.decision import Decision, Event

__all__ = ["LoadRefit", "apply", "effective", "last_redoable", "last_undoable", "replay"]

LoadRefit = Callable[[str], Answer]


def effective(events: Sequence[Event], *, notes: bool = True) -> list[Event]:
    """Events that count: without undone ones, without the events that undo and redo, and optionally without notes."""
    undone = _undone(events)
    other = ("undo", "redo") if notes else ("undo", "redo", "note")
    return [event for event in events if event.decision.kind not in other and event.number not in undone]


def _undone(events: Sequence[Event]) -> set[int]:
    undone: set[int] = set()
    for event in events:
        if event.decision.kind == "undo":
            undone.add(event.decision.event)
        elif event.decision.kind == "redo":
            undone.discard(event.decision.event)
    return undone


def last_undoable(events: Sequence[Event]) -> int | None:
    """Number of the last event that counts; None if there is none."""
    found = effective(events)
    return found[-1].number if found else None


def last_redoable(events: Sequence[Event]) -> int | None:
    """Number of the event that was undone last, unless a decision was made since."""
    undone = _undone(events)
    for event in reversed(events):
        if event.decision.kind == "undo" and event.decision.event in undone:
            return event.decision.event
        if event.decision.kind not in ("undo", "redo"):
            return None
    return None


def replay(model_answer: Answer, events: Sequence[Event], load_refit: LoadRefit) -> Answer:
    """Apply all events that count to the model's answer.

    Parameters
    ----------
    model_answer : Answer
        Answer as `discover` wrote it.
    events : sequence of Event
        All events in order.
    load_refit : callable
        Called with the name of a refit; returns its answer.

    Returns
    -------
    Answer
    """
    draft = _Draft(model_answer, load_refit)
    for event in effective(events):
        draft.apply(event.decision)
    return draft.answer(last=events[-1].number if events else 0)


def apply(answer: Answer, event: Event, load_refit: LoadRefit) -> Answer:
    """Answer after one more event, which neither undoes nor redoes another.

    What does not fit is skipped: names of images and categories that the answer does not have, as after a repeated
    `discover` with another result.

    Parameters
    ----------
    answer : Answer
        Answer before.
    event : Event
        The event.
    load_refit : callable
        As in `replay`.

    Returns
    -------
    Answer
    """
    draft = _Draft(answer, load_refit)
    draft.apply(event.decision)
    return draft.answer(last=event.number)


class _Draft:
    """An answer that is being changed. Categories keep their places; those merged away become None."""

    def __init__(self, start: Answer, load_refit: LoadRefit) -> None:
        self.start, self.load_refit = start, load_refit
        self.category, self.second = start.category.copy(), start.second.copy()
        self.status, self.confidence = start.status.copy(), start.confidence.copy()
        self.second_confidence, self.novelty = start.second_confidence.copy(), start.novelty.copy()
        self.outlier = None if start.outlier is None else start.outlier.copy()
        self.states: list[CategoryState | None] = list(start.categories)
        self.place = {state.id: k for k, state in enumerate(start.categories)}
        self.merged, self.rejected = dict(start.merged), dict(start.rejected)
        self.confirmed = set(start.confirmed)
        self.notes, self.refit = list(start.notes), start.refit

    def answer(self, *, last: int) -> Answer:
        kept = [k for k, state in enumerate(self.states) if state is not None]
        number = np.full(len(self.states) + 1, -1)  # -1 stays -1
        number[kept] = np.arange(len(kept))
        found = replace(
            self.start,
            category=number[self.category],
            second=number[self.second],
            status=self.status,
            confidence=self.confidence,
            second_confidence=self.second_confidence,
            novelty=self.novelty,
            outlier=self.outlier,
            categories=tuple(state for state in self.states if state is not None),
            merged=self.merged,
            rejected=self.rejected,
            confirmed=frozenset(self.confirmed),
            notes=tuple(self.notes),
            refit=self.refit,
            last=last,
        )
        found.__dict__["row"] = self.start.row  # the images are the same
        return found

    def apply(self, decision: Decision) -> None:
        getattr(self, f"_{decision.kind}")(decision)

    def _find(self, category: str) -> int | None:
        """Place of a category by its id; the id of a merged one leads to where its images are."""
        k = self.place.get(self.merged.get(category, category))
        return None if k is None or self.states[k] is None else k

    def _rows(self, files: Iterable[str]) -> Ints:
        row = self.start.row
        return np.array(sorted({row[name] for name in files if name in row}), dtype=np.int64)

    def _state(self, k: int) -> CategoryState:
        return cast(CategoryState, self.states[k])

    def _open(self, category: str, name: str = "", parent: str = "") -> int:
        """Place of a new category; of the one with this id if there is one."""
        found = self._find(category)
        if found is not None:
            return found
        taken = {state.name for state in self.states if state is not None}
        name = category if not name or name in taken else name
        self.place[category] = len(self.states)
        self.states.append(CategoryState(category, name, "new", parent=parent))
        return len(self.states) - 1

    def _restate(self, rows: Ints) -> None:
        """Set the status of rows that no person confirmed to that of their category."""
        names = np.array(["" if state is None else state.status for state in self.states] + [UNSURE], dtype="<U10")
        free = rows[np.isin(self.status[rows], ("known", "new"))]
        self.status[free] = names[self.category[free]]

    def _confirm(self, rows: Ints, k: int | None = None) -> None:
        """Record that a person assigned rows to category k; default: to the category that each has."""
        if k is None:
            rows = rows[self.category[rows] >= 0]
        else:
            away = rows[self.category[rows] != k]
            former = self.category[away]
            self.second[away] = np.where(former >= 0, former, self.second[away])
            self.second[away[self.second[away] == k]] = -1
            self.category[rows] = k
            self.status[away] = APPROVED
        self.confirmed |= set(rows[self.status[rows] == LABELLED].tolist())
        self.status[rows[self.status[rows] != LABELLED]] = APPROVED
        self.confidence[rows] = 1
        self.second_confidence[rows] = 0
        is_new = np.array([state is not None and state.status == "new" for state in self.states])
        self.novelty[rows] = np.where(np.isnan(self.novelty[rows]), np.nan, is_new[self.category[rows]])
        for row in rows.tolist() if self.rejected else ():
            if row in self.rejected:
                own = self._state(int(self.category[row])).id
                self.rejected[row] = frozenset(id for id in self.rejected[row] if id != own)

    def _rename(self, decision: Decision) -> None:
        k = self._find(decision.category)
        taken = any(state is not None and state.name == decision.name for state in self.states)
        if k is not None and decision.name and not taken:
            self.states[k] = replace(self._state(k), name=decision.name)

    def _merge(self, decision: Decision) -> None:
        target = self._find(decision.into)
        if target is None:
            return
        for name in decision.categories:
            k = self._find(name)
            if k is None and name not in self.place:  # merged before the run was continued; its id is still followed
                self.merged[name] = self._state(target).id
            if k is None or k == target:
                continue
            removed, kept = self._state(k), self._state(target)
            both = ((self.category == k) & (self.second == target)) | ((self.category == target) & (self.second == k))
            free = both & (self.status != APPROVED)
            self.confidence[free] = np.minimum(self.confidence[free] + self.second_confidence[free], 1)
            self.second[both], self.second_confidence[both] = -1, 0
            rows = np.flatnonzero(self.category == k)
            self.category[rows], self.second[self.second == k] = target, target
            self.states[target] = replace(
                kept,
                status="known" if "known" in (removed.status, kept.status) else "new",
                given=removed.given or kept.given,
                prototypes=tuple(sorted({*kept.prototypes, *removed.prototypes})),
            )
            self.states[k] = None
            # Categories merged into the removed one before are now in this one, too.
            self.merged = {old: kept.id if new == removed.id else new for old, new in self.merged.items()}
            self.merged[removed.id] = kept.id
            self._restate(np.flatnonzero(self.category == target))

    def _split(self, decision: Decision) -> None:
        k = self._find(decision.category)
        if k is None:
            return
        for group, name in zip(decision.groups, decision.ids, strict=False):
            rows = self._rows(group)
            rows = rows[self.category[rows] == k]
            part = self._open(name, parent=self._state(k).id)
            self.status[rows[self.status[rows] == LABELLED]] = APPROVED  # a person put it apart from its label
            self.category[rows] = part
            self.second[rows[self.second[rows] == part]] = -1
            self._restate(rows)

    def _move(self, decision: Decision) -> None:
        k = self._open(decision.into, decision.name) if decision.ids else self._find(decision.into)
        if k is not None:
            self._confirm(self._rows(decision.files), k)

    def _approve(self, decision: Decision) -> None:
        k = self._find(decision.category) if decision.category else None
        if decision.files or not decision.category:
            if k is not None or not decision.category:
                self._confirm(self._rows(decision.files), k)
            for row in self._rows(decision.without):
                if self.category[row] >= 0:
                    self._reject_rows(np.array([row]), int(self.category[row]))
        elif k is not None:
            self._rename(decision)
            self._reject_rows(self._rows(decision.without), k)
            self.states[k] = replace(self._state(k), approved=True)
            rows = np.flatnonzero(self.category == k)
            self._confirm(rows[self.status[rows] != LABELLED])

    def _reject(self, decision: Decision) -> None:
        k = self._find(decision.category)
        if k is not None:
            self._reject_rows(self._rows(decision.files), k)

    def _reject_rows(self, rows: Ints, k: int) -> None:
        """Assign rows of category k to their second category, and record that they are not in k."""
        for row in rows.tolist():
            self.rejected[row] = self.rejected.get(row, frozenset()) | {self._state(k).id}
            if self.category[row] != k:
                if self.second[row] == k:
                    self.second[row], self.second_confidence[row] = -1, 0
                continue
            following = int(self.second[row])
            if following >= 0 and self._is_rejected(row, following):
                following = -1
            rest = 1 - float(self.confidence[row])
            share = min(float(self.second_confidence[row]) / rest, 1.0) if rest > 0 else 0.0
            self.category[row], self.second[row], self.second_confidence[row] = following, -1, 0
            self.confidence[row] = share if following >= 0 else 0
            self.status[row] = UNSURE if following < 0 else "known"
            self._restate(np.array([row]))

    def _is_rejected(self, row: int, k: int) -> bool:
        return any(self._find(name) == k for name in self.rejected[row])

    def _junk(self, decision: Decision) -> None:
        rows = self._rows(decision.files)
        self.category[rows] = self.second[rows] = -1
        self.confidence[rows] = self.second_confidence[rows] = 0
        self.status[rows] = JUNK

    def _note(self, decision: Decision) -> None:
        self.notes.append(decision)

    def _refit(self, decision: Decision) -> None:
        """Take over the model of a refit, and its answer for images that no person confirmed."""
        found = self.load_refit(decision.refit)
        place = self._take_categories(found)
        theirs = np.array([found.row.get(name, -1) for name in self.start.files], dtype=np.int64)
        best = np.where(theirs >= 0, place[found.category[theirs]], -1)
        # A refit has to assign an image to one of its categories, also one that was rejected from all of them.
        for row in self.rejected:
            if 0 <= best[row] != self.category[row] and self._is_rejected(row, int(best[row])):
                best[row] = -1
        is_labelled = (self.status == LABELLED) & (best == self.category)
        is_labelled[list(self.confirmed)] = False  # a label that a person confirmed is not questioned again
        rows = np.flatnonzero((best >= 0) & (is_labelled | ~np.isin(self.status, (LABELLED, APPROVED, JUNK))))
        of = theirs[rows]
        self.category[rows], self.second[rows] = best[rows], place[found.second[of]]
        self.confidence[rows], self.second_confidence[rows] = found.confidence[of], found.second_confidence[of]
        self.novelty[rows] = found.novelty[of]
        if self.outlier is not None and found.outlier is not None:
            self.outlier[rows] = found.outlier[of]
        free = ~is_labelled[rows]
        self.status[rows[free]] = found.status[of[free]]
        self._release(rows[free & (found.status[of] == LABELLED)])
        self._join_seconds(rows)
        self._restate(np.arange(len(self.status)))
        is_new = np.array([state is not None and state.status == "new" for state in self.states])
        confirmed = np.flatnonzero((self.status == APPROVED) & ~np.isnan(self.novelty))
        self.novelty[confirmed] = is_new[self.category[confirmed]]
        self.refit = decision.refit

    def _take_categories(self, found: Answer) -> Ints:
        """Take over statuses and prototypes of a refit's K categories. Returns their places (K + 1,), -1 for none; the last is -1."""
        place = np.full(len(found.categories) + 1, -1)
        for state in self.states:
            if state is not None:
                self.states[self.place[state.id]] = replace(state, prototypes=())
        for i, state in enumerate(found.categories):
            k = self._find(state.id)
            if k is None:
                continue
            own = self._state(k)
            is_known = state.status == "known" or (k in place and own.status == "known")  # two that were merged are one
            prototypes = tuple(sorted({*own.prototypes, *state.prototypes}))
            self.states[k] = replace(own, status="known" if is_known else "new", prototypes=prototypes)
            place[i] = k
        return place

    def _release(self, rows: Ints) -> None:
        """Make images undecided that were labels of a refit and are none now. They get the category that the model preferred."""
        other = rows[(self.second[rows] >= 0) & (self.second_confidence[rows] > self.confidence[rows])]
        self.category[other], self.second[other] = self.second[other], self.category[other]
        p, p2 = self.confidence[other], self.second_confidence[other]
        self.confidence[other], self.second_confidence[other] = p2, p
        self.status[rows] = "known"

    def _join_seconds(self, rows: Ints) -> None:
        """Add up the two probabilities of images whose two categories are one."""
        both = rows[(self.second[rows] >= 0) & (self.second[rows] == self.category[rows])]
        self.confidence[both] = np.minimum(self.confidence[both] + self.second_confidence[both], 1)
        self.second[both], self.second_confidence[both] = -1, 0
