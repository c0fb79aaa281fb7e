"""k-means++ draws as it should: chances as squared distances, from the rows it may take, the greedy form no worse."""

import numpy as np
import pytest
import torch
from plain_kmeans import all_distances, blobs

from newkind.clustering import rows as rows_module
from newkind.clustering import seeding
from newkind.clustering.rows import Rows, centred_rows
from newkind.clustering.seeding import plus_plus

CPU = torch.device("cpu")


def rows_of(x: np.ndarray) -> Rows:
    return centred_rows(x, CPU, shift=torch.zeros(x.shape[1]))


def draw(x: np.ndarray, start: list[list[float]], n_drawn: int, *, n: int = 1, greedy: bool = False, seed: int = 0):
    given = torch.tensor(start).reshape(-1, x.shape[1])
    generator = torch.Generator().manual_seed(seed)
    return plus_plus(rows_of(x), given, n_drawn, n_restarts=n, greedy=greedy, generator=generator).numpy()


def shares(found: np.ndarray, values: np.ndarray) -> np.ndarray:
    return (found.reshape(-1, 1) == values).mean(axis=0)


def test_chances_are_squared_distances() -> None:
    x = np.array([[0.0], [1.0], [3.0]], dtype=np.float32)
    found = draw(x, [[0.0]], 1, n=20_000)
    np.testing.assert_allclose(shares(found, x[:, 0]), [0, 0.1, 0.9], atol=4 * np.sqrt(0.1 * 0.9 / 20_000))


def test_the_nearest_centre_counts() -> None:
    x = np.array([[0.0], [2.0], [9.0], [10.0]], dtype=np.float32)
    found = draw(x, [[0.0], [10.0]], 1, n=20_000)
    np.testing.assert_allclose(shares(found, x[:, 0]), [0, 0.8, 0.2, 0], atol=4 * np.sqrt(0.16 / 20_000))


def test_later_draws_see_earlier_ones() -> None:
    x = np.array([[0.0], [1.0], [3.0]], dtype=np.float32)
    found = draw(x, [], 3, n=500)[..., 0]
    assert (np.sort(found, axis=1) == [0, 1, 3]).all()
    # First any row, then by distance: of (0, then 3) and (0, then 1) the former is nine times as frequent.
    second = found[found[:, 0] == 0, 1]
    assert len(second) > 100
    assert (second == 3).mean() == pytest.approx(0.9, abs=0.1)


def test_first_draws_are_even() -> None:
    x = np.arange(5, dtype=np.float32)[:, None] ** 3
    found = draw(x, [], 1, n=20_000)
    np.testing.assert_allclose(shares(found, x[:, 0]), [0.2] * 5, atol=4 * np.sqrt(0.16 / 20_000))


def test_a_row_at_no_distance_is_never_drawn() -> None:
    weights = torch.tensor([[0.0, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    ends = torch.tensor([[0.0, 1 - 1e-16]], dtype=torch.float64).expand(2, 2)
    assert seeding._choose(weights, ends).tolist() == [[2, 2], [1, 1]]


def test_what_rounding_leaves_is_no_distance() -> None:
    # Far from the origin float32 may take copies for different; there are so many that one of them would be drawn.
    for seed in range(20):
        places = 1000 + 20 * np.random.default_rng(seed).normal(size=(2, 30)).astype(np.float32)
        found = draw(np.repeat(places, [2000, 1], axis=0), [], 2, n=10)
        assert {frozenset(all_distances(one, places).argmin(axis=1).tolist()) for one in found} == {frozenset((0, 1))}


@pytest.mark.parametrize("greedy", [False, True])
def test_every_one_of_far_apart_groups_is_found(greedy: bool) -> None:
    # Copies are at no distance: a group is never drawn twice while another is left.
    places = 5 + np.random.default_rng(0).normal(size=(12, 30)).astype(np.float32)
    found = draw(np.repeat(places, 9, axis=0), [], 12, n=20, greedy=greedy)
    for one in found:
        assert sorted(all_distances(one, places).argmin(axis=1)) == list(range(12))


def test_constant_rows() -> None:
    found = draw(np.full((6, 3), 0.1, dtype=np.float32), [], 4, n=3)
    assert (found == np.float32(0.1)).all()


def left(x: np.ndarray, centers: np.ndarray) -> float:
    return float(all_distances(x, centers).min(axis=1).sum())


def test_greedy_leaves_less() -> None:
    x, _ = blobs(400, k=25)
    sums = {g: np.mean([left(x, c) for c in draw(x, [], 25, n=40, greedy=g)]) for g in (False, True)}
    assert sums[True] < 0.95 * sums[False]


def test_groups_of_restarts_do_not_matter(monkeypatch) -> None:
    x, _ = blobs()
    together = draw(x, x[:2].tolist(), 8, n=6, greedy=True)
    monkeypatch.setattr(seeding, "GROUP_CELLS", 1)
    assert np.array_equal(draw(x, x[:2].tolist(), 8, n=6, greedy=True), together)
    assert len({one.tobytes() for one in together}) == 6


def test_too_many_rows_are_sampled(monkeypatch) -> None:
    x, _ = blobs()
    monkeypatch.setattr(rows_module, "HOLD_BYTES", 4 * 8 * 50)
    rows = rows_of(x)
    assert rows.held is None
    found = plus_plus(
        rows, torch.zeros(0, 8), 50, n_restarts=2, greedy=False, generator=torch.Generator().manual_seed(0)
    )
    assert found.shape == (2, 50, 8)
    # All of the sample, in both restarts, and each a row of x.
    seen = {row.tobytes() for row in x}
    first, second = ({row.tobytes() for row in one.numpy()} for one in found)
    assert first == second <= seen
    assert len(first) == 50
