"""Lloyd's steps against the plain version: nearest centres, clamping, what moved, empty clusters."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_kmeans import all_distances, blobs, partly, plain_inertia, plain_lloyd

from newkind.clustering import lloyd as module
from newkind.clustering.lloyd import inertia, lloyd, nearest, sums_of
from newkind.clustering.rows import Rows, centred_rows

CPU = torch.device("cpu")


def rows_of(x: np.ndarray) -> Rows:
    """Not centred, so that numbers can be compared as they are."""
    return centred_rows(x, CPU, shift=torch.zeros(x.shape[1]))


@pytest.mark.parametrize("k", [1, 2, 17])
def test_nearest(k: int) -> None:
    x, _ = blobs()
    centers = x[:k] + 0.1
    rows = rows_of(x)
    sums = sums_of(rows.subset(torch.arange(0)), torch.arange(0), k)
    found = nearest(rows, torch.from_numpy(centers), sums=sums)
    expected = all_distances(x, centers)
    np.testing.assert_allclose(expected[np.arange(len(x)), found.labels], expected.min(axis=1), rtol=1e-4)
    np.testing.assert_allclose(found.distances(rows, torch.from_numpy(centers)), expected.min(axis=1), rtol=1e-4)
    assert np.array_equal(sums.counts, np.bincount(found.labels, minlength=k))
    for j in range(k):
        np.testing.assert_allclose(sums.features[j], x[found.labels.numpy() == j].sum(axis=0), atol=1e-4)


def test_a_distance_of_nothing_is_nothing() -> None:
    x, _ = blobs()
    rows = rows_of(x + 3)
    centers = rows.values()[:20]
    assert nearest(rows, centers).distances(rows, centers)[:20].tolist() == [0] * 20


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 30), share=st.floats(0, 1), far=st.floats(0.01, 3))
def test_looking_only_at_what_moved_gives_the_same(seed: int, k: int, share: float, far: float) -> None:
    rng = np.random.default_rng(seed)
    rows = rows_of(rng.normal(size=(120, 4)).astype(np.float32))
    centers = torch.from_numpy(rng.normal(size=(k, 4)).astype(np.float32))
    moved = torch.from_numpy(rng.random(k) < share)
    sums = sums_of(rows.subset(torch.arange(0)), torch.arange(0), k)
    before = nearest(rows, centers, sums=sums)
    later = torch.where(moved[:, None], centers + far * torch.from_numpy(rng.normal(size=(k, 4))).float(), centers)
    got = nearest(rows, later, before=before, moved=moved, sums=sums)
    expected = all_distances(rows.values().numpy(), later.numpy())
    own = expected[np.arange(120), got.labels]
    np.testing.assert_allclose(own, expected.min(axis=1), atol=1e-5)
    np.testing.assert_allclose(got.distances(rows, later), own, atol=1e-5)
    again = sums_of(rows, got.labels, k)
    assert torch.equal(sums.counts, again.counts)
    np.testing.assert_allclose(sums.features, again.features, atol=1e-4)


def test_few_moved_centres_are_looked_at_alone(monkeypatch) -> None:
    seen = []
    whole = module._best

    def spied(x: torch.Tensor, lengths: torch.Tensor, directions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        seen.append((len(x), len(lengths)))
        return whole(x, lengths, directions)

    monkeypatch.setattr(module, "_best", spied)
    x, _ = blobs()
    rows, centers = rows_of(x), torch.from_numpy(x[:20])
    before = nearest(rows, centers)
    moved = torch.zeros(20, dtype=torch.bool)
    assert torch.equal(nearest(rows, centers, before=before, moved=moved).labels, before.labels)
    assert seen == [(300, 20)]
    moved[3] = True
    centers[3] += 100
    nearest(rows, centers, before=before, moved=moved)
    assert seen == [(300, 20), (300, 1), (int((before.labels == 3).sum()), 20)]


@pytest.mark.parametrize("n_known", [0, 4, 10])
@pytest.mark.parametrize("n_iter", [1, 2, 3, 7])
def test_steps(n_known: int, n_iter: int) -> None:
    x, truth = blobs(
        spread=0.95
    )  # in all steps, the nearest centre is nearer than the next by more than rounding errors
    labels = partly(truth, n_known)
    rows = rows_of(x)
    free = np.flatnonzero(labels < 0)
    fixed_rows = np.flatnonzero(labels >= 0)
    fixed = sums_of(rows.subset(torch.from_numpy(fixed_rows)), torch.from_numpy(labels[fixed_rows]), 10)
    start = x[:10]
    expected_centers, expected_labels = plain_lloyd(x, start, labels, n_iter)
    found = lloyd(rows.subset(torch.from_numpy(free)), fixed, torch.from_numpy(start), max_iter=n_iter, tolerance=0)
    assert found.n_iter == n_iter
    np.testing.assert_allclose(found.centers, expected_centers, atol=1e-5)
    assert np.array_equal(found.labels, expected_labels[free])


def test_it_ends_when_nothing_changes() -> None:
    x, _ = blobs()
    rows = rows_of(x)
    nobody = sums_of(rows.subset(torch.arange(0)), torch.arange(0), 10)
    first = lloyd(rows, nobody, torch.from_numpy(x[:10]), max_iter=500, tolerance=0)
    assert first.n_iter < 100
    again = lloyd(rows, nobody, first.centers, max_iter=500, tolerance=1e-9)
    assert again.n_iter == 1
    np.testing.assert_allclose(again.centers, first.centers, atol=1e-6)
    assert torch.equal(again.labels, first.labels)


def test_tolerance_ends_it_earlier() -> None:
    x, _ = blobs(spread=2)
    rows = rows_of(x)
    nobody = sums_of(rows.subset(torch.arange(0)), torch.arange(0), 10)
    start = torch.from_numpy(x[:10])
    lengths = [lloyd(rows, nobody, start, max_iter=500, tolerance=tolerance).n_iter for tolerance in (0, 1, 1e9)]
    assert lengths[0] > lengths[1] > lengths[2] == 1


def test_inertia_is_exact_where_clusters_are_tight() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 5, 2000)
    centers = (100 * rng.normal(size=(5, 8))).astype(np.float32)
    x = centers[truth] + 1e-3 * rng.normal(size=(2000, 8)).astype(np.float32)
    got = inertia(rows_of(x), torch.from_numpy(centers), torch.from_numpy(truth))
    assert got == pytest.approx(plain_inertia(x, centers, truth), rel=1e-6)


def test_an_empty_cluster_takes_the_farthest_row() -> None:
    x = np.array([[0.0], [1.0], [10.0], [11.0], [15.0]], dtype=np.float32)
    rows = rows_of(x)
    nobody = sums_of(rows.subset(torch.arange(0)), torch.arange(0), 3)
    start = torch.tensor([[0.0], [10.0], [1000.0]])
    found = lloyd(rows, nobody, start, max_iter=1, tolerance=0)
    assert found.centers.squeeze(1).tolist() == [0.5, 10.5, 15]
    assert found.labels.tolist() == [0, 0, 1, 1, 2]


def test_a_single_row_is_not_taken_from_its_cluster() -> None:
    x = np.array([[0.0], [1.0], [2.0], [50.0]], dtype=np.float32)
    rows = rows_of(x)
    nobody = sums_of(rows.subset(torch.arange(0)), torch.arange(0), 3)
    # 50 is the farthest from its centre, 40, but alone there: the next farthest is taken.
    found = lloyd(rows, nobody, torch.tensor([[0.0], [40.0], [999.0]]), max_iter=1, tolerance=0)
    assert found.centers.squeeze(1).tolist() == [0.5, 50, 2]
    assert found.labels.tolist() == [0, 0, 2, 1]


def test_more_clusters_than_different_rows() -> None:
    rows = rows_of(np.repeat(np.array([[0.0, 1.0], [5.0, 5.0]], dtype=np.float32), 10, axis=0))
    nobody = sums_of(rows.subset(torch.arange(0)), torch.arange(0), 6)
    found = lloyd(rows, nobody, rows.values()[:6] + 0.5, max_iter=50, tolerance=0)
    assert found.centers.isfinite().all()
    assert inertia(rows, found.centers, found.labels) == pytest.approx(0, abs=1e-9)
