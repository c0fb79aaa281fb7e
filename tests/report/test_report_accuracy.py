"""Accuracy: numbers add up, and true classes that changed since the run are not used."""

from pathlib import Path

import numpy as np
import pytest

from error_codes import raises
from newkind.errors import RunError
from newkind.evaluation import accuracy
from newkind.report.accuracy import accuracy_details
from newkind.report.contents import read_contents
from newkind.report.images import find_run_images
from newkind.runs.run import Run


def test_everything_adds_up(run: Run) -> None:
    contents = read_contents(run)
    details = accuracy_details(contents, find_run_images(contents))
    assert details is not None
    assert details.accuracy["all"] == pytest.approx(1 - sum(e.share for e in details.errors))
    assert details.accuracy["all"] == pytest.approx(0.8)
    assert contents.scores is not None
    assert (details.nmi, details.ari) == (contents.scores["nmi"], contents.scores["ari"])
    assert [panel.title for panel in details.distributions] == ["Known classes (Old)", "New classes (New)"]
    assert [line.accuracy for line in details.classes] == sorted(line.accuracy for line in details.classes)
    c = details.confusion
    assert c is not None
    assert c.rows == ("<script>alert(1)</script>", "apple", "pear", "plum")
    assert c.n_old == 2
    assert c.columns == (1, 0, 2, 3)  # each in the place of its class
    assert sum(cell.count for cell in c.cells) == 40
    for row in range(4):
        assert sum(cell.share for cell in c.cells if cell.row == row) == pytest.approx(1)
    correct = sum(cell.count for cell in c.cells if cell.is_correct)
    assert correct / 40 == pytest.approx(details.accuracy["all"])
    assert sum(pair.count for pair in c.pairs) == 8
    assert {(pair.true, pair.matched) for pair in c.pairs} == {
        ("apple", "<script>alert(1)</script>"),
        ("<script>alert(1)</script>", "pear"),
        ("pear", "plum"),
        ("plum", "apple"),
    }


def test_without_true_classes_there_is_no_accuracy(run: Run) -> None:
    run.scores_file.unlink()
    contents = read_contents(run)
    assert accuracy_details(contents, find_run_images(contents)) is None


def test_other_true_classes_than_those_of_the_scores_are_not_used(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "data" / "metadata.csv"
    table.write_text(table.read_text().replace(",,plum", ",,pear"))
    contents = read_contents(run)
    details = accuracy_details(contents, find_run_images(contents))
    assert details is not None
    assert details.confusion is None


@pytest.mark.parametrize(
    "content", ['{"classes": 3}', '{"classes": [], "accuracy": 4}', '{"classes": [{"name": "a"}]}']
)
def test_damaged_scores_are_an_error(run: Run, content: str) -> None:
    run.scores_file.write_text(content)
    contents = read_contents(run)
    with raises(RunError, "scores-unreadable"):
        accuracy_details(contents, find_run_images(contents))


def test_categories_without_a_class_are_at_the_end(run: Run) -> None:
    """Half of the plums in a category of their own, that no class is left for."""
    contents = read_contents(run)
    plums = np.flatnonzero(contents.category == 3)
    contents.category[plums[:4]] = 4
    images = find_run_images(contents)
    assert images.truth is not None
    free = contents.is_free
    now = accuracy(images.truth[free], contents.category[free], images.truth[free] < 2)
    assert contents.scores is not None
    contents.scores["accuracy"]["all"] = now.all
    details = accuracy_details(contents, images)
    assert details is not None
    assert details.confusion is not None
    assert details.confusion.columns[-1] == 4
    assert any(pair.matched is None and pair.number == 4 for pair in details.confusion.pairs)


def test_a_negative_ari(run: Run) -> None:
    contents = read_contents(run)
    assert contents.scores is not None
    contents.scores["ari"] = -0.01
    details = accuracy_details(contents, find_run_images(contents))
    assert details is not None
    assert details.ari == -0.01


def test_accuracy_by_name_is_optional(run: Run) -> None:
    contents = read_contents(run)
    assert contents.scores is not None
    contents.scores.pop("by_name", None)
    details = accuracy_details(contents, find_run_images(contents))
    assert details is not None
    assert details.by_name == {}
    contents.scores["by_name"] = {"all": 0.7, "old": 0.6, "new": None, "note": "x"}
    details = accuracy_details(contents, find_run_images(contents))
    assert details is not None
    assert details.by_name == {"all": 0.7, "old": 0.6}
