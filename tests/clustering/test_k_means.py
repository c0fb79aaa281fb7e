"""k-means and semi-supervised k-means as a whole: against the plain version, scikit-learn, and bad input."""

from pathlib import Path

import numpy as np
import pytest
import torch
from plain_kmeans import all_distances, blobs, partly, plain_assign, plain_inertia, plain_lloyd
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from threadpoolctl import threadpool_limits

from error_codes import raises
from newkind.clustering import Clusters, assign, k_means, known_first, rows
from newkind.clustering import kmeans as module
from newkind.errors import ConfigError, DataError, NewkindError


def is_consistent(x: np.ndarray, found: Clusters, given: np.ndarray | None = None) -> None:
    """Labels are those of the nearest centres or the given ones, centres the means, inertia what it says."""
    centers, labels = found.centers.double().numpy(), found.labels.numpy()
    assert np.isfinite(centers).all()
    chosen = all_distances(x, centers)[np.arange(len(x)), labels]
    best = all_distances(x, centers)[np.arange(len(x)), plain_assign(x, centers, given)]
    np.testing.assert_allclose(chosen, best, rtol=1e-4, atol=1e-5)
    if given is not None:
        assert np.array_equal(labels[given >= 0], given[given >= 0])
    assert found.inertia == pytest.approx(plain_inertia(x, centers, labels), rel=1e-5)


@pytest.mark.parametrize("n_known", [0, 1, 6, 10])
def test_result_is_a_fixed_point(n_known: int) -> None:
    x, truth = blobs(spread=0.8)
    given = partly(truth, n_known)
    found = k_means(x, 10, labels=given, n_known=n_known, tol=0)
    is_consistent(x, found, given)
    for k in range(10):
        np.testing.assert_allclose(found.centers[k], x[found.labels.numpy() == k].mean(axis=0), atol=1e-5)


def test_known_classes_keep_their_numbers() -> None:
    x, truth = blobs(400, spread=0.2)
    given = partly(truth, 6)
    found = k_means(x, 10, labels=given, n_known=6)
    assert (found.labels.numpy()[truth < 6] == truth[truth < 6]).all()
    assert len(np.unique(np.stack([found.labels.numpy(), truth]), axis=1).T) == 10


def test_clamping_holds_against_distance() -> None:
    x = np.array([[0.0], [0.1], [10.0], [10.1], [10.2]], dtype=np.float32)
    found = k_means(x, 2, labels=np.array([0, 1, 0, -1, -1]), n_init=1, max_iter=1)
    # Classes start at their labelled means, 5 and 0.1; the free ones go to 5; then means over all members.
    assert found.labels.tolist() == [0, 1, 0, 0, 0]
    np.testing.assert_allclose(found.centers, [[7.575], [0.1]], atol=1e-5)
    assert found.inertia == pytest.approx(((x[[0, 2, 3, 4], 0] - 7.575) ** 2).sum(), rel=1e-5)


def test_new_centres_come_from_unlabelled_samples(monkeypatch) -> None:
    x, truth = blobs()
    x[truth == 0] += 100  # what distances would choose, but all of it is labelled
    given = np.where(truth == 0, 0, -1)
    starts = []
    whole = module.lloyd
    monkeypatch.setattr(module, "lloyd", lambda *a, **b: starts.append(a[2]) or whole(*a, **b))
    k_means(x, 4, labels=given, n_init=20)
    assert len(starts) == 20
    mean = x.mean(axis=0)
    for start in starts:
        np.testing.assert_allclose(start[0].numpy() + mean, x[truth == 0].mean(axis=0), atol=1e-3)
        near = all_distances(start[1:].numpy() + mean, x).argmin(axis=1)
        assert (truth[near] != 0).all()


@pytest.mark.parametrize("n_init", [1, 7])
def test_the_best_restart_is_kept(n_init: int, monkeypatch) -> None:
    x, _ = blobs(spread=2)
    costs = []
    whole = module.inertia
    monkeypatch.setattr(module, "inertia", lambda *a: costs.append(whole(*a)) or costs[-1])
    found = k_means(x, 10, n_init=n_init)
    assert found.inertia == min(costs)
    assert len(set(costs)) > n_init // 2
    is_consistent(x, found)


DATA = {"digits": (load_digits, 30), "iris": (load_iris, 3), "breast cancer": (load_breast_cancer, 8)}


@pytest.mark.parametrize("name", DATA)
def test_as_good_as_scikit_learn(name: str) -> None:
    load, k = DATA[name]
    x = load().data
    ours = np.mean([k_means(x, k, seed=seed).inertia for seed in range(3)])
    with threadpool_limits(1):  # its threads wait for each other on a busy machine
        theirs = np.mean([KMeans(k, n_init=10, random_state=seed).fit(x).inertia_ for seed in range(3)])
    assert ours <= 1.01 * theirs


@pytest.mark.parametrize("n_known", [0, 5])
def test_inertia_never_rises(n_known: int) -> None:
    x, truth = blobs(spread=1.5)
    given = partly(truth, n_known)
    course = [k_means(x, 10, labels=given, n_init=1, max_iter=i, tol=0).inertia for i in range(1, 25)]
    assert (np.diff(course) <= 1e-6 * course[0]).all()
    assert course[0] > 1.005 * course[-1]


def test_it_ends_by_scikit_learns_rule() -> None:
    x, _ = blobs(spread=1.5)
    nobody, centers, shifts = np.full(300, -1), x[:10].astype(np.float64), []
    while not shifts or shifts[-1] > 0:
        moved, _ = plain_lloyd(x, centers, nobody, 1)
        shifts.append(((moved - centers) ** 2).sum() / x.var(axis=0).mean())
        centers = moved
    for tol in (1e-3, 0.1, 0.7):
        expected = int(np.argmax(np.array(shifts) <= tol)) + 1
        assert 1 < expected < len(shifts) or tol == 1e-3
        assert k_means(x, 10, init=x[:10], tol=tol).n_iter == expected


@pytest.mark.parametrize("n_known", [0, 5])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_chunks_and_maps_make_no_difference(n_known: int, dtype: str, tmp_path: Path, monkeypatch) -> None:
    x, truth = blobs(spread=0.8)
    x = x.astype(dtype)
    given = partly(truth, n_known)
    expected = k_means(x, 10, labels=given, n_init=2, tol=0)
    monkeypatch.setattr(rows, "CHUNK_CELLS", 10 * 13)
    in_pieces = k_means(x, 10, labels=given, n_init=2, tol=0)
    np.save(tmp_path / "x.npy", x)
    monkeypatch.setattr(rows, "HOLD_BYTES", 4 * 8 * 299)  # one row too many, unless some are labelled
    mapped = k_means(np.load(tmp_path / "x.npy", mmap_mode="r"), 10, labels=given, n_init=2, tol=0, init=x[:5])
    whole = k_means(x, 10, labels=given, n_init=2, tol=0, init=x[:5])
    for one, other in ((in_pieces, expected), (mapped, whole)):
        assert torch.equal(one.labels, other.labels)
        np.testing.assert_allclose(one.centers, other.centers, atol=1e-4)
        assert one.inertia == pytest.approx(other.inertia, rel=1e-6)
        is_consistent(x, one, given)


def test_streamed_rows_from_given_centres(tmp_path: Path, monkeypatch) -> None:
    x, truth = blobs(spread=0.8)
    given = partly(truth, 4)
    expected = k_means(x, 10, labels=given, init=x[:10], tol=0)
    monkeypatch.setattr(rows, "HOLD_BYTES", 0)
    monkeypatch.setattr(rows, "CHUNK_CELLS", 70)
    np.save(tmp_path / "x.npy", x)
    found = k_means(np.load(tmp_path / "x.npy", mmap_mode="r"), 10, labels=given, init=x[:10], tol=0)
    assert torch.equal(found.labels, expected.labels)
    np.testing.assert_allclose(found.centers, expected.centers, atol=1e-5)
    assert found.n_iter == expected.n_iter


@pytest.mark.parametrize("offset", [1e4, -3e4])
def test_data_far_from_the_origin(offset: float) -> None:
    x, truth = blobs(400, dim=32, spread=0.3)
    far = (x.astype(np.float64) + offset).astype(np.float32)
    found = k_means(far, 10, tol=0)
    is_consistent(far, found)
    relative = far.astype(np.float64) - offset
    exact = KMeans(10, n_init=10, random_state=0).fit(relative)
    assert found.inertia == pytest.approx(exact.inertia_, rel=1e-4)
    labels, distance = assign(far, found.centers)
    assert torch.equal(labels, found.labels)
    assert float(distance.sum()) == pytest.approx(found.inertia, rel=1e-3)
    assert len(set(zip(found.labels.tolist(), truth.tolist(), strict=True))) == 10


def test_assign(monkeypatch) -> None:
    x, _ = blobs()
    centers = x[::30] + 0.05
    expected = all_distances(x, centers)
    for cells in (10, 10**6):
        monkeypatch.setattr(rows, "CHUNK_CELLS", cells)
        labels, distance = assign(x, torch.from_numpy(centers))
        np.testing.assert_allclose(expected[np.arange(300), labels], expected.min(axis=1), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(distance, expected.min(axis=1), rtol=1e-4, atol=1e-5)


def test_same_seed_same_answer_whatever_the_global_state() -> None:
    x, _ = blobs(spread=2)
    first = k_means(x, 10, n_init=2, seed=3)
    torch.manual_seed(99)
    np.random.seed(99)  # noqa: NPY002
    state = torch.get_rng_state()
    again = k_means(x, 10, n_init=2, seed=torch.Generator().manual_seed(3))
    assert torch.equal(first.centers, again.centers)
    assert torch.equal(first.labels, again.labels)
    assert torch.equal(torch.get_rng_state(), state)
    others = [k_means(x, 10, n_init=2, seed=seed).centers for seed in range(4, 8)]
    assert not all(torch.allclose(other, first.centers, atol=1e-3) for other in others)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int32])
def test_dtypes(dtype: torch.dtype) -> None:
    x = (100 * torch.from_numpy(blobs(spread=0.2)[0])).to(dtype)
    found = k_means(x, 10)
    assert found.centers.dtype == (torch.float32 if dtype.is_floating_point and dtype.itemsize <= 4 else torch.float64)
    is_consistent(x.double().numpy(), found)


def test_wide_numbers_lose_nothing() -> None:
    x, _ = blobs()
    wide = x.astype(np.float64) + 1e10
    found = k_means(wide, 10, tol=0)
    assert found.inertia == pytest.approx(k_means(x, 10, tol=0).inertia, rel=1e-2)
    labels, _ = assign(wide, found.centers)
    distances = all_distances(wide, found.centers.numpy())
    np.testing.assert_allclose(distances[np.arange(300), labels], distances.min(axis=1), rtol=1e-4)


def test_the_input_is_left_alone() -> None:
    x, truth = blobs()
    given = partly(truth, 3)
    tensor = torch.from_numpy(x.copy()).requires_grad_()
    labels = torch.from_numpy(given.copy())
    found = k_means(tensor, 10, labels=labels, n_init=1)
    assert np.array_equal(tensor.detach(), x)
    assert np.array_equal(labels, given)
    assert not found.centers.requires_grad
    x.flags.writeable = given.flags.writeable = False
    assert k_means(x, 10, labels=given, n_init=1).inertia == pytest.approx(found.inertia, rel=1e-5)


def test_warm_start() -> None:
    x, truth = blobs(spread=0.1)
    means = np.stack([x[truth == k].mean(axis=0) for k in range(10)])
    found = k_means(x, 10, init=means)
    assert np.array_equal(found.labels, truth)
    assert found.n_iter <= 2
    found = k_means(x, 10, init=means[:7])  # three more are drawn
    assert np.array_equal(found.labels[truth < 7], truth[truth < 7])
    assert found.inertia == pytest.approx(plain_inertia(x, means, truth), rel=1e-5)
    swapped = k_means(x, 10, labels=np.where(truth == 1, 1, -1), init=means[[2]], n_init=20)
    assert (swapped.labels[truth == 2] == 0).all()  # class 0 has no label: init says where it is
    assert (swapped.labels[truth == 1] == 1).all()


def test_a_known_class_that_nobody_is_labelled_with() -> None:
    x, truth = blobs(spread=0.2)
    given = np.where((truth == 2) & (np.arange(300) % 2 == 0), 2, -1)
    found = k_means(x, 10, labels=given, n_known=4, n_init=20)
    is_consistent(x, found, given)
    assert (found.labels.numpy()[truth == 2] == 2).all()
    assert (np.bincount(found.labels, minlength=10) > 0).all()


def test_everything_is_labelled() -> None:
    x, truth = blobs()
    found = k_means(x, 10, labels=truth)
    assert np.array_equal(found.labels, truth)
    is_consistent(x, found, truth)
    more = k_means(x, 12, labels=truth, n_init=2)  # two clusters that nothing is left for
    assert np.array_equal(more.labels, truth)
    assert more.centers.isfinite().all()


@pytest.mark.parametrize("n_init", [1, 3])
def test_small_and_constant_data(n_init: int) -> None:
    one = k_means(np.array([[3.0, 4.0]]), 1, n_init=n_init)
    assert one.centers.tolist() == [[3, 4]]
    assert (one.labels.tolist(), one.inertia) == ([0], 0)
    same = k_means(np.full((9, 2), 0.3, dtype=np.float32), 4, n_init=n_init)
    np.testing.assert_allclose(same.centers, 0.3, rtol=1e-6)
    assert same.inertia == pytest.approx(0, abs=1e-10)
    column = k_means(np.array([[1.0, 7.0], [2.0, 7.0], [9.0, 7.0]]), 2, n_init=n_init)
    assert sorted(column.centers.tolist()) == [[1.5, 7], [9, 7]]
    each = k_means(np.arange(5.0)[:, None], 5, n_init=n_init)
    assert sorted(each.centers.flatten().tolist()) == [0, 1, 2, 3, 4]
    assert each.inertia == 0


def test_hopeless_starts_leave_no_cluster_empty() -> None:
    x, _ = blobs()
    start = np.full((10, 8), 1e6, dtype=np.float32)
    start[0] = 0
    found = k_means(x, 10, init=start)
    assert (np.bincount(found.labels, minlength=10) > 0).all()
    is_consistent(x, found)
    assert found.inertia < 1.5 * k_means(x, 10).inertia


NAN = np.full((20, 3), np.nan)


@pytest.mark.parametrize(
    ("settings", "kind", "code"),
    [
        ({"n_clusters": 0}, DataError, "n-clusters-range"),
        ({"n_clusters": 21}, DataError, "n-clusters-range"),
        ({"n_clusters": 2.5}, DataError, "n-clusters-range"),
        ({"labels": np.arange(20) % 7}, DataError, "fewer-clusters-than-classes"),
        ({"n_known": 6}, DataError, "fewer-clusters-than-classes"),
        ({"labels": np.arange(19)}, DataError, "labels-shape"),
        ({"labels": np.zeros((20, 1), dtype=int)}, DataError, "labels-shape"),
        ({"labels": np.zeros(20)}, DataError, "labels-shape"),
        ({"labels": np.full(20, -2)}, DataError, "labels-range"),
        ({"labels": np.full(20, 3), "n_known": 3}, DataError, "labels-range"),
        ({"n_init": 0}, ConfigError, "kmeans-settings"),
        ({"max_iter": 0}, ConfigError, "kmeans-settings"),
        ({"tol": -1.0}, ConfigError, "kmeans-settings"),
        ({"tol": np.nan}, ConfigError, "kmeans-settings"),
        ({"init": np.zeros((6, 3))}, DataError, "init-unusable"),
        ({"init": np.zeros((2, 4))}, DataError, "init-unusable"),
        ({"init": NAN[:2]}, DataError, "init-unusable"),
        ({"x": NAN}, DataError, "features-not-finite"),
        ({"x": np.zeros(20)}, DataError, "features-shape"),
        ({"device": "abacus"}, ConfigError, "unknown-device"),
    ],
)
def test_bad_input(settings: dict, kind: type[NewkindError], code: str) -> None:
    given = {"x": np.random.default_rng(0).random((20, 3)), "n_clusters": 5} | settings
    with raises(kind, code) as caught:
        k_means(given.pop("x"), given.pop("n_clusters"), **given)
    assert isinstance(caught.value, ValueError)


def test_centres_and_samples_must_agree() -> None:
    with raises(DataError, "centres-shape"):
        assign(np.zeros((4, 3)), np.zeros((2, 2)))


def test_known_clusters_come_first() -> None:
    clusters, labels = torch.tensor([3, 3, 3, 1, 1, 0, 2, 2]), torch.tensor([1, 1, 0, 0, 0, -1, -1, 0])
    assert known_first(clusters, labels, 4, 2).tolist() == [1, 3, 0, 2]
    assert known_first(clusters, torch.full((8,), -1), 4, 0).tolist() == [0, 1, 2, 3]
