"""Contents of a run, from its folder and from memory; damaged folders are refused."""

import numpy as np
import pytest

from error_codes import raises
from newkind.errors import RunError
from newkind.report.contents import LABELLED, NEW, contents_of, read_contents
from newkind.report.headline import headline_of
from newkind.report.write import write_report
from newkind.runs.assignments import read_assignments
from newkind.runs.run import Run


def test_all_files_are_read(run: Run) -> None:
    contents = read_contents(run)
    assert len(contents) == 48
    assert [c.name for c in contents.categories][2:] == ["new-01", "new-02", "new-03"]
    assert contents.features is not None
    assert contents.features.shape == (48, 8)
    assert (contents.status == LABELLED).sum() == 8
    assert (contents.is_free == (contents.status != LABELLED)).all()
    for k, lines in enumerate(contents.members):
        assert (contents.category[lines] == k).all()
    assert sum(map(len, contents.members)) == 48


def test_new_categories_come_first_and_empty_ones_are_left_out(run: Run) -> None:
    contents = read_contents(run)
    assert [contents.categories[k].status for k in contents.shown] == ["new", "new", "known", "known"]
    assert 4 not in contents.shown
    sizes = [contents.categories[k].n_images for k in contents.shown[:2]]
    assert sizes == sorted(sizes, reverse=True)


def test_headline(run: Run) -> None:
    contents = read_contents(run)
    h = headline_of(contents)
    assert (h.n_images, h.n_labelled, h.n_unlabelled) == (48, 8, 40)
    assert h.n_in_new == (contents.status == NEW).sum()
    assert (h.n_known, h.n_new, h.n_used, h.n_categories) == (2, 2, 4, 5)
    assert h.confidence == pytest.approx(contents.confidence[contents.is_free].mean())
    assert h.accuracy is not None
    assert h.accuracy["all"] == pytest.approx(1 - 8 / 40)
    assert "Vaze" in h.protocol


def test_features_of_another_length_are_ignored(run: Run) -> None:
    run.write_features(np.zeros((3, 8)))
    assert read_contents(run).features is None


@pytest.mark.parametrize(("old", "new"), [("new-01", "unknown-category"), (",known,", ",certain,")])
def test_assignments_of_another_run_are_an_error(run: Run, old: str, new: str) -> None:
    run.assignments_file.write_text(run.assignments_file.read_text().replace(old, new))
    with raises(RunError, "assignments-mismatch") as caught:
        read_contents(run)
    assert caught.value.facts["file"] == run.assignments_file


def test_damaged_assignments_are_an_error(run: Run) -> None:
    run.assignments_file.write_text(run.assignments_file.read_text().replace("confidence", "certainty"))
    with raises(RunError, "unreadable"):
        read_contents(run)


@pytest.mark.parametrize("content", ['{"categories": 3}', '{"categories": [{"name": 1}]}', '{"categories": [3]}'])
def test_damaged_categories_are_an_error(run: Run, content: str) -> None:
    run.categories_file.write_text(content)
    with raises(RunError, "unreadable"):
        read_contents(run)


def test_invalid_categories_are_an_error(run: Run) -> None:
    run.categories_file.write_text(run.categories_file.read_text().replace('"n_images": ', '"n_images": -'))
    with raises(RunError, "categories-invalid"):
        read_contents(run)


def test_a_run_that_is_not_finished_is_an_error(run: Run) -> None:
    run.assignments_file.unlink()
    with raises(RunError, "not-finished"):
        read_contents(run)


def test_invalid_scores_are_ignored_in_the_headline(run: Run) -> None:
    run.scores_file.write_text('{"accuracy": {"all": "<b>", "old": 3.0, "new": true}}')
    assert headline_of(read_contents(run)).accuracy is None


def test_results_in_memory_are_not_read_back(run: Run) -> None:
    """The same contents as from the folder, without the files that hold the results."""
    expected = read_contents(run)
    assignments, scores, features = read_assignments(run), run.read_json(run.scores_file), run.features()
    assert features is not None
    for file in (run.assignments_file, run.categories_file, run.scores_file, run.features_file):
        file.unlink()
    found = contents_of(
        run,
        assignments=assignments,
        categories=expected.categories,
        scores=scores,
        features=features.astype(np.float32),
        seconds={"training": 2.0},
    )
    for name in ("category", "second", "status", "confidence", "second_confidence", "features"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    assert (found.files, found.scores, found.metrics) == (expected.files, expected.scores, expected.metrics)
    assert found.seconds == {"training": 2.0}
    assert write_report(run, contents=found).exists()
