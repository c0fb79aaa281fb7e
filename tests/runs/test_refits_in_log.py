"""Refits in a log: what they keep, and undo and redo of decisions that they have learned from."""

from pathlib import Path

import numpy as np
import pytest
from random_decisions import Refits
from small_answer import small_answer, small_run

from error_codes import raises
from newkind.errors import RunError
from newkind.runs.answer import Answer
from newkind.runs.decision import Decision, Event
from newkind.runs.decisions import Decisions
from newkind.runs.replay import replay
from newkind.runs.resolve import resolve_undo

APPROVE, REFIT = Decision("approve", category="new-03"), Decision("refit", refit="one")


def undo(event: int) -> Decision:
    return Decision("undo", event=event)


def redo(event: int) -> Decision:
    return Decision("redo", event=event)


def log_of(*decisions: Decision) -> list[Event]:
    return [Event(number, "", "", number - 1, decision) for number, decision in enumerate(decisions, start=1)]


@pytest.mark.parametrize(
    ("before", "asked", "is_refused"),
    [
        ((APPROVE, REFIT), undo(1), True),
        ((APPROVE, REFIT), undo(2), False),
        ((APPROVE, REFIT), undo(0), False),
        ((APPROVE, REFIT, undo(2)), undo(1), False),
        ((APPROVE, REFIT, undo(2), undo(1)), redo(2), True),
        ((APPROVE, REFIT, undo(2), undo(1)), redo(1), False),
        ((APPROVE, REFIT, undo(2), undo(1), redo(1)), redo(2), False),
        ((APPROVE, undo(1), REFIT), redo(1), True),
        ((APPROVE, REFIT, Decision("junk", files=("000.jpg",))), undo(3), False),
        ((APPROVE, REFIT, Decision("junk", files=("000.jpg",)), Decision("refit", refit="two")), undo(3), True),
        ((APPROVE, REFIT, Decision("junk", files=("000.jpg",)), Decision("refit", refit="two")), undo(2), True),
        ((Decision("note", text="look"), APPROVE, REFIT), undo(1), False),  # a refit learns nothing from notes
        ((APPROVE, REFIT, undo(1)), redo(1), False),  # a log of an earlier version
    ],
)
def test_what_a_refit_has_learned_from_stays_until_the_refit_is_undone(
    before: tuple[Decision, ...], asked: Decision, is_refused: bool
) -> None:
    if not is_refused:
        assert resolve_undo(asked, log_of(*before)).event
        return
    with raises(RunError, "learned-by-refit"):
        resolve_undo(asked, log_of(*before))


def test_a_refused_undo_is_not_recorded(tmp_path: Path) -> None:
    decisions = Decisions(small_run(tmp_path / "run"))
    decisions.decide(APPROVE)
    decisions.log.append(REFIT)
    with raises(RunError, "learned-by-refit"):
        decisions.decide(undo(1))
    assert decisions.log.last == 2
    decisions.decide(undo(2))
    decisions.decide(undo(1))
    assert not decisions.answer.find("new-03").approved


def replayed(*decisions: Decision) -> tuple[Answer, Answer]:
    """Answer after decisions that may not be made any more, and the refit among them."""
    start, refits, made = small_answer(), Refits(), list[Decision]()
    for decision in decisions:
        if decision.kind == "refit":
            name = refits.make(replay(start, log_of(*made), refits), np.random.default_rng(0))
            decision = Decision("refit", refit=name)
        made.append(decision)
    return replay(start, log_of(*made), refits), refits("0")


def test_images_whose_approval_was_undone_are_undecided() -> None:
    answer, refit = replayed(APPROVE, REFIT, undo(1))
    start = small_answer()
    rows = start.members("new-03")
    assert set(answer.status[rows]) <= {"known", "new"}
    assert (answer.status == "labelled").tolist() == (start.status == "labelled").tolist()
    # They are where the model would have them without the labels.
    doubted = refit.second_confidence[rows] > refit.confidence[rows]
    assert doubted.any()
    names = [refit.categories[k].id for k in np.where(doubted, refit.second[rows], refit.category[rows])]
    assert [answer.categories[k].id for k in answer.category[rows]] == names
    assert (answer.confidence[rows] >= answer.second_confidence[rows]).all()


def test_a_merge_that_is_redone_after_a_refit_joins_the_prototypes() -> None:
    merge = Decision("merge", categories=("new-03", "dog"), into="new-02")
    answer, refit = replayed(merge, undo(1), REFIT, redo(1))
    parts = [refit.find(name) for name in ("dog", "new-02", "new-03")]
    joined = answer.find("new-02")
    assert joined.prototypes == tuple(sorted(p for part in parts for p in part.prototypes))
    assert joined.status == "known"
    assert set(answer.status[answer.members("new-02")]) <= {"known", "labelled"}
    assert (answer.second != answer.category)[answer.second >= 0].all()


def test_a_label_that_was_confirmed_is_not_questioned_again() -> None:
    start = small_answer()
    labelled = np.flatnonzero(start.status == "labelled")
    row = int(labelled[0])
    confirm = Decision("approve", category=start.categories[start.category[row]].id, files=(start.files[row],))
    answer, refit = replayed(confirm, REFIT, REFIT)
    assert (answer.status[row], answer.confidence[row], answer.second_confidence[row]) == ("labelled", 1, 0)
    assert refit.confidence[refit.row[start.files[row]]] < 1
    assert answer.confirmed == {row}
    assert (answer.confidence[labelled[1:]] < 1).all()  # the others follow the refit
    answer, _ = replayed(confirm, undo(1), REFIT)
    assert answer.confidence[row] < 1
