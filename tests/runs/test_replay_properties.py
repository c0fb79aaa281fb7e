"""Properties of any sequence of decisions: one answer, complete undo, nothing lost."""

import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_decisions import ALL_KINDS, KINDS, Refits, no_refit, random_events
from small_answer import small_answer

from newkind.runs.answer import Answer
from newkind.runs.decision import Decision, Event, event_from_json
from newkind.runs.replay import apply, effective, last_redoable, last_undoable, replay
from newkind.runs.resolve import resolve_undo

MODEL = small_answer(30)
sequences = given(kinds=st.lists(st.sampled_from(KINDS), max_size=25), seed=st.integers(0, 10_000))
with_refits = given(kinds=st.lists(st.sampled_from(ALL_KINDS), max_size=25), seed=st.integers(0, 10_000))


def state_of(answer: Answer) -> object:
    """Everything that an answer says, for comparisons."""
    rejected = {row: ids for row, ids in answer.rejected.items() if ids}
    return answer.assignments_by_id(), answer.categories, answer.merged, rejected, answer.notes, answer.refit


@settings(max_examples=60, deadline=None)
@sequences
def test_replay_is_deterministic_and_the_same_step_by_step(kinds: list[str], seed: int) -> None:
    events = random_events(MODEL, kinds, seed)
    found = replay(MODEL, events, no_refit)
    again = [event_from_json(json.dumps(event.to_json())) for event in events]
    assert state_of(replay(small_answer(30), again, no_refit)) == state_of(found)
    answer = replay(MODEL, [], no_refit)
    for event in effective(events):
        answer = apply(answer, event, no_refit)
    assert state_of(answer) == state_of(found)


@settings(max_examples=60, deadline=None)
@sequences
def test_every_answer_is_consistent(kinds: list[str], seed: int) -> None:
    answer = replay(MODEL, random_events(MODEL, kinds, seed), no_refit)
    check_consistent(answer)
    assert sorted(p for state in answer.categories for p in state.prototypes) == list(range(5))


@settings(max_examples=100, deadline=None)
@with_refits
def test_every_answer_with_refits_is_consistent(kinds: list[str], seed: int) -> None:
    refits = Refits()
    events = random_events(MODEL, kinds, seed, refits)
    answer = replay(MODEL, events, refits)
    check_consistent(answer)
    prototypes = [p for state in answer.categories for p in state.prototypes]
    assert len(set(prototypes)) == len(prototypes)
    while (last := last_undoable(events)) is not None:
        events.append(Event(len(events) + 1, "", "", 0, resolve_undo(Decision("undo", event=last), events)))
        check_consistent(replay(MODEL, events, refits))
    assert state_of(replay(MODEL, events, refits)) == state_of(MODEL)


@settings(max_examples=60, deadline=None)
@with_refits
def test_any_undo_or_redo_leaves_a_consistent_answer_with_refits(kinds: list[str], seed: int) -> None:
    """Also those that are refused now, which logs of earlier versions may have."""
    refits = Refits()
    events = random_events(MODEL, kinds, seed, refits)
    for event in effective(events):
        undone = [*events, Event(len(events) + 1, "", "", 0, Decision("undo", event=event.number))]
        answer = replay(MODEL, undone, refits)
        check_consistent(answer)
        assert (answer.status[MODEL.status != "labelled"] != "labelled").all()


def check_consistent(answer: Answer) -> None:
    """Fail if parts of an answer contradict each other."""
    k = len(answer.categories)
    assert answer.files == MODEL.files
    assert answer.category.min() >= -1
    assert max(answer.category.max(), answer.second.max()) < k
    names = [state.name for state in answer.categories]
    assert len(set(names)) == k
    assert set(answer.status) <= {"labelled", "known", "new", "unsure", "approved", "junk"}
    assert (answer.category[answer.status == "junk"] == -1).all()
    assert ((answer.category >= 0) | np.isin(answer.status, ("junk", "unsure"))).all()
    assert ((answer.confidence >= 0) & (answer.confidence <= 1)).all()
    assert (answer.second != answer.category)[answer.second >= 0].all()
    for name in [state.id for state in MODEL.categories]:
        assert answer.find(name).id in {state.id for state in answer.categories}
    for status in ("known", "new"):
        own = answer.category[answer.status == status]
        assert {answer.categories[i].status for i in own} <= {status}
    assert sum(category.n_images for category in answer.list_categories()) == int(
        ((answer.status != "labelled") & (answer.category >= 0)).sum()
    )


@settings(max_examples=60, deadline=None)
@sequences
def test_undo_then_redo_is_the_identity(kinds: list[str], seed: int) -> None:
    events = random_events(MODEL, kinds, seed)
    found = replay(MODEL, events, no_refit)
    last = last_undoable(events)
    if last is None:
        return
    undone = [*events, Event(len(events) + 1, "", "", 0, Decision("undo", event=last))]
    without = [event for event in effective(events) if event.number != last]
    assert state_of(replay(MODEL, undone, no_refit)) == state_of(replay(MODEL, without, no_refit))
    assert last_redoable(undone) == last
    redone = [*undone, Event(len(undone) + 1, "", "", 0, Decision("redo", event=last))]
    assert state_of(replay(MODEL, redone, no_refit)) == state_of(found)


@settings(max_examples=30, deadline=None)
@sequences
def test_everything_can_be_undone(kinds: list[str], seed: int) -> None:
    events = random_events(MODEL, kinds, seed)
    while (last := last_undoable(events)) is not None:
        events.append(Event(len(events) + 1, "", "", 0, Decision("undo", event=last)))
    assert state_of(replay(MODEL, events, no_refit)) == state_of(MODEL)


@settings(max_examples=30, deadline=None)
@sequences
def test_any_decision_can_be_taken_back_later(kinds: list[str], seed: int) -> None:
    """Later decisions may then refer to categories that are gone; what fits still applies."""
    events = random_events(MODEL, kinds, seed)
    for event in effective(events):
        undone = [*events, Event(len(events) + 1, "", "", 0, Decision("undo", event=event.number))]
        answer = replay(MODEL, undone, no_refit)
        names = [state.name for state in answer.categories]
        assert len(set(names)) == len(names)
        assert answer.category.max() < len(names)
