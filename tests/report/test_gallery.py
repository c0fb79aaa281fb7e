"""Details of categories, against plain computations."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from newkind.report.centres import category_centres
from newkind.report.contents import read_contents
from newkind.report.gallery import GallerySizes, category_details, gallery_sizes
from newkind.report.images import find_run_images
from newkind.runs.run import Run

SIZES = GallerySizes(4, 3, 2, 2)


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
