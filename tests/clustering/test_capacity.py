"""Clusters of limited size: the limit holds to the last row, at nearly the least cost there is."""

import numpy as np
import pytest
import torch
from plain_kmeans import all_distances, blobs, partly, plain_inertia
from scipy.optimize import linear_sum_assignment

from newkind.clustering import capacity
from newkind.clustering.capacity import auction
from newkind.clustering.kmeans import k_means
from newkind.errors import ConfigError, DataError


def least(costs: np.ndarray, room: np.ndarray) -> float:
    """The optimum: one column for each place."""
    places = np.repeat(costs, room, axis=1)
    rows, columns = linear_sum_assignment(places)
    return float(places[rows, columns].sum())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("share", [1.0, 1.1, 1.5, 10.0])
def test_cost_is_nearly_the_least(share: float, seed: int) -> None:
    x, _ = blobs(240, dim=6, k=8, seed=seed)
    costs = all_distances(x, x[np.random.default_rng(seed).choice(240, 12)]).astype(np.float32)
    room = np.full(12, int(np.ceil(share * 20)))
    mean = float(costs.min(axis=1).mean())
    found = auction(torch.from_numpy(costs), torch.from_numpy(room), smallest_raise=0.01 * mean).numpy()
    assert (np.bincount(found, minlength=12) <= room).all()
    cost, optimum = float(costs[np.arange(240), found].sum()), least(costs, room)
    assert optimum * (1 - 1e-6) <= cost <= optimum + 240 * 0.01 * mean
    assert cost <= 1.002 * optimum
    if share == 10:
        assert np.array_equal(found, costs.argmin(axis=1))


def test_unequal_room_and_none_at_all() -> None:
    rng = np.random.default_rng(1)
    costs = rng.random((30, 5)).astype(np.float32)
    room = np.array([0, 12, 3, 0, 15])
    found = auction(torch.from_numpy(costs), torch.from_numpy(room), smallest_raise=1e-4).numpy()
    assert np.bincount(found, minlength=5).tolist() == room.tolist()
    assert float(costs[np.arange(30), found].sum()) == pytest.approx(least(costs, room), rel=1e-3)


@pytest.mark.parametrize("room", [[4, 4, 4], [12, 0, 0], [0, 5, 7]])
def test_equal_costs(room: list[int]) -> None:
    found = auction(torch.zeros(12, 3), torch.tensor(room), smallest_raise=0.0)
    assert torch.bincount(found, minlength=3).tolist() == room


def test_impatience_keeps_the_limit(monkeypatch) -> None:
    monkeypatch.setattr(capacity, "PATIENCE", 1)
    costs = torch.rand(100, 10, generator=torch.Generator().manual_seed(0))
    found = auction(costs, torch.full((10,), 10), smallest_raise=1e-9)
    assert torch.bincount(found).tolist() == [10] * 10


@pytest.mark.parametrize("n_known", [0, 5])
@pytest.mark.parametrize("share", [1.0, 1.1, 1.3])
def test_no_cluster_is_larger(share: float, n_known: int) -> None:
    x, truth = blobs(203, k=10, spread=1.0)
    labels = partly(truth, n_known)
    found = k_means(x, 10, labels=labels, n_init=2, size_cap=share)
    sizes = np.bincount(found.labels, minlength=10)
    limit = {1.0: 21, 1.1: 23, 1.3: 27}[share]
    assert (sizes <= np.maximum(limit, np.bincount(labels[labels >= 0], minlength=10))).all()
    assert sizes.max() == limit
    assert np.array_equal(found.labels.numpy()[labels >= 0], labels[labels >= 0])
    np.testing.assert_allclose(
        found.inertia, plain_inertia(x, found.centers.double().numpy(), found.labels.numpy()), rtol=1e-5
    )
    assert found.inertia >= k_means(x, 10, labels=labels, n_init=10).inertia * 0.999


def test_a_share_that_is_not_quite_a_number() -> None:
    x, _ = blobs(100, k=4, spread=2)
    assert np.bincount(k_means(x, 10, size_cap=1.1, n_init=1).labels).max() <= 11  # 1.1 * 100 / 10 > 11 in floats


def test_more_labelled_samples_than_the_cap() -> None:
    x, _ = blobs(100, k=4)
    labels = np.full(100, -1)
    labels[:60] = 0
    found = k_means(x, 4, labels=labels, n_known=1, size_cap=1.0, n_init=2)
    sizes = np.bincount(found.labels, minlength=4)
    assert sizes[0] == 60
    assert (sizes[1:] <= 25).all()


@pytest.mark.parametrize("smallest_raise", [0.01, 2.0])
def test_inertia_never_rises(smallest_raise: float, monkeypatch) -> None:
    monkeypatch.setattr(capacity, "RAISE", smallest_raise)  # the rougher, the worse an assignment may be
    x, _ = blobs(200, k=10, spread=1.5)
    course = [k_means(x, 8, n_init=1, max_iter=i, tol=0, size_cap=1.05).inertia for i in range(1, 12)]
    assert (np.diff(course) <= 1e-6 * course[0]).all()
    assert course[0] > 1.01 * course[-1]


def test_constant_features() -> None:
    found = k_means(np.ones((20, 3)), 4, size_cap=1.0, n_init=2)
    assert torch.bincount(found.labels).tolist() == [5, 5, 5, 5]
    assert found.inertia == 0


def test_bad_input(monkeypatch) -> None:
    x, _ = blobs(50)
    assert k_means(x, 4, size_cap=np.inf, n_init=1).inertia == k_means(x, 4, size_cap=4, n_init=1).inertia
    with pytest.raises(ConfigError, match="size_cap must be 1"):
        k_means(x, 4, size_cap=0.9)
    monkeypatch.setattr(capacity, "MAX_BYTES", 799)
    with pytest.raises(DataError, match=r"all distances at once.*50 samples and 4 clusters"):
        k_means(x, 4, size_cap=2)
