"""What decisions about a run are in the runs that continue it: confirmed images, confirmed labels, names and given classes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import newkind
from coloured_pictures import make_data, make_more, make_run
from newkind.discovery import Discovery
from newkind.export.contents import read_contents
from newkind.pipeline.evaluate import evaluate_run
from newkind.runs.assignments import read_categories

Continue = Callable[..., Discovery]
COLOURS = ("red", "green", "blue", "grey")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def found(tmp_path: Path) -> Discovery:
    return make_run(make_data(tmp_path / "data"), tmp_path / "run")


def proceed(found: Discovery, out: Path, **options: Any) -> Discovery:
    return newkind.continue_run(found.run.folder, out, **{"report": False, "device": "cpu"} | options)


def id_of(found: Discovery, colour: str) -> str:
    """Id of the category that has the most pictures of a colour."""
    answer = found.answer
    own = [k for k, name in zip(answer.category, answer.files, strict=True) if colour in Path(name).name and k >= 0]
    return answer.categories[int(np.bincount(own).argmax())].id


def status_of(found: Discovery, file: str) -> str:
    return str(found.answer.status[found.answer.row[file]])


def test_an_image_that_was_rejected_and_moved_stays_confirmed(found: Discovery, tmp_path: Path) -> None:
    blue, grey = id_of(found, "blue"), id_of(found, "grey")
    back, away = found[blue].images[:2]
    found.reject([back, away], blue)
    found.move(back, blue)  # there is no rejection of it any more
    found.move(away, grey)  # it is still not blue
    last = found
    for out in ("run2", "run3"):
        last = proceed(last, tmp_path / out)
        assert [status_of(last, name) for name in (back, away)] == ["approved", "approved"]
        assert (back in last[blue].images, away in last[grey].images) == (True, True)


def test_a_label_that_was_confirmed_stays_confirmed(found: Discovery, tmp_path: Path) -> None:
    file = next(line.file for line in found.assignments if line.status == "labelled" and "red" in line.file)
    found.approve("red", files=file)
    after = proceed(found, tmp_path / "run2")
    row = after.answer.row[file]
    assert (status_of(after, file), after.answer.confidence[row]) == ("labelled", 1)
    assert after.answer.confirmed == {row}


def test_decisions_against_labels_stay_in_all_continued_runs(found: Discovery, tmp_path: Path) -> None:
    blue = id_of(found, "blue")
    reds = [line.file for line in found.assignments if line.status == "labelled" and "red" in line.file]
    moved, junk, rejected = reds[:3]
    found.move(moved, blue)
    found.junk(junk)
    found.reject(rejected, "red")
    last = found
    for out in ("run2", "run3", "run4"):
        last = proceed(last, tmp_path / out)
        assert [status_of(last, name) for name in (moved, junk)] == ["approved", "junk"]
        assert moved in last[blue].images
        assert rejected not in last["red"].images
    for _ in range(len(last.history())):
        last.undo()
    assert {status_of(last, name) for name in reds} == {"labelled"}


def test_a_class_whose_labelled_images_are_all_elsewhere_stays_empty(found: Discovery, tmp_path: Path) -> None:
    blue = id_of(found, "blue")
    found.move(list(found["red"].images), blue)
    last = found
    for out in ("run2", "run3"):
        last = proceed(last, tmp_path / out)
        assert last["red"].images == []
        assert last.answer.find("red").given


def test_rejections_before_a_merge_stay_but_an_approved_image_is_not_rejected(found: Discovery, tmp_path: Path) -> None:
    blue, grey = id_of(found, "blue"), id_of(found, "grey")
    away, approved = found[grey].images[0], found[blue].images[0]
    found.reject(away, grey)
    found.reject(approved, blue)
    found.move(approved, grey)
    found.merge([blue, grey], into=blue)
    last = found
    for out in ("run2", "run3"):
        last = proceed(last, tmp_path / out)
        assert away not in last[blue].images
        assert approved in last[blue].images
        assert status_of(last, approved) == "approved"


@pytest.fixture
def decided(found: Discovery, tmp_path: Path) -> tuple[Discovery, str, str]:
    """A run that continues one with a named and an approved category, and their ids."""
    blue, grey = id_of(found, "blue"), id_of(found, "grey")
    found.rename(blue, "fly")
    found.approve(grey)
    return proceed(found, tmp_path / "run2", add=make_more(tmp_path / "march", n_yellow=0)), blue, grey


def test_categories_that_a_person_decided_about_are_known_but_not_given(
    decided: tuple[Discovery, str, str], tmp_path: Path
) -> None:
    after, blue, grey = decided
    for each in (after, newkind.load(after.run.folder), proceed(after, tmp_path / "run3")):
        states = {state.id: (state.status, state.given, state.renamed) for state in each.answer.categories}
        assert states == {
            "red": ("known", True, False),
            "green": ("known", True, False),
            blue: ("known", False, True),
            grey: ("known", False, False),
        }
        assert {c.id: c.given for c in read_categories(each.run)} == {id: given for id, (_, given, _) in states.items()}
        named = {item.category_id: item.is_named for item in read_contents(each.run).items}
        assert named == {"red": True, "green": True, blue: True, grey: False}
    event = after.merge([blue, grey])
    assert event.decision.into == blue  # it has a name


def test_a_class_folder_with_the_name_of_a_category_makes_it_a_given_class(
    decided: tuple[Discovery, str, str], tmp_path: Path
) -> None:
    after, blue, _ = decided
    (tmp_path / "data" / "fly").mkdir()
    (tmp_path / "data" / "unlabelled" / "blue03.png").rename(tmp_path / "data" / "fly" / "blue03.png")
    again = proceed(after, tmp_path / "run3")
    assert again.answer.find(blue).given
    assert again.answer.find("fly").id == blue


def test_a_class_that_a_person_named_counts_under_its_name(decided: tuple[Discovery, str, str], tmp_path: Path) -> None:
    after, _, _ = decided
    names = {"blue": "fly", "grey": "beetle"}
    rows = [
        f"{name},{next(names.get(colour, colour) for colour in COLOURS if colour in Path(name).name)}"
        for name in after.answer.files
    ]
    (tmp_path / "truth.csv").write_text("\n".join(["file,truth", *rows]) + "\n")
    scores = evaluate_run(after.run, tmp_path / "truth.csv").evaluation
    assert scores.by_name is not None
    assert scores.by_name == scores.accuracy
    assert scores.by_name.all > 0.9
    assert {row.name: row.is_old for row in scores.classes} == {
        "red": True,
        "green": True,
        "fly": True,
        "beetle": False,
    }
