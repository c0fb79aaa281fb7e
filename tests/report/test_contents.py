"""What a run folder tells, and what is refused."""

import numpy as np
import pytest

from newkind.errors import RunError
from newkind.report.contents import LABELLED, NEW, read_story
from newkind.report.headline import headline_of
from newkind.runs.run import Run


def test_everything_is_read(run: Run) -> None:
    story = read_story(run)
    assert len(story) == 48
    assert [c.name for c in story.categories][2:] == ["new-01", "new-02", "new-03"]
    assert story.features is not None
    assert story.features.shape == (48, 8)
    assert (story.status == LABELLED).sum() == 8
    assert (story.is_free == (story.status != LABELLED)).all()
    for k, lines in enumerate(story.members):
        assert (story.category[lines] == k).all()
    assert sum(map(len, story.members)) == 48


def test_new_categories_come_first_and_unused_ones_not_at_all(run: Run) -> None:
    story = read_story(run)
    assert [story.categories[k].status for k in story.shown] == ["new", "new", "known", "known"]
    assert 4 not in story.shown
    sizes = [story.categories[k].n_images for k in story.shown[:2]]
    assert sizes == sorted(sizes, reverse=True)


def test_the_headline_counts_what_is_there(run: Run) -> None:
    story = read_story(run)
    h = headline_of(story)
    assert (h.n_images, h.n_labelled, h.n_sorted) == (48, 8, 40)
    assert h.n_into_new == (story.status == NEW).sum()
    assert (h.n_known, h.n_new, h.n_active, h.n_prototypes) == (2, 2, 4, 5)
    assert h.confidence == pytest.approx(story.confidence[story.is_free].mean())
    assert h.accuracy is not None
    assert h.accuracy["all"] == pytest.approx(1 - 8 / 40)
    assert "Vaze" in h.protocol


def test_features_of_another_length_are_left_out(run: Run) -> None:
    run.write_features(np.zeros((3, 8)))
    assert read_story(run).features is None


@pytest.mark.parametrize(
    ("old", "new"), [("new-01", "never-heard-of"), (",known,", ",certain,"), ("confidence", "sureness")]
)
def test_lines_that_do_not_fit_are_an_error(run: Run, old: str, new: str) -> None:
    run.assignments_file.write_text(run.assignments_file.read_text().replace(old, new))
    with pytest.raises(RunError, match=r"assignments\.csv"):
        read_story(run)


@pytest.mark.parametrize("content", ['{"categories": 3}', '{"categories": [{"name": 1}]}', "[]", '{"categories": [3]}'])
def test_odd_categories_are_an_error(run: Run, content: str) -> None:
    run.categories_file.write_text(content)
    with pytest.raises(RunError, match=r"categories\.json"):
        read_story(run)


def test_a_run_that_is_not_finished_is_an_error(run: Run) -> None:
    run.assignments_file.unlink()
    with pytest.raises(RunError, match="not finished"):
        read_story(run)


def test_odd_scores_are_not_believed(run: Run) -> None:
    run.scores_file.write_text('{"accuracy": {"all": "<b>", "old": 3.0, "new": true}}')
    assert headline_of(read_story(run)).accuracy is None
