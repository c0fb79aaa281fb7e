"""Details of categories, against plain computations."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from newkind.report.contents import read_contents
from newkind.report.gallery import GallerySizes, category_centres, category_details, gallery_sizes, typicality
from newkind.report.images import find_run_images
from newkind.runs.run import Run

SIZES = GallerySizes(4, 3, 2, 2)


def test_centres_and_typicality_are_cosines_relative_to_the_mean() -> None:
    rng = np.random.default_rng(0)
    x, category = rng.normal(size=(50, 6)).astype(np.float16), rng.integers(0, 3, 50).astype(np.int32)
    centres, mean = category_centres(x, category, 4)
    unit = x.astype(np.float64) / np.linalg.norm(x.astype(np.float64), axis=1, keepdims=True)
    for k in range(3):
        expected = (unit[category == k] - unit.mean(axis=0)).mean(axis=0)
        np.testing.assert_allclose(centres[k], expected / np.linalg.norm(expected), atol=1e-4)
    assert not centres[3].any()  # has no images
    found = typicality(x, category, centres, mean)
    for i in (0, 17, 49):
        a, b = unit[i] - unit.mean(axis=0), centres[category[i]]
        assert found[i] == pytest.approx(a @ b / np.linalg.norm(a), abs=1e-4)


def test_features_that_are_not_finite() -> None:
    x = np.full((4, 3), np.nan, dtype=np.float16)
    centres, mean = category_centres(x, np.zeros(4, np.int32), 2)
    assert np.isfinite(centres).all()
    assert np.isfinite(typicality(x, np.zeros(4, np.int32), centres, mean)).all()


def test_typical_images_are_confident_and_borderline_ones_are_not(run: Run) -> None:
    contents = read_contents(run)
    for each in category_details(contents, find_run_images(contents), SIZES):
        free = [i for i in contents.members[each.number] if contents.is_free[i]]
        assert each.n_unlabelled == len(free)
        assert sum(each.histogram) == len(free)
        assert each.confidence == pytest.approx(np.mean(contents.confidence[free]))
        middle = np.median(contents.confidence[free])
        assert len(each.typical) == 4
        assert all(contents.confidence[i] >= middle for i in each.typical)
        rest = sorted(set(free) - set(each.typical), key=lambda i: contents.confidence[i])
        assert list(each.borderline) == rest[:3]
        assert all(not contents.is_free[i] for i in each.labelled)


def test_without_features_the_most_confident_are_typical_and_neighbours_come_from_second_categories(run: Run) -> None:
    run.features_file.unlink()
    contents = read_contents(run)
    contents = replace(contents, second_confidence=np.full(48, 0.2, dtype=np.float32))
    found = category_details(contents, find_run_images(contents), SIZES)
    for each in found:
        free = sorted(
            (i for i in contents.members[each.number] if contents.is_free[i]), key=lambda i: -contents.confidence[i]
        )
        assert list(each.typical) == free[:4]
        for near in each.known_neighbours + each.new_neighbours:
            pair = {each.number, near.number}
            expected = sum(
                {int(contents.category[i]), int(contents.second[i])} == pair and contents.is_free[i] for i in range(48)
            )
            assert near.n_hesitating == expected > 0
            assert near.similarity is None


def test_neighbours_are_the_most_similar_of_each_side(run: Run) -> None:
    contents = read_contents(run)
    assert contents.features is not None
    centres, _ = category_centres(contents.features, contents.category, 5)
    for each in category_details(contents, find_run_images(contents), SIZES):
        assert each.number not in [n.number for n in each.known_neighbours + each.new_neighbours]
        for side, status in ((each.known_neighbours, "known"), (each.new_neighbours, "new")):
            assert all(contents.categories[n.number].status == status for n in side)
            near = [n.similarity for n in side]
            assert near == sorted(near, key=lambda s: -s)  # type: ignore[operator, type-var]
            for n in side:
                assert n.similarity == pytest.approx(float(centres[n.number] @ centres[each.number]), abs=2e-3)


def test_composition_by_true_class(run: Run, tmp_path: Path) -> None:
    contents = read_contents(run)
    found = {c.number: c for c in category_details(contents, find_run_images(contents), SIZES)}
    assert found[2].composition[0] == ("pear", 10)
    assert found[2].composition[1][1] == 2
    assert found[2].matched == "pear"
    run.scores_file.unlink()
    (tmp_path / "data" / "metadata.csv").unlink()
    contents = read_contents(run)
    bare = category_details(contents, find_run_images(contents), SIZES)
    assert all(c.composition == () and c.matched is None for c in bare)


def test_the_more_categories_the_fewer_images_of_each() -> None:
    totals = [
        k * (a.typical + a.borderline + a.labelled) for k in (40, 120, 300, 1200, 5000) if (a := gallery_sizes(k))
    ]
    assert max(totals) <= 6000
    assert gallery_sizes(10).typical > gallery_sizes(200).typical > gallery_sizes(1000).typical
