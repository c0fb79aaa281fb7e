"""Each category's chapter, against plain computations."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from newkind.report.contents import read_contents
from newkind.report.gallery import Amounts, amounts_for, centres_of, chapters_of, typicality
from newkind.report.images import find_pictures
from newkind.runs.run import Run

AMOUNTS = Amounts(4, 3, 2, 2)


def test_centres_and_typicality_are_cosines_about_the_mean() -> None:
    rng = np.random.default_rng(0)
    x, category = rng.normal(size=(50, 6)).astype(np.float16), rng.integers(0, 3, 50).astype(np.int32)
    centres, mean = centres_of(x, category, 4)
    unit = x.astype(np.float64) / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
    for k in range(3):
        expected = (unit[category == k] - unit.mean(axis=0)).mean(axis=0)
        np.testing.assert_allclose(centres[k], expected / np.linalg.norm(expected), atol=1e-4)
    assert not centres[3].any()  # nobody is in it
    found = typicality(x, category, centres, mean)
    for i in (0, 17, 49):
        a, b = unit[i] - unit.mean(axis=0), centres[category[i]]
        assert found[i] == pytest.approx(a @ b / np.linalg.norm(a), abs=1e-4)


def test_features_that_are_no_numbers_do_no_harm() -> None:
    x = np.full((4, 3), np.nan, dtype=np.float16)
    centres, mean = centres_of(x, np.zeros(4, np.int32), 2)
    assert np.isfinite(centres).all()
    assert np.isfinite(typicality(x, np.zeros(4, np.int32), centres, mean)).all()


def test_typical_images_are_sure_and_borderline_ones_are_not(run: Run) -> None:
    contents = read_contents(run)
    for chapter in chapters_of(contents, find_pictures(contents), AMOUNTS):
        free = [i for i in contents.members[chapter.number] if contents.is_free[i]]
        assert chapter.n_sorted == len(free)
        assert sum(chapter.histogram) == len(free)
        assert chapter.confidence == pytest.approx(np.mean(contents.confidence[free]))
        middle = np.median(contents.confidence[free])
        assert len(chapter.typical) == 4
        assert all(contents.confidence[i] >= middle for i in chapter.typical)
        rest = sorted(set(free) - set(chapter.typical), key=lambda i: contents.confidence[i])
        assert list(chapter.borderline) == rest[:3]
        assert all(not contents.is_free[i] for i in chapter.labelled)


def test_without_features_the_surest_are_typical_and_neighbours_come_from_hesitation(run: Run) -> None:
    run.features_file.unlink()
    contents = read_contents(run)
    contents = replace(contents, second_confidence=np.full(48, 0.2, dtype=np.float32))
    chapters = chapters_of(contents, find_pictures(contents), AMOUNTS)
    for chapter in chapters:
        free = sorted(
            (i for i in contents.members[chapter.number] if contents.is_free[i]), key=lambda i: -contents.confidence[i]
        )
        assert list(chapter.typical) == free[:4]
        for near in chapter.known_neighbours + chapter.new_neighbours:
            pair = {chapter.number, near.number}
            expected = sum(
                {int(contents.category[i]), int(contents.second[i])} == pair and contents.is_free[i] for i in range(48)
            )
            assert near.n_hesitating == expected > 0
            assert near.similarity is None


def test_neighbours_are_the_most_similar_of_each_side(run: Run) -> None:
    contents = read_contents(run)
    assert contents.features is not None
    centres, _ = centres_of(contents.features, contents.category, 5)
    for chapter in chapters_of(contents, find_pictures(contents), AMOUNTS):
        assert chapter.number not in [n.number for n in chapter.known_neighbours + chapter.new_neighbours]
        for side, status in ((chapter.known_neighbours, "known"), (chapter.new_neighbours, "new")):
            assert all(contents.categories[n.number].status == status for n in side)
            near = [n.similarity for n in side]
            assert near == sorted(near, key=lambda s: -s)  # type: ignore[operator, type-var]
            for n in side:
                assert n.similarity == pytest.approx(float(centres[n.number] @ centres[chapter.number]), abs=2e-3)


def test_truth_shows_what_a_category_is_made_of(run: Run, tmp_path: Path) -> None:
    contents = read_contents(run)
    chapters = {c.number: c for c in chapters_of(contents, find_pictures(contents), AMOUNTS)}
    assert chapters[2].mixture[0] == ("pear", 10)
    assert chapters[2].mixture[1][1] == 2
    assert chapters[2].matched == "pear"
    run.scores_file.unlink()
    (tmp_path / "data" / "metadata.csv").unlink()
    contents = read_contents(run)
    bare = chapters_of(contents, find_pictures(contents), AMOUNTS)
    assert all(c.mixture == () and c.matched is None for c in bare)


def test_the_more_categories_the_fewer_pictures() -> None:
    totals = [k * (a.typical + a.borderline + a.labelled) for k in (40, 120, 300, 1200, 5000) if (a := amounts_for(k))]
    assert max(totals) <= 6000
    assert amounts_for(10).typical > amounts_for(200).typical > amounts_for(1000).typical
