"""SemiSupervisedKMeans as a scikit-learn estimator: scikit-learn's checks, kinds of labels, bad input."""

import pickle

import numpy as np
import pytest
from plain_kmeans import all_distances, blobs, partly
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from error_codes import raises
from newkind.clustering import SemiSupervisedKMeans
from newkind.clustering import semi_supervised_kmeans as module
from newkind.errors import ConfigError, DataError

# These give labels of more classes than the clusters they ask for, which is refused.
TOO_FEW = dict.fromkeys(
    (
        "check_dont_overwrite_parameters",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_fit2d_1feature",
        "check_fit2d_predict1d",
    ),
    "fewer clusters than labelled classes",
)


@parametrize_with_checks([SemiSupervisedKMeans(5, n_init=2, device="cpu")], expected_failed_checks=lambda _: TOO_FEW)
def test_scikit_learns_own_checks(estimator, check) -> None:
    check(estimator)


def test_numbers() -> None:
    x, truth = blobs(spread=0.2)
    y = np.where(partly(truth, 6) >= 0, 10 * truth + 3, -1)
    model = SemiSupervisedKMeans(10).fit(x, y)
    assert model.classes_.tolist() == [3, 13, 23, 33, 43, 53, 54, 55, 56, 57]
    assert np.array_equal(model.labels_[truth < 6], 10 * truth[truth < 6] + 3)
    assert set(model.labels_[truth >= 6]) == {54, 55, 56, 57}
    assert np.array_equal(model.predict(x)[y < 0], model.labels_[y < 0])
    assert np.array_equal(model.predict(x[5:6]), model.labels_[5:6])
    distances = model.transform(x)
    np.testing.assert_allclose(distances**2, all_distances(x, model.cluster_centers_), rtol=1e-4)
    assert np.array_equal(model.classes_[distances.argmin(axis=1)], model.predict(x))
    own = np.searchsorted(model.classes_, model.labels_)
    assert model.inertia_ == pytest.approx((distances[np.arange(300), own] ** 2).sum(), rel=1e-4)
    assert model.n_iter_ >= 1
    assert np.array_equal(SemiSupervisedKMeans(10).fit_predict(x, y), model.labels_)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(x), model.predict(x))


def test_names_and_every_way_to_say_unlabelled() -> None:
    x, truth = blobs(spread=0.1)
    names = np.array(["new-02", "bee", "cat", *["?"] * 7])[truth]
    y = [
        name if label >= 0 else [None, "", float("nan"), -1][i % 4]
        for i, (name, label) in enumerate(zip(names, partly(truth, 3), strict=True))
    ]
    model = SemiSupervisedKMeans(10, n_init=50).fit(x, y)
    assert model.classes_[:3].tolist() == ["bee", "cat", "new-02"]
    new = ["new-01", "new-03", "new-04", "new-05", "new-06", "new-07", "new-08"]
    assert sorted(model.classes_[3:]) == new
    assert np.array_equal(model.labels_[truth < 3], names[truth < 3])
    sizes = [(model.labels_ == name).sum() for name in new]
    assert sizes == sorted(sizes, reverse=True)
    assert np.array_equal(model.predict(x), model.labels_)
    for way in (np.array(y, dtype=object), tuple(y)):
        assert np.array_equal(SemiSupervisedKMeans(10, n_init=50).fit(x, way).labels_, model.labels_)


@pytest.mark.parametrize("y", [None, np.full(300, -1), [""] * 300])
def test_without_labels_it_is_k_means(y) -> None:
    x, truth = blobs(spread=0.1)
    model = SemiSupervisedKMeans(10).fit(x, y)
    assert model.classes_.tolist() == list(range(10))
    assert len(set(zip(model.labels_, truth, strict=True))) == 10


def test_how_centres_are_started(monkeypatch: pytest.MonkeyPatch) -> None:
    x, _ = blobs()
    seen = []
    whole = module.k_means
    monkeypatch.setattr(module, "k_means", lambda *a, **b: seen.append(b["greedy"]) or whole(*a, **b))
    for init in ("k-means++", "greedy", "auto"):
        SemiSupervisedKMeans(10, init=init, n_init=1).fit(x)
    assert seen == [False, True, None]


def test_settings() -> None:
    x, truth = blobs(spread=2)
    given = SemiSupervisedKMeans(10, init=x[:10]).fit(x)
    assert given.inertia_ == SemiSupervisedKMeans(10, init=x[:10], random_state=1).fit(x).inertia_
    assert SemiSupervisedKMeans(10, max_iter=1, n_init=1).fit(x).n_iter_ == 1
    for state in (None, np.random.RandomState(0), np.int64(3)):
        assert SemiSupervisedKMeans(10, random_state=state, n_init=1).fit(x).inertia_ > 0
    model = clone(SemiSupervisedKMeans(10, tol=0.5))
    assert model.get_params()["tol"] == 0.5
    assert model.set_params(n_clusters=3).fit(x).cluster_centers_.shape == (3, 8)
    pipeline = make_pipeline(StandardScaler(), SemiSupervisedKMeans(10, n_init=1))
    assert pipeline.fit(x, partly(truth, 5)).predict(x).shape == (300,)
    assert SemiSupervisedKMeans(3, n_init=1).fit(x).get_feature_names_out().tolist() == [
        f"semisupervisedkmeans{i}" for i in range(3)
    ]


def test_bad_input() -> None:
    x, truth = blobs(40)
    with pytest.raises(NotFittedError):
        SemiSupervisedKMeans(3).predict(x)
    with raises(DataError, "fewer-clusters-than-classes"):
        SemiSupervisedKMeans(3).fit(x, partly(truth, 4))
    with raises(DataError, "labels-length"):
        SemiSupervisedKMeans(10).fit(x, truth[1:])
    with pytest.raises(DataError):
        SemiSupervisedKMeans(10).fit(x, truth + 0.5)
    with raises(ConfigError, "unknown-init"):
        SemiSupervisedKMeans(3, init="random").fit(x)
    with raises(ConfigError, "unknown-device"):
        SemiSupervisedKMeans(3, device="abacus").fit(x)
