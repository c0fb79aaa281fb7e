"""Decisions about a run: what each kind does to the answer, and which are refused."""

from pathlib import Path

import numpy as np
import pytest
from small_answer import small_run

from error_codes import raises
from newkind.errors import RunError
from newkind.runs.assignments import read_assignments, read_categories
from newkind.runs.decision import Decision
from newkind.runs.decision_log import DecisionLog
from newkind.runs.decisions import Decisions
from newkind.runs.write_answer import write_answer


@pytest.fixture
def decisions(tmp_path: Path) -> Decisions:
    return Decisions(small_run(tmp_path / "run"))


def _files(decisions: Decisions, category: str) -> tuple[str, ...]:
    answer = decisions.answer
    return tuple(answer.files[i] for i in answer.members(category))


def test_a_rename_keeps_the_id_and_the_images(decisions: Decisions) -> None:
    before = _files(decisions, "new-01")
    event = decisions.decide(Decision("rename", category="new-01", name="bee"), author="ada")
    assert (event.number, event.author, event.based_on) == (1, "ada", 0)
    state = decisions.answer.find("bee")
    assert (state.id, state.status, state.renamed) == ("new-01", "new", True)
    assert _files(decisions, "new-01") == before
    lines = read_assignments(decisions.run)
    assert {line.file for line in lines if line.category == "bee"} == set(before)
    assert "bee" in {line.second for line in lines}
    assert "new-01" not in {line.category for line in lines} | {line.second for line in lines}


def test_a_merge_adds_images_prototypes_and_probabilities(decisions: Decisions) -> None:
    answer = decisions.answer
    a, b = answer.members("new-01"), answer.members("new-03")
    both = [i for i in (*a, *b) if answer.second[i] in (answer.position["new-01"], answer.position["new-03"])]
    assert both, "the test data must have images between the two"
    sums = [answer.confidence[i] + answer.second_confidence[i] for i in both]
    event = decisions.decide(Decision("merge", categories=("new-03", "new-01"), into="new-01"))
    assert event.decision.categories == ("new-03",)
    after = decisions.answer
    assert set(after.members("new-01")) == {*a, *b}
    assert after.find("new-01").prototypes == (2, 4)
    np.testing.assert_allclose(after.confidence[both], np.minimum(sums, 1), rtol=1e-6)
    assert (after.second[both] == -1).all()
    assert len(after.categories) == 4
    assert after.find("new-03").id == "new-01"


def test_by_default_a_known_class_is_the_target_of_a_merge(decisions: Decisions) -> None:
    event = decisions.decide(Decision("merge", categories=("new-01", "dog", "new-02")))
    assert event.decision.into == "dog"
    statuses = {line.status for line in read_assignments(decisions.run) if line.category == "dog"}
    assert statuses == {"labelled", "known"}
    decisions.decide(Decision("merge", categories=("new-03", "cat")))
    assert [state.id for state in decisions.answer.categories] == ["cat", "dog"]


def test_a_split_opens_categories_without_prototypes(decisions: Decisions) -> None:
    files = _files(decisions, "new-02")
    event = decisions.decide(Decision("split", category="new-02", groups=(files[:2], files[2:3])))
    assert event.decision.ids == ("new-04", "new-05")
    assert _files(decisions, "new-04") == files[:2]
    assert _files(decisions, "new-05") == files[2:3]
    assert _files(decisions, "new-02") == files[3:]
    assert decisions.answer.find("new-04").prototypes == ()
    assert decisions.answer.find("new-04").parent == "new-02"


def test_a_split_of_all_images_leaves_the_first_group(decisions: Decisions) -> None:
    files = _files(decisions, "new-02")
    decisions.decide(Decision("split", category="new-02", groups=(files[:2], files[2:])))
    assert _files(decisions, "new-02") == files[:2]
    assert _files(decisions, "new-04") == files[2:]


def test_ids_are_not_used_again_after_an_undo(decisions: Decisions) -> None:
    files = _files(decisions, "new-02")
    decisions.decide(Decision("split", category="new-02", groups=(files[:1],)))
    decisions.decide(Decision("undo"))
    assert decisions.decide(Decision("split", category="new-02", groups=(files[:2],))).decision.ids == ("new-05",)


def test_moved_images_are_confirmed(decisions: Decisions) -> None:
    files = _files(decisions, "new-02")[:2] + _files(decisions, "dog")[:1]
    decisions.decide(Decision("move", files=files, into="cat"))
    lines = {line.file: line for line in read_assignments(decisions.run)}
    for name in files:
        line = lines[name]
        assert (line.category, line.status, line.confidence) == ("cat", "approved", 1.0)
    assert [lines[name].second for name in files] == ["new-02", "new-02", "dog"]


def test_a_move_can_open_a_category(decisions: Decisions) -> None:
    event = decisions.decide(Decision("move", files=("000.jpg", "001.jpg"), name="bee"))
    assert event.decision.into == "new-04"
    assert decisions.answer.find("bee").id == "new-04"
    assert _files(decisions, "new-04") == ("000.jpg", "001.jpg")


def test_approval_of_a_category_confirms_its_images(decisions: Decisions) -> None:
    n_labelled = sum(line.status == "labelled" for line in read_assignments(decisions.run))
    decisions.decide(Decision("approve", category="new-01"))
    decisions.decide(Decision("approve", category="dog"))
    assert {line.status for line in read_assignments(decisions.run) if line.category == "new-01"} == {"approved"}
    assert {line.status for line in read_assignments(decisions.run) if line.category == "dog"} == {
        "approved",
        "labelled",
    }
    assert n_labelled == sum(line.status == "labelled" for line in read_assignments(decisions.run))
    approved = {category.id for category in read_categories(decisions.run) if category.approved}
    assert approved == {"new-01", "dog"}


def test_an_approval_names_a_category_and_leaves_images_out(decisions: Decisions) -> None:
    before = decisions.answer
    rows = before.members("new-01")
    wrong = tuple(before.files[i] for i in rows[:2])
    event = decisions.decide(Decision("approve", category="new-01", name="bee", without=(*wrong, wrong[0])))
    assert event.decision.without == wrong
    answer = decisions.answer
    bee = answer.find("bee")
    assert (bee.id, bee.approved, bee.renamed) == ("new-01", True, True)
    assert set(answer.rejected) == set(rows[:2].tolist())
    assert (answer.category[rows[:2]] != answer.position["new-01"]).all()
    assert (answer.status[rows[:2]] != "approved").all()
    assert (answer.status[rows[2:]] == "approved").all()
    with raises(RunError, "name-taken"):
        decisions.decide(Decision("approve", category="new-02", name="bee"))
    with raises(RunError, "unknown-file"):
        decisions.decide(Decision("approve", category="new-02", without=("nowhere.jpg",)))
    for wanted in ({"files": wrong, "name": "x"}, {"files": wrong, "category": "new-01", "without": wrong}):
        with raises(RunError, "invalid-decision"):
            Decision("approve", **wanted)  # type: ignore[arg-type]
    decisions.decide(Decision("undo"))
    assert (decisions.answer.category == before.category).all()
    assert not decisions.answer.rejected


def test_images_of_several_categories_are_approved_and_rejected_by_one_decision(decisions: Decisions) -> None:
    before = decisions.answer
    first, second = (before.members(name) for name in ("new-01", "new-02"))
    right = tuple(before.files[i] for i in (first[0], second[0]))
    wrong = tuple(before.files[i] for i in (first[1], second[1]))
    decisions.decide(Decision("approve", files=right, without=wrong))
    answer = decisions.answer
    assert (answer.status[[first[0], second[0]]] == "approved").all()
    assert answer.rejected == {first[1]: frozenset({"new-01"}), second[1]: frozenset({"new-02"})}
    assert not answer.find("new-01").approved
    decisions.decide(Decision("approve", without=(before.files[first[2]],)))
    assert decisions.answer.rejected[first[2]] == frozenset({"new-01"})
    with raises(RunError, "invalid-decision"):
        decisions.decide(Decision("approve", files=right, without=right[:1]))
    for event in (2, 1):
        decisions.decide(Decision("undo", event=event))
    assert (decisions.answer.category == before.category).all()


def test_approved_images_do_not_approve_their_category(decisions: Decisions) -> None:
    file = _files(decisions, "new-01")[0]
    decisions.decide(Decision("approve", files=(file,)))
    assert not decisions.answer.find("new-01").approved
    decisions.decide(Decision("approve", files=(file,), category="new-02"))
    assert file in _files(decisions, "new-02")


def test_a_rejected_image_gets_its_second_category_and_then_none(decisions: Decisions) -> None:
    answer = decisions.answer
    row = int(answer.members("new-01")[0])
    file, second = answer.files[row], answer.categories[answer.second[row]]
    expected = answer.second_confidence[row] / (1 - answer.confidence[row])
    decisions.decide(Decision("reject", files=(file,), category="new-01"))
    after = decisions.answer
    assert after.categories[after.category[row]].id == second.id
    assert after.status[row] == second.status
    assert after.confidence[row] == pytest.approx(expected, rel=1e-4)
    assert after.rejected == {row: frozenset({"new-01"})}
    decisions.decide(Decision("reject", files=(file,), category=second.id))
    line = read_assignments(decisions.run)[row]
    assert (line.category, line.status, line.confidence) == ("", "unsure", 0.0)


def test_a_move_to_a_rejected_category_takes_the_rejection_back(decisions: Decisions) -> None:
    file = _files(decisions, "new-01")[0]
    decisions.decide(Decision("reject", files=(file,), category="new-01"))
    decisions.decide(Decision("move", files=(file,), into="new-01"))
    assert not any(decisions.answer.rejected.values())


def test_junk_has_no_category(decisions: Decisions) -> None:
    decisions.decide(Decision("junk", files=("003.jpg",)))
    line = read_assignments(decisions.run)[3]
    assert (line.category, line.status, line.second) == ("", "junk", "")
    with raises(RunError, "unknown-category"):
        decisions.decide(Decision("approve", files=("003.jpg",)))
    decisions.decide(Decision("move", files=("003.jpg",), into="dog"))
    assert read_assignments(decisions.run)[3].status == "approved"


def test_undo_and_redo(decisions: Decisions) -> None:
    decisions.decide(Decision("rename", category="new-01", name="bee"))
    decisions.decide(Decision("rename", category="new-02", name="wasp"))
    assert decisions.decide(Decision("undo")).decision.event == 2
    assert decisions.decide(Decision("undo")).decision.event == 1
    with raises(RunError, "nothing-to-undo"):
        decisions.decide(Decision("undo"))
    assert decisions.answer.find("new-01").name == "new-01"
    assert decisions.decide(Decision("redo")).decision.event == 1
    decisions.decide(Decision("rename", category="new-03", name="ant"))
    with raises(RunError, "nothing-to-redo"):
        decisions.decide(Decision("redo"))
    assert decisions.decide(Decision("redo", event=2)).decision.event == 2
    assert [state.name for state in decisions.answer.categories] == ["cat", "dog", "bee", "wasp", "ant"]
    assert decisions.decide(Decision("undo", event=1)).decision.event == 1
    assert [state.name for state in decisions.answer.categories] == ["cat", "dog", "new-01", "wasp", "ant"]


@pytest.mark.parametrize(
    ("code", "decision"),
    [
        ("unknown-category", Decision("rename", category="bee", name="wasp")),
        ("unknown-category", Decision("merge", categories=("new-01", "bee"))),
        ("unknown-file", Decision("junk", files=("no.jpg",))),
        ("unknown-file", Decision("split", category="new-01", groups=(("no.jpg",),))),
        ("name-taken", Decision("rename", category="new-01", name="dog")),
        ("name-taken", Decision("rename", category="new-01", name="new-02")),
        ("name-taken", Decision("move", files=("000.jpg",), name="dog")),
        ("nothing-to-do", Decision("rename", category="new-01", name="new-01")),
        ("nothing-to-do", Decision("merge", categories=("new-01", "new-01"))),
        ("nothing-to-undo", Decision("undo")),
        ("nothing-to-undo", Decision("undo", event=5)),
        ("nothing-to-redo", Decision("redo")),
        ("invalid-decision", Decision("move", files=("000.jpg",), into="dog", name="bee")),
    ],
)
def test_decisions_that_do_not_fit_are_refused_and_not_recorded(
    decisions: Decisions, code: str, decision: Decision
) -> None:
    with raises(RunError, code):
        decisions.decide(decision)
    assert decisions.log.last == 0


def test_a_merged_name_is_not_given_to_another_category(decisions: Decisions) -> None:
    decisions.decide(Decision("merge", categories=("new-03",), into="new-02"))
    with raises(RunError, "name-taken"):
        decisions.decide(Decision("rename", category="new-01", name="new-03"))


def test_another_process_sees_the_same_answer(decisions: Decisions) -> None:
    other = Decisions(decisions.run)
    assert other.answer.last == 0
    decisions.decide(Decision("rename", category="new-01", name="bee"))
    assert other.answer.find("new-01").name == "bee"
    decisions.decide(Decision("undo"))
    assert other.answer.find("new-01").name == "new-01"
    assert other.answer.last == decisions.answer.last == 2


def test_the_files_follow_and_come_back(decisions: Decisions) -> None:
    run = decisions.run
    before = [run.assignments_file.read_bytes(), read_categories(run)]
    write_answer(run)
    assert not run.model_categories_file.exists()
    assert run.assignments_file.read_bytes() == before[0]
    decisions.decide(Decision("merge", categories=("new-03", "new-01")))
    decisions.decide(Decision("rename", category="new-01", name="bee"))
    write_answer(run)
    assert b"new-03" not in run.assignments_file.read_bytes()
    names = [row["name"] for row in run.read_json(run.categories_file)["categories"]]
    assert names == [category.name for category in read_categories(run)]
    decisions.decide(Decision("undo"))
    decisions.decide(Decision("undo"))
    write_answer(run)
    assert [run.assignments_file.read_bytes(), read_categories(run)] == before


def test_ids_edited_by_hand_are_refused_everywhere(decisions: Decisions) -> None:
    run = decisions.run
    text = run.categories_file.read_text().replace('"new-01"', '"bee"')
    run.categories_file.write_text(text)
    for read in (read_assignments, read_categories):
        with raises(RunError, "assignments-mismatch"):
            read(run)
    with raises(RunError, "assignments-mismatch"):
        Decisions(run).decide(Decision("rename", category="new-02", name="wasp"))


@pytest.mark.parametrize("decided", [False, True])
def test_names_edited_by_hand_are_followed_nowhere_and_told(
    decisions: Decisions, decided: bool, caplog: pytest.LogCaptureFixture
) -> None:
    run = decisions.run
    if decided:
        decisions.decide(Decision("rename", category="new-02", name="bee"))
        write_answer(run)
    assert not caplog.records
    run.categories_file.write_text(run.categories_file.read_text().replace('"name": "new-01"', '"name": "wasp"'))
    names = {line.category for line in read_assignments(run)}
    assert {category.name for category in read_categories(run)} == names
    assert "new-01" in names
    Decisions(run).decide(Decision("rename", category="new-03", name="ant"))
    write_answer(run)
    assert sum("edited by hand" in record.message for record in caplog.records) >= 1
    assert "wasp" not in run.categories_file.read_text() + run.assignments_file.read_text()
    caplog.clear()
    write_answer(run)
    assert not caplog.records


def test_a_run_that_was_overwritten_is_not_decided_about(decisions: Decisions) -> None:
    """The log of the new run stays as it is, whether the old one had decisions or not."""
    run = decisions.run
    assert decisions.answer.last == 0
    run.update_config(fingerprint="another run")
    for based_on in (None, 0):
        with raises(RunError, "stale"):
            decisions.decide(Decision("rename", category="new-01", name="bee"), based_on=based_on)
    assert DecisionLog(run.folder).events() == []
    assert Decisions(run).decide(Decision("rename", category="new-01", name="bee")).number == 1


def test_an_answer_that_was_replaced_without_decisions_is_read_again(decisions: Decisions) -> None:
    run = decisions.run
    assert len(decisions.answer) == 40
    other = small_run(run.folder.parent / "other", 30)
    for name in ("assignments.csv", "categories.json"):
        (other.folder / name).replace(run.folder / name)
    assert len(decisions.answer) == 30
