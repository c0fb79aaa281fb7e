"""What moved between two runs, counted by hand."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from newkind.report.comparison import compare_runs, counterparts
from newkind.report.contents import RunContents, read_contents
from newkind.report.images import find_pictures
from newkind.runs.run import Run

MakeRun = Callable[..., Run]


def renamed(run: Run) -> RunContents:
    """The same run with its two new categories' names exchanged: names of new ones mean nothing."""
    for file in (run.assignments_file, run.categories_file):
        file.write_text(file.read_text().replace("new-01", "?").replace("new-02", "new-01").replace("?", "new-02"))
    return read_contents(run)


def test_counterparts_by_name_and_by_overlap() -> None:
    overlap = np.array([[0, 9, 0, 0], [5, 0, 0, 0], [0, 0, 1, 7], [0, 0, 6, 2], [0, 0, 0, 0]])
    names = ["a", "b", None, None, None]
    found = counterparts(overlap, names, ["a", "b", None, None])
    # a stays with a though it shares no image with it; the last shares none with anybody.
    assert found.tolist() == [0, 1, 3, 2, -1]


def test_nothing_moves_between_a_run_and_itself_renamed(make_run: MakeRun) -> None:
    contents, other = read_contents(make_run("a")), renamed(make_run("b"))
    found = compare_runs(contents, other, find_pictures(contents))
    assert found.n_common == 40
    assert found.n_moved == 0
    assert found.moves == ()
    assert {(pair.now, pair.before) for pair in found.pairs} >= {(0, 0), (1, 1), (2, 2), (3, 3)}
    assert other.categories[2].name == "new-02"
    assert found.settings == ()
    assert (found.n_righted, found.n_wronged) == (0, 0)


def test_what_moved(make_run: MakeRun) -> None:
    contents, other = read_contents(make_run("a", seed=0)), read_contents(make_run("b", seed=1, wrong=3))
    found = compare_runs(contents, other, find_pictures(contents))
    now, before = contents.category, other.category
    moved = [i for i in range(48) if contents.is_free[i] and now[i] != before[i]]
    assert found.n_moved == len(moved)
    assert sum(move.count for move in found.moves) == len(moved)
    for move in found.moves:
        expected = [i for i in moved if before[i] == move.before and now[i] == move.now]
        assert move.count == len(expected)
        assert set(move.lines) <= set(expected)
    assert found.n_known_to_new == sum(now[i] >= 2 > before[i] for i in moved)
    assert found.n_new_to_known == sum(now[i] < 2 <= before[i] for i in moved)
    assert found.n_righted is not None
    assert found.n_wronged is not None
    assert found.n_righted - found.n_wronged == 4  # 3 wrong of each kind, then 2
    assert ("method: entropy weight", "1", "2") in found.settings
    for pair in found.pairs:
        if pair.now is not None and pair.before is not None:
            both = sum(now[i] == pair.now and before[i] == pair.before and contents.is_free[i] for i in range(48))
            assert pair.n_kept == both


def test_images_of_one_run_only_are_counted_apart(make_run: MakeRun) -> None:
    first, second = make_run("a"), make_run("b")
    lines = second.assignments_file.read_text().splitlines()
    second.assignments_file.write_text("\n".join(lines[:-5]) + "\n")
    contents, other = read_contents(first), read_contents(second)
    found = compare_runs(contents, other, find_pictures(contents))
    assert (found.n_common, found.n_only_now, found.n_only_before) == (35, 5, 0)
    nothing = compare_runs(contents, _emptied(other), find_pictures(contents))
    assert (nothing.n_common, nothing.n_moved) == (0, 0)


def _emptied(contents: RunContents) -> RunContents:
    return replace(contents, files=[f"other/{file}" for file in contents.files])


@pytest.mark.parametrize("missing", ["scores", "truth"])
def test_without_truth_nothing_is_said_of_right_and_wrong(make_run: MakeRun, missing: str) -> None:
    contents, other = read_contents(make_run("a")), read_contents(make_run("b", seed=1))
    pictures = find_pictures(contents)
    if missing == "scores":
        contents = replace(contents, scores=None)
    else:
        pictures = replace(pictures, truth=None)
    assert compare_runs(contents, other, pictures).n_righted is None
