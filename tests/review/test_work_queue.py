"""The queue: what is proposed, in which order, and how much is left."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from newkind.review.snapshot import DIFFERENT, Snapshot, key_of
from newkind.review.space import FeatureSpace
from newkind.review.work_queue import SHEET, doubtful_lines, make_queue, make_sheets, progress_of
from newkind.runs.answer import Answer, answer_of
from newkind.runs.assignment import Assignment, Category
from newkind.runs.decision import Decision, Event
from newkind.runs.replay import replay

CENTRES = {"a": (1.0, 0, 0), "new-01": (0, 1.0, 0), "new-02": (0, 0.9, 0.2), "new-03": (0, 0, 1.0)}


def image(i: int, category: str, **values: object) -> Assignment:
    status = "known" if category == "a" else "new"
    given = {
        "status": status,
        "confidence": 0.9,
        "second": "new-03",
        "second_confidence": 0.02,
        "outlier": False,
    } | values
    return Assignment(f"{category}-{i}.png", category, **given)  # type: ignore[arg-type]


def make(lines: list[Assignment], decisions: list[Decision] | None = None) -> Snapshot:
    """Snapshot of images whose features lie around the centres of their categories."""
    rng = np.random.default_rng(0)
    categories = [
        Category(name, "known" if name == "a" else "new", k, 0, 0.0, id=name) for k, name in enumerate(CENTRES)
    ]
    events = [Event(i + 1, "", "", 0, decision) for i, decision in enumerate(decisions or [])]
    features = np.array([CENTRES[line.category] for line in lines]) + 0.02 * rng.normal(size=(len(lines), 3))

    def no_refit(name: str) -> Answer:
        raise AssertionError(name)

    return Snapshot(replay(answer_of(lines, categories), events, no_refit), FeatureSpace(features.astype(np.float16)))


def everything() -> list[Assignment]:
    return [image(i, name) for name, n in (("a", 20), ("new-01", 30), ("new-02", 12), ("new-03", 8)) for i in range(n)]


def test_similar_new_categories_are_a_likely_merge() -> None:
    snapshot = make(everything())
    merges = [task for task in make_queue(snapshot) if task.kind == "merge"]
    assert [{snapshot.categories[task.k].id, snapshot.categories[task.other].id} for task in merges] == [
        {"new-01", "new-02"}
    ]
    assert merges[0].similarity > 0.9


@pytest.mark.parametrize(
    "decisions",
    [
        [Decision("note", category="new-02", text=DIFFERENT + "new-01")],
        [Decision("approve", category="new-01"), Decision("approve", category="new-02")],
        [Decision("rename", category="new-01", name="bee"), Decision("rename", category="new-02", name="wasp")],
        [Decision("merge", categories=("new-02",), into="new-01")],
    ],
)
def test_a_merge_that_was_decided_is_not_proposed(decisions: list[Decision]) -> None:
    assert all(task.kind != "merge" for task in make_queue(make(everything(), decisions)))


def test_categories_without_undecided_images_are_not_to_be_approved() -> None:
    snapshot = make(everything(), [Decision("approve", category="new-01")])
    waiting = {snapshot.categories[task.k].id for task in make_queue(snapshot) if task.kind == "approve"}
    assert waiting == {"new-02", "new-03"}  # a has a name and few images: it is on a sheet


def test_the_queue_is_ordered_by_value() -> None:
    lines = [*everything(), image(99, "a", second="new-01", confidence=0.5, second_confidence=0.45)]
    tasks = make_queue(make(lines))
    assert [task.value for task in tasks] == sorted((task.value for task in tasks), reverse=True)
    assert tasks[-1].kind == "images"


def test_categories_with_doubtful_images_come_first() -> None:
    lines = [
        image(i, line.category, confidence=0.4 if line.category == "new-03" else 0.99)
        for i, line in enumerate(everything())
    ]
    snapshot = make(lines)
    waiting = [snapshot.categories[task.k].id for task in make_queue(snapshot) if task.kind == "approve"]
    assert waiting == ["new-03", "new-01", "new-02"]  # then by size


def test_answers_about_merges_change_the_value_of_others() -> None:
    def value(*decisions: Decision) -> float:
        tasks = make_queue(make(everything(), list(decisions)))
        return next(task.value for task in tasks if task.kind == "merge" and task.similarity > 0.9)

    different = Decision("note", category="a", text=DIFFERENT + "new-03")
    merged = Decision("merge", categories=("new-03",), into="a")
    assert value(different) < value() < value(merged)


def test_kinds_of_doubtful_images() -> None:
    lines = [
        image(0, "a", second="new-01", confidence=0.55, second_confidence=0.4),
        image(1, "a", second="new-01", confidence=0.5, second_confidence=0.45),
        image(2, "a", status="labelled", second="new-01", confidence=0.1, second_confidence=0.8),
        image(3, "a", status="labelled", second="new-01", confidence=0.45, second_confidence=0.5),
        image(4, "new-01", outlier=True),
        image(5, "new-01"),
    ]
    snapshot = make(lines)
    assert doubtful_lines(snapshot, "ambiguous").tolist() == [1, 0]
    assert doubtful_lines(snapshot, "mislabelled").tolist() == [2]
    assert doubtful_lines(snapshot, "outliers").tolist() == [4]
    decided = make(
        lines,
        [Decision("approve", category="a", files=("a-1.png", "a-2.png")), Decision("junk", files=("new-01-4.png",))],
    )
    assert doubtful_lines(decided, "ambiguous").tolist() == [0]
    assert doubtful_lines(decided, "mislabelled").tolist() == []
    assert doubtful_lines(decided, "outliers").tolist() == []


def test_few_images_of_named_categories_are_on_one_sheet() -> None:
    lines = [*everything(), *(image(i, "a", confidence=0.5 + i / 1000) for i in range(100, 106))]
    named = [
        Decision("approve", category="a", files=tuple(f"a-{i}.png" for i in range(20))),
        Decision("rename", category="new-03", name="bee"),
        Decision("rename", category="new-01", name="wasp"),  # has too many images for a sheet
    ]
    snapshot = make(lines, named)
    (task,) = (task for task in make_queue(snapshot) if task.kind == "sheet")
    (found,) = make_sheets(snapshot)
    names = {snapshot.categories[k].name for k in snapshot.answer.category[found]}
    assert (task.n_images, len(found), names) == (14, 14, {"a", "bee"})
    assert found[:6].tolist() == list(range(70, 76))  # the least confident first
    waiting = {snapshot.categories[task.k].name for task in make_queue(snapshot) if task.kind == "approve"}
    assert waiting == {"wasp", "new-02"}
    files = snapshot.answer.files
    done = make(lines, [*named, Decision("approve", files=tuple(files[i] for i in found[1:]), without=(files[70],))])
    assert [sheet.tolist() for sheet in make_sheets(done)] == [[70]]  # in its second category now
    assert done.categories[done.answer.category[70]].name == "bee"
    assert done.answer.rejected == {70: frozenset({"a"})}


def test_sheets_have_whole_categories() -> None:
    sizes, confidence = {"a": 22, "new-01": 20, "new-02": 15, "new-03": 8}, {"a": 0.9, "new-01": 0.5, "new-02": 0.8}
    lines = [image(i, k, confidence=confidence.get(k, 0.7)) for k, n in sizes.items() for i in range(n)]
    renamed = [Decision("rename", category=f"new-0{i}", name=f"insect {i}") for i in (1, 2, 3)]
    snapshot = make(lines, renamed)
    sheets = [snapshot.answer.category[sheet] for sheet in make_sheets(snapshot)]
    on_sheets = [[snapshot.categories[k].id for k in dict.fromkeys(sheet.tolist())] for sheet in sheets]
    assert on_sheets == [["new-01", "new-03", "new-02"], ["a"]]  # by confidence, as many as fit
    assert [len(sheet) for sheet in sheets] == [43, 22]
    assert sorted(np.concatenate(make_sheets(snapshot)).tolist()) == list(range(65))
    assert max(map(len, sheets)) <= SHEET


def test_images_without_a_category_are_in_the_queue() -> None:
    files = ("new-03-0.png", "new-03-1.png")
    snapshot = make(everything(), [Decision("reject", category="new-03", files=files)])
    lines = snapshot.answer.rows_of(files)
    assert doubtful_lines(snapshot, "unplaced").tolist() == lines.tolist()
    assert "unplaced" in {task.about for task in make_queue(snapshot)}
    k = snapshot.position("new-03")
    assert k not in snapshot.nearest(int(lines[0]))
    assert {snapshot.categories[j].id for j in snapshot.nearest(int(lines[0]))} == {"a", "new-01", "new-02"}


def test_progress_and_the_time_that_is_left() -> None:
    snapshot = make(everything(), [Decision("approve", category="new-01")])
    progress = progress_of(snapshot, [])
    assert (progress.n_decided, progress.n_categories) == (1, 4)
    assert (progress.n_images_decided, progress.n_images) == (30, 70)
    start = datetime(2030, 1, 1, tzinfo=UTC)
    seconds = [0, 40, 80, 120, 160, 200, 10_000]  # one per 40 s, then a pause
    events = [
        Event(i + 1, (start + timedelta(seconds=s)).isoformat(), "", 0, Decision("note", text="x"))
        for i, s in enumerate(seconds)
    ]
    assert progress_of(snapshot, events).minutes_left == 2  # three categories of 40 s each


def test_keys_of_categories_are_plain_text() -> None:
    assert key_of("new-01") == "new-01"
    assert key_of("two words & more") == "two words & more"
    odd = [key_of(name) for name in ("caf\udce9", "line\nbreak", "~tilde")]
    assert all(key.startswith("~") and key.isascii() for key in odd)
    assert len(set(odd)) == 3


def test_typicality_follows_confirmed_images() -> None:
    snapshot = make(everything())
    k = snapshot.position("new-01")
    assert k is not None
    files = tuple(f"new-01-{i}.png" for i in range(6))
    confirmed = make(everything(), [Decision("approve", category="new-01", files=files)])
    lines = confirmed.answer.rows_of(files)
    assert confirmed.space is not None
    assert np.allclose(np.asarray(confirmed.centre(k)), confirmed.space.centre(lines))
    assert sorted(confirmed.by_typicality(k).tolist()) == snapshot.members[k].tolist()
