"""Everything that reads a run follows the decisions about it."""

import csv
from pathlib import Path

import numpy as np
import pytest

import newkind
from feature_clusters import feature_clusters
from newkind.discovery import Discovery
from newkind.pipeline.evaluate import evaluate_run
from newkind.report.contents import read_contents
from newkind.runs.decision_log import DecisionLog
from newkind.runs.run import Run

N_EACH, N_CLASSES, N_KNOWN = 16, 6, 3


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "clouds.npz"
    np.savez(path, **feature_clusters(N_CLASSES, N_KNOWN, n_each=N_EACH, dim=8))
    return path


@pytest.fixture
def found(tmp_path: Path, data: Path) -> Discovery:
    return newkind.discover(data, tmp_path / "run", n_categories=N_CLASSES, report=False)


def _truth(found: Discovery, folder: Path) -> Path:
    """Table of the true classes, under the names of the images."""
    path = folder / "truth.csv"
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["file_name", "label"])
        writer.writerows([line.file, i // N_EACH] for i, line in enumerate(found.assignments))
    return path


def test_python_methods(found: Discovery) -> None:
    new = [category.id for category in found.categories if category.status == "new"]
    found.rename(new[0], "bee")
    assert found["bee"].id == new[0]
    images = found[new[0]].images
    found.approve(files=images[:2])
    found.reject(images[3], "bee")
    found.junk(images[4])
    found.note("a note", category="bee")
    found.move(images[5], "1")
    found.split("bee", [images[:2]])
    assert [event.decision.kind for event in found.history()] == [
        "rename", "approve", "reject", "junk", "note", "move", "split",
    ]  # fmt: skip
    frame = found.to_dataframe()
    assert list(frame["status"]) == [line.status for line in found.assignments]
    assert found.undo().decision.event == 7
    assert found.redo().decision.event == 7
    again = newkind.load(found.run.folder)
    assert again.assignments == found.assignments
    assert again.categories == found.categories
    with open(found.run.assignments_file, newline="") as file:
        assert [row["category"] for row in csv.DictReader(file)] == [line.category for line in found.assignments]


def test_predict_adds_up_the_probabilities_of_merged_categories(found: Discovery, data: Path) -> None:
    new = [category.id for category in found.categories if category.status == "new"]
    before = found.predict(data)
    found.merge(new[:2], into=new[0])
    found.rename(new[0], "bee")
    after = found.predict(data)
    assert new[1] not in {line.category for line in after}
    for old, line in zip(before, after, strict=True):
        assert line.novelty == pytest.approx(old.novelty, abs=2e-4)
        if {old.category, old.second} == set(new[:2]):
            assert line.category == "bee"
            assert line.confidence == pytest.approx(old.confidence + old.second_confidence, abs=0.2)
        elif old.category in new[:2]:
            assert line.category == "bee"
            assert line.confidence >= old.confidence - 2e-4
        else:
            assert line.confidence == pytest.approx(old.confidence, abs=2e-4)
    assert newkind.predict(found.run.folder, data) == after
    found.undo()
    found.undo()
    assert found.predict(data) == before


def test_new_categories_merged_into_a_known_one_are_not_novel(found: Discovery, data: Path) -> None:
    new = [category.id for category in found.categories if category.status == "new"]
    found.merge([*new, "0"])
    assert {line.novelty for line in found.predict(data)} == {0.0}


def test_evaluate_follows(found: Discovery, tmp_path: Path) -> None:
    truth = _truth(found, tmp_path)
    before = evaluate_run(found.run, truth).evaluation
    found.rename("0", "zero")
    assert evaluate_run(found.run, truth).evaluation.by_name == before.by_name
    for i, line in enumerate(found.assignments):  # a person corrects everything
        kind = str(i // N_EACH) if i // N_EACH < N_KNOWN else None
        if kind is not None and line.status != "labelled" and line.category != kind:
            found.move(line.file, kind)
    scores = evaluate_run(found.run, truth).evaluation
    assert scores.by_name is not None
    assert scores.by_name.old == 1.0
    n_unlabelled = N_CLASSES * N_EACH - N_KNOWN * N_EACH // 2
    assert scores.n_samples == n_unlabelled
    labelled = next(line.file for line in found.assignments if line.status == "labelled")
    found.move(labelled, "1")
    assert evaluate_run(found.run, truth).evaluation.n_samples == n_unlabelled


def test_the_report_leaves_out_junk_and_counts_the_rest(found: Discovery) -> None:
    new = [category.id for category in found.categories if category.status == "new"]
    found.junk(found[new[0]].images[:3])
    found.approve(new[0])
    found.merge([new[1], new[2]])
    contents = read_contents(found.run)
    assert contents.n_left_out == 3
    assert contents.n_decisions == 3
    assert len(contents) == N_CLASSES * N_EACH - 3
    assert contents.features is not None
    assert len(contents.features) == len(contents)
    assert contents.scores is None
    from newkind.report.write import write_report

    text = write_report(found.run).read_text()
    assert "3 decisions" in text


def test_a_repeated_discovery_keeps_decisions(found: Discovery, data: Path, caplog: pytest.LogCaptureFixture) -> None:
    new = [category.id for category in found.categories if category.status == "new"]
    found.rename(new[1], "bee")
    before = found.assignments
    caplog.set_level("INFO")
    again = newkind.discover(data, found.run.folder, n_categories=N_CLASSES, report=False)
    assert "1 decision" in caplog.text
    assert [event.decision.kind for event in again.history()] == ["rename"]
    assert again.assignments == before
    assert "bee" in found.run.assignments_file.read_text()


def test_another_answer_keeps_the_names_of_its_categories(found: Discovery, data: Path) -> None:
    """Another threshold is the same run; its answer is written again."""
    new = [category.id for category in found.categories if category.status == "new"]
    found.rename(new[0], "bee")
    images = set(found["bee"].images)
    again = newkind.discover(data, found.run.folder, n_categories=N_CLASSES, report=False, min_confidence=0.9)
    assert set(again["bee"].images) == images
    assert "unsure" in {line.status for line in again.assignments}


def test_an_overwritten_run_keeps_its_log_apart(found: Discovery, data: Path) -> None:
    new = [category.id for category in found.categories if category.status == "new"]
    found.rename(new[0], "bee")
    again = newkind.discover(data, found.run.folder, n_categories=N_CLASSES, report=False, overwrite=True)
    assert again.history() == []
    assert "bee" not in {line.category for line in again.assignments}
    again.rename(new[0], "wasp")
    newkind.discover(data, found.run.folder, n_categories=N_CLASSES, report=False, overwrite=True)
    assert {path.name for path in found.run.folder.glob("decisions*")} == {"decisions-1.sqlite", "decisions-2.sqlite"}
    (found.run.folder / "decisions-1.sqlite").rename(found.run.folder / "decisions.sqlite")
    assert DecisionLog(found.run.folder).events()[0].decision.name == "bee"


def test_runs_without_a_log_are_not_changed_by_reading(found: Discovery) -> None:
    before = sorted(path.name for path in found.run.folder.iterdir())
    newkind.load(found.run.folder).categories  # noqa: B018
    read_contents(Run.open(found.run.folder))
    assert sorted(path.name for path in found.run.folder.iterdir()) == before
