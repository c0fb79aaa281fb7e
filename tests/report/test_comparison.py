"""Comparison of two runs, counted by hand."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from newkind.evaluation.correspondence import corresponding_categories
from newkind.report.comparison import compare_runs
from newkind.report.contents import RunContents, read_contents
from newkind.report.images import find_run_images
from newkind.runs.run import Run

MakeRun = Callable[..., Run]


def renamed(run: Run) -> RunContents:
    """The same run with the names of its two new categories exchanged: such names are arbitrary."""
    for file in (run.assignments_file, run.categories_file):
        file.write_text(file.read_text().replace("new-01", "?").replace("new-02", "new-01").replace("?", "new-02"))
    return read_contents(run)


def test_categories_correspond_by_name_and_by_overlap() -> None:
    overlap = np.array([[0, 9, 0, 0], [5, 0, 0, 0], [0, 0, 1, 7], [0, 0, 6, 2], [0, 0, 0, 0]])
    names = ["a", "b", None, None, None]
    found = corresponding_categories(overlap, names, ["a", "b", None, None])
    # a corresponds to a although they share no image; the last one shares no image with any.
    assert found.tolist() == [0, 1, 3, 2, -1]


def test_nothing_moves_between_a_run_and_itself_renamed(make_run: MakeRun) -> None:
    contents, other = read_contents(make_run("a")), renamed(make_run("b"))
    found = compare_runs(contents, other, find_run_images(contents))
    assert (found.n_paired, found.n_by_ending, found.n_common) == (48, 0, 40)
    assert found.n_moved == 0
    assert found.moves == ()
    assert {(pair.here, pair.there) for pair in found.pairs} >= {(0, 0), (1, 1), (2, 2), (3, 3)}
    assert other.categories[2].name == "new-02"
    assert found.settings == ()
    assert (found.n_corrected, found.n_spoiled) == (0, 0)


def test_moved_images(make_run: MakeRun) -> None:
    contents, other = read_contents(make_run("a", seed=0)), read_contents(make_run("b", seed=1, wrong=3))
    found = compare_runs(contents, other, find_run_images(contents))
    here, there = contents.category, other.category
    moved = [i for i in range(48) if contents.is_free[i] and here[i] != there[i]]
    assert found.n_moved == len(moved)
    assert sum(move.count for move in found.moves) == len(moved)
    for move in found.moves:
        expected = [i for i in moved if there[i] == move.there and here[i] == move.here]
        assert move.count == len(expected)
        assert set(move.lines) <= set(expected)
    assert found.n_known_to_new == sum(here[i] >= 2 > there[i] for i in moved)
    assert found.n_new_to_known == sum(here[i] < 2 <= there[i] for i in moved)
    assert found.n_corrected is not None
    assert found.n_spoiled is not None
    assert found.n_corrected - found.n_spoiled == 4  # 3 errors of each class there, 2 here
    assert ("method: entropy weight", "1", "2") in found.settings
    for pair in found.pairs:
        if pair.here is not None and pair.there is not None:
            both = sum(here[i] == pair.here and there[i] == pair.there and contents.is_free[i] for i in range(48))
            assert pair.n_both == both


def test_images_of_only_one_run_are_counted_separately(make_run: MakeRun) -> None:
    first, second = make_run("a"), make_run("b")
    lines = second.assignments_file.read_text().splitlines()
    second.assignments_file.write_text("\n".join(lines[:-5]) + "\n")
    contents, other = read_contents(first), read_contents(second)
    found = compare_runs(contents, other, find_run_images(contents))
    assert (found.n_common, found.n_only_here, found.n_only_there) == (35, 5, 0)


def test_images_are_recognised_under_another_folder(make_run: MakeRun) -> None:
    contents, other = read_contents(make_run("a")), read_contents(make_run("b", seed=1))
    expected = compare_runs(contents, other, find_run_images(contents))
    moved = replace(other, files=[f"/mnt/photos/{file}" for file in other.files])
    found = compare_runs(contents, moved, find_run_images(contents))
    assert (found.n_paired, found.n_by_ending) == (48, 48)
    assert (found.n_common, found.n_moved) == (expected.n_common, expected.n_moved)
    assert found.moves == expected.moves


def test_runs_without_a_common_image(make_run: MakeRun) -> None:
    contents, other = read_contents(make_run("a")), read_contents(make_run("b", seed=1))
    stranger = replace(other, files=[f"other/{i}.webp" for i in range(48)])
    found = compare_runs(contents, stranger, find_run_images(contents))
    assert (found.n_paired, found.n_common, found.n_moved) == (0, 0, 0)
    assert found.pairs == ()


@pytest.mark.parametrize("missing", ["scores", "truth"])
def test_without_true_classes_correct_images_are_not_counted(make_run: MakeRun, missing: str) -> None:
    contents, other = read_contents(make_run("a")), read_contents(make_run("b", seed=1))
    images = find_run_images(contents)
    if missing == "scores":
        contents = replace(contents, scores=None)
    else:
        images = replace(images, truth=None)
    assert compare_runs(contents, other, images).n_corrected is None
