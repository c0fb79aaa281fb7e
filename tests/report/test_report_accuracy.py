"""Scores against the truth: the confusion adds up, and a truth that has changed is not mixed in."""

from pathlib import Path

import numpy as np
import pytest

from newkind.errors import RunError
from newkind.evaluation import accuracy
from newkind.report.accuracy import verdict_of
from newkind.report.contents import read_contents
from newkind.report.images import find_pictures
from newkind.runs.run import Run


def test_everything_adds_up(run: Run) -> None:
    contents = read_contents(run)
    verdict = verdict_of(contents, find_pictures(contents))
    assert verdict is not None
    assert verdict.accuracy["all"] == pytest.approx(1 - sum(e.share for e in verdict.errors))
    assert verdict.accuracy["all"] == pytest.approx(0.8)
    assert contents.scores is not None
    assert (verdict.nmi, verdict.ari) == (contents.scores["nmi"], contents.scores["ari"])
    assert [panel.title for panel in verdict.distributions] == ["Old classes", "New classes"]
    assert [line.accuracy for line in verdict.classes] == sorted(line.accuracy for line in verdict.classes)
    c = verdict.confusion
    assert c is not None
    assert c.rows == ("<script>alert(1)</script>", "apple", "pear", "plum")
    assert c.n_old == 2
    assert c.columns == (1, 0, 2, 3)  # each in the place of its class
    assert sum(cell.count for cell in c.cells) == 40
    for row in range(4):
        assert sum(cell.share for cell in c.cells if cell.row == row) == pytest.approx(1)
    right = sum(cell.count for cell in c.cells if cell.right)
    assert right / 40 == pytest.approx(verdict.accuracy["all"])
    assert sum(slip.count for slip in c.slips) == 8
    assert {(slip.true, slip.matched) for slip in c.slips} == {
        ("apple", "<script>alert(1)</script>"),
        ("<script>alert(1)</script>", "pear"),
        ("pear", "plum"),
        ("plum", "apple"),
    }


def test_without_truth_there_is_no_verdict(run: Run) -> None:
    run.scores_file.unlink()
    contents = read_contents(run)
    assert verdict_of(contents, find_pictures(contents)) is None


def test_another_truth_than_that_of_the_scores_is_not_shown(run: Run, tmp_path: Path) -> None:
    table = tmp_path / "data" / "metadata.csv"
    table.write_text(table.read_text().replace(",,plum", ",,pear"))
    contents = read_contents(run)
    verdict = verdict_of(contents, find_pictures(contents))
    assert verdict is not None
    assert verdict.confusion is None


@pytest.mark.parametrize(
    "content", ['{"classes": 3}', '{"classes": [], "accuracy": 4}', '{"classes": [{"name": "a"}]}']
)
def test_odd_scores_are_an_error(run: Run, content: str) -> None:
    run.scores_file.write_text(content)
    contents = read_contents(run)
    with pytest.raises(RunError, match=r"scores\.json"):
        verdict_of(contents, find_pictures(contents))


def test_categories_without_a_class_stand_at_the_end(run: Run) -> None:
    """Half of the plums in a category of their own, that no class is left for."""
    contents = read_contents(run)
    plums = np.flatnonzero(contents.category == 3)
    contents.category[plums[:4]] = 4
    pictures = find_pictures(contents)
    assert pictures.truth is not None
    free = contents.is_free
    now = accuracy(pictures.truth[free], contents.category[free], pictures.truth[free] < 2)
    assert contents.scores is not None
    contents.scores["accuracy"]["all"] = now.all
    verdict = verdict_of(contents, pictures)
    assert verdict is not None
    assert verdict.confusion is not None
    assert verdict.confusion.columns[-1] == 4
    assert any(slip.matched is None and slip.number == 4 for slip in verdict.confusion.slips)


def test_worse_than_chance_is_said_too(run: Run) -> None:
    contents = read_contents(run)
    assert contents.scores is not None
    contents.scores["ari"] = -0.01
    verdict = verdict_of(contents, find_pictures(contents))
    assert verdict is not None
    assert verdict.ari == -0.01
