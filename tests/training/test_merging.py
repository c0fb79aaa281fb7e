"""Which categories of a generous number are kept."""

import numpy as np

from newkind.training.inference import Predictions
from newkind.training.merging import plan_merging


def predictions(best: list[int], second: list[int], sure: list[float]) -> Predictions:
    p = np.array(sure, dtype=np.float32)
    empty = np.zeros(len(best), dtype=np.float32)
    return Predictions(np.array(best), p, np.array(second), 1 - p, empty, empty)


def test_empty_small_and_duplicate_categories() -> None:
    # 0, 1 known (1 has no image); 2 and 3 share their images in doubt; 4 is sure; 5 has one image; 6 none.
    best = [0] * 10 + [2] * 8 + [3] * 8 + [4] * 9 + [5]
    second = [1] * 10 + [3] * 8 + [2] * 8 + [0] * 9 + [4]
    sure = [0.9] * 10 + [0.6] * 8 + [0.55] * 8 + [0.95] * 9 + [0.5]
    plan = plan_merging(predictions(best, second, sure), np.ones(len(best), bool), n_prototypes=7, n_known=2)
    assert plan.groups == [[0], [1], [2, 3], [4]]
    assert plan.sizes == [10, 0, 8, 8, 9, 1, 0]
    assert (plan.n_empty, plan.n_small, plan.n_duplicates) == (1, 1, 1)
    assert "Of room for 7 categories, 4 are used" in plan.sentence()


def test_sure_neighbours_stay_apart() -> None:
    best, second = [0] * 6 + [1] * 6 + [2] * 6, [1] * 6 + [2] * 6 + [1] * 6
    plan = plan_merging(predictions(best, second, [0.9] * 18), np.ones(18, bool), n_prototypes=3, n_known=1)
    assert plan.groups == [[0], [1], [2]]
    assert plan.sentence() == "Of room for 3 categories, 3 are used."


def test_labelled_images_have_no_say() -> None:
    best, second = [1] * 6 + [2] * 6, [2] * 6 + [1] * 6
    free = np.array([False] * 6 + [True] * 6)
    plan = plan_merging(predictions(best, second, [0.5] * 12), free, n_prototypes=3, n_known=1)
    assert plan.groups == [[0], [2]]


def test_a_chain_of_doubt_is_one_category() -> None:
    best = [1] * 5 + [2] * 5 + [3] * 5
    second = [2] * 5 + [3] * 5 + [1] * 5
    plan = plan_merging(predictions(best, second, [0.5] * 15), np.ones(15, bool), n_prototypes=4, n_known=1)
    assert plan.groups == [[0], [1, 2, 3]] or plan.n_duplicates >= 1
