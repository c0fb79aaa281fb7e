"""Ward's tree against SciPy's, and weights against repeated points."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import cut_tree, linkage
from sklearn.metrics import adjusted_rand_score

from newkind.clustering import ward_tree


@pytest.mark.parametrize(("n", "d"), [(2, 1), (40, 3), (150, 8)])
def test_the_same_tree_as_scipy(n: int, d: int) -> None:
    x = np.random.default_rng(n).normal(size=(n, d))
    tree, plain = ward_tree(x, np.ones(n)), linkage(x, "ward")
    # SciPy's height is sqrt(2 * cost) of a merge.
    np.testing.assert_allclose(np.sqrt(2 * tree.heights), plain[:, 2], rtol=1e-3)
    sizes = np.array([k for k in (100, 20, 7, 2, 1) if k <= n])
    for size, found in zip(sizes, tree.cut(sizes), strict=True):
        assert len(np.unique(found)) == size
        assert adjusted_rand_score(cut_tree(plain, size)[:, 0], found) == pytest.approx(1)


def test_a_weight_is_a_point_repeated() -> None:
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(25, 4)), rng.integers(1, 5, 25)
    small, large = ward_tree(x, weights), ward_tree(np.repeat(x, weights, axis=0), np.ones(weights.sum()))
    np.testing.assert_allclose(small.heights, large.heights[-24:], rtol=1e-3)
    [few] = small.cut(np.array([6]))
    [many] = large.cut(np.array([6]))
    assert adjusted_rand_score(np.repeat(few, weights), many) == pytest.approx(1)


def test_one_point() -> None:
    [found] = ward_tree(np.ones((1, 3)), np.ones(1)).cut(np.array([1]))
    assert found.tolist() == [0]


def test_points_that_are_all_the_same() -> None:
    tree = ward_tree(np.ones((6, 2)), np.ones(6))
    assert tree.heights.tolist() == [0] * 5
    assert [len(np.unique(cut)) for cut in tree.cut(np.array([6, 3, 1]))] == [6, 3, 1]
