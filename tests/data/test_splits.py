"""The published Old/New classes and labelled images."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from error_codes import raises
from newkind.data import ClassSplit, class_split, divide, labelled_subset
from newkind.errors import DataError

# name: (Old images, New images, then the paper's table: labelled images, unlabelled images, Old classes, classes).
# Only CIFAR's Old and New images are the real counts. Elsewhere the sum is the official one (ImageNet-100: the table's),
# and its division into Old and New is chosen to match the table, because the images are not available here.
PAPER = {
    "cifar10": (25_000, 25_000, "12.5K", "37.5K", 5, 10),
    "cifar100": (40_000, 10_000, "20.0K", "30.0K", 80, 100),
    "imagenet_100": (63_800, 63_400, "31.9K", "95.3K", 50, 100),
    "imagenet_1k": (642_000, 639_167, "321K", "960K", 500, 1000),
    "cub": (2_997, 2_997, "1.5K", "4.5K", 100, 200),
    "stanford_cars": (4_000, 4_144, "2.0K", "6.1K", 98, 196),
    "fgvc_aircraft": (3_334, 3_333, "1.7K", "5.0K", 50, 100),
    "herbarium_19": (17_740, 16_485, "8.9K", "25.4K", 341, 683),
}
ALL_IDS = {"imagenet_100": 1000}
"""Number of classes of a dataset of which the benchmark uses some; the others use all."""


def legacy_choice(n: int, proportion: float, seed: int) -> NDArray[np.int64]:
    """The draw as the published runs wrote it."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    drawn = np.random.choice(range(n), replace=False, size=(int(proportion * n),))  # noqa: NPY002
    np.random.set_state(state)  # noqa: NPY002
    return drawn


def shuffled_ids(split: ClassSplit, n_old: int, n_new: int) -> NDArray[np.int64]:
    """Class ids (n_old + n_new,) spread evenly within the Old and within the New classes, in no order."""
    ids = np.concatenate([np.resize(split.old, n_old), np.resize(split.new, n_new)])
    return np.random.default_rng(1).permutation(ids)


def thousands(n: int) -> str:
    return f"{n / 1000:.0f}K" if n >= 100_000 else f"{n / 1000:.1f}K"


@pytest.mark.parametrize("n", [1, 2, 3, 101, 2997, 40_000])
@pytest.mark.parametrize(("proportion", "seed"), [(0.5, 0), (0.3, 0), (1.0, 7)])
def test_the_labelled_subset_is_the_legacy_draw(n: int, proportion: float, seed: int) -> None:
    drawn = labelled_subset(n, proportion, seed)
    np.testing.assert_array_equal(drawn, legacy_choice(n, proportion, seed))
    assert len(set(drawn.tolist())) == int(proportion * n)


def test_the_labelled_subset_is_half_with_seed_zero_by_default() -> None:
    np.testing.assert_array_equal(labelled_subset(11), labelled_subset(11, 0.5, 0))
    np.testing.assert_array_equal(labelled_subset(10), [2, 8, 4, 9, 1])  # NumPy's seed 0
    assert labelled_subset(0).size == 0


def test_the_labelled_subset_leaves_the_global_generator_alone() -> None:
    np.random.seed(5)  # noqa: NPY002
    expected = np.random.random_sample(3)  # noqa: NPY002
    np.random.seed(5)  # noqa: NPY002
    labelled_subset(1000)
    np.testing.assert_array_equal(np.random.random_sample(3), expected)  # noqa: NPY002


@pytest.mark.parametrize("proportion", [-0.1, 1.5, float("nan")])
def test_a_proportion_outside_0_to_1_is_refused(proportion: float) -> None:
    with raises(DataError, "out-of-range"):
        labelled_subset(10, proportion)


def test_divide_by_hand() -> None:
    class_ids = np.array([7, 3, 9, 3, 7, 1, 9, 3, 7, 3])
    division = divide(class_ids, old=[7, 3], new=[9, 1])
    assert division.truth.tolist() == [0, 1, 2, 1, 0, 3, 2, 1, 0, 1]
    # Old images are at 0 1 3 4 7 8 9; of these seven, seed 0 draws three.
    positions = np.array([0, 1, 3, 4, 7, 8, 9])[legacy_choice(7, 0.5, 0)]
    expected = [int(division.truth[i]) if i in positions else -1 for i in range(10)]
    assert division.labels.tolist() == expected
    assert division.labels.dtype == division.truth.dtype == np.int32


def test_divide_follows_the_order_of_the_images_and_of_the_lists() -> None:
    class_ids = np.array([0, 1, 2, 3] * 25)
    one, other = divide(class_ids, old=[0, 1], new=[2, 3]), divide(class_ids, old=[1, 0], new=[3, 2])
    np.testing.assert_array_equal(one.labels >= 0, other.labels >= 0)
    labelled = one.labels >= 0
    np.testing.assert_array_equal(one.labels[labelled], 1 - other.labels[labelled])
    assert not np.array_equal(divide(class_ids[::-1], old=[0, 1], new=[2, 3]).labels[::-1] >= 0, labelled)


def test_divide_refuses_what_has_no_meaning() -> None:
    with raises(DataError, "unknown-class") as caught:
        divide(np.array([0, 5, 1]), old=[0], new=[1])
    assert caught.value.facts["image"] == 1
    with raises(DataError, "unknown-class"):
        divide(np.array([-1]), old=[0], new=[1])
    with raises(DataError, "class-lists"):
        divide(np.array([0]), old=[0, 1], new=[1])
    with raises(DataError, "class-lists"):
        divide(np.array([0]), old=[0], new=[])


def test_divide_of_no_images_is_empty() -> None:
    division = divide(np.empty(0, dtype=np.int64), old=[0], new=[1])
    assert division.labels.shape == division.truth.shape == (0,)


@pytest.mark.parametrize("name", PAPER)
def test_old_and_new_classes_are_disjoint_and_cover_all(name: str) -> None:
    split = class_split(name)
    n_old, n_classes = PAPER[name][4:]
    assert len(split.old) == n_old
    assert len(split.classes) == len(set(split.classes)) == n_classes
    if name in ALL_IDS:
        assert set(split.classes) <= set(range(ALL_IDS[name]))
    else:
        assert set(split.classes) == set(range(n_classes))


def test_new_classes_go_from_hard_to_easy() -> None:
    # First of the hard, the medium and the easy list of each set.
    for name, firsts in {
        "cub": {0: 29, 34: 152, 68: 20},
        "stanford_cars": {0: 23, 7: 3, 22: 4},
        "fgvc_aircraft": {0: 6, 13: 78, 30: 80},
    }.items():
        assert {place: class_split(name).new[place] for place in firsts} == firsts


def test_imagenet_100_is_the_published_draw_of_classes() -> None:
    state = np.random.RandomState(0)
    assert list(class_split("imagenet_100").classes) == sorted(
        state.choice(range(1000), size=100, replace=False).tolist()
    )


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with raises(DataError, "unknown-benchmark"):
        class_split("flowers")


@pytest.mark.parametrize("name", PAPER)
def test_the_counts_of_the_papers_table(name: str) -> None:
    n_old_images, n_new_images, labelled, unlabelled, n_old, n_classes = PAPER[name]
    split = class_split(name)
    division = divide(shuffled_ids(split, n_old_images, n_new_images), old=split.old, new=split.new)
    is_labelled = division.labels >= 0
    assert thousands(is_labelled.sum()) == labelled
    assert thousands((~is_labelled).sum()) == unlabelled
    assert len(np.unique(division.labels[is_labelled])) == n_old
    assert len(np.unique(division.truth[~is_labelled])) == n_classes
    np.testing.assert_array_equal(division.labels[is_labelled], division.truth[is_labelled])
