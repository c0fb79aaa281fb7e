"""The estimators on features, arrays and paths."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

import newkind
from error_codes import raises
from newkind import SimGCD
from newkind.errors import ConfigError, DataError, RunError
from newkind.evaluation import accuracy

K, DIM = 5, 12


def blobs(n: int = 200) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    truth = np.arange(n) % K
    return rng.normal(size=(K, DIM))[truth] + 0.2 * rng.normal(size=(n, DIM)), truth


def partly(truth: np.ndarray) -> np.ndarray:
    return np.where((truth < 3) & (np.arange(len(truth)) // K % 2 == 0), truth, -1)


def quick(**settings) -> SimGCD:
    return SimGCD(K, epochs=15, batch_size=64, device="cpu", **settings)


def test_features_with_numbers() -> None:
    X, truth = blobs()
    y = partly(truth)
    model = quick().fit(X, y)
    assert model.labels_[y >= 0].tolist() == truth[y >= 0].tolist()
    assert model.classes_.tolist() == [0, 1, 2, 3, 4]
    assert accuracy(truth[y < 0], model.labels_[y < 0], truth[y < 0] < 3).old > 0.9
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
    assert np.array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
    assert np.array_equal(model.predict(X)[y < 0], model.labels_[y < 0])
    np.testing.assert_allclose(np.linalg.norm(model.transform(X), axis=1), 1, rtol=1e-5)
    assert np.array_equal(quick().fit_predict(X, y), model.labels_)  # the same seed, the same answer
    other = quick(recipe="release", random_state=1).fit(X, y).predict_proba(X)  # prototypes start elsewhere
    assert np.abs(other - quick(recipe="release").fit(X, y).predict_proba(X)).max() > 1e-3


def test_a_pickled_model_stands_by_itself() -> None:
    X, truth = blobs(60)
    model = quick().fit(X, partly(truth))
    expected, content = model.predict(X), pickle.dumps(model)
    del model
    again = pickle.loads(content)
    assert np.array_equal(again.predict(X), expected)


def test_names_and_every_way_to_say_unlabelled(tmp_path: Path) -> None:
    X, truth = blobs()
    names = np.array(["ant", "bee", "cat", "dog", "eel"])[truth]
    y = [
        name if label >= 0 else [None, "", float("nan"), -1][i % 4]
        for i, (name, label) in enumerate(zip(names, partly(truth), strict=True))
    ]
    model = quick().fit(X, y)
    assert set(model.classes_) == {"ant", "bee", "cat", "new-01", "new-02"}
    model.save(tmp_path / "model")
    again = SimGCD.load(tmp_path / "model")
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(again.labels_, model.labels_)
    assert again.get_params()["epochs"] == 15
    with raises(RunError, "exists"):
        model.save(tmp_path / "model")
    run = newkind.load(tmp_path / "model")
    assert len(run.assignments) == len(X)


def test_images_and_paths(tmp_path: Path, make_image, monkeypatch) -> None:
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path / "cache"))
    digits = load_digits()
    images = np.kron(digits.images[:60] * 15, np.ones((4, 4))).astype(np.uint8)
    y = np.where((digits.target[:60] < 5) & (np.arange(60) % 2 == 0), digits.target[:60], -1)
    small = {
        "backbone": "vit_tiny_patch16_224",
        "random_weights": True,
        "image_size": 32,
        "views": 2,
        "device": "cpu",
    }
    model = SimGCD(10, epochs=2, batch_size=20, **small).fit(images, y)
    # The cache has half precision, which may decide between categories that are equally likely.
    best = np.sort(model.predict_proba(images), axis=1)
    is_clear = (y < 0) & (best[:, -1] - best[:, -2] > 0.05)
    assert is_clear.sum() > 20
    assert np.array_equal(model.predict(images)[is_clear], model.labels_[is_clear])
    assert model.transform(images[:3]).shape == (3, 192)
    paths = [make_image(tmp_path / f"{i}.png", seed=i) for i in range(12)]
    model = SimGCD(4, epochs=1, batch_size=6, **small).fit(paths, ["a", "b", ""] * 4)
    assert model.predict(paths[:2]).shape == (2,)
    with raises(DataError, "length-mismatch"):
        model.fit(paths, ["a", "b", ""])
    with pytest.raises(DataError):
        model.predict(np.zeros((3, 192)))


def test_clone_and_unfitted() -> None:
    model = quick(learning_rate=0.05)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        model.predict(np.zeros((2, DIM)))


def test_bad_input() -> None:
    X, truth = blobs(40)
    with raises(ConfigError, "too-few-categories"):
        SimGCD(2, epochs=1).fit(X, partly(truth))
    with raises(DataError, "all-labelled"):
        quick().fit(X, truth)
    with raises(DataError, "no-labels"):
        quick().fit(X, np.full(40, -1))
    with pytest.raises(ValueError, match="requires y"):
        quick().fit(X)
    with pytest.raises(ValueError, match="NaN"):
        quick().fit(np.where(np.arange(40)[:, None] == 3, np.nan, X), partly(truth))
    with pytest.raises(ValueError, match="dim 3"):
        quick().fit(np.zeros((2, 3, 4)), [0, 1])


@pytest.mark.parametrize("name", ["GCD", "KMeans", "RankStats", "UNO", "ORCA", "DebiasPL"])
def test_any_run_folder_can_be_loaded(name: str, tmp_path: Path) -> None:
    from newkind import sklearn as estimators

    X, truth = blobs(60)
    model = getattr(estimators, name)(K, epochs=1, batch_size=20, device="cpu").fit(X, partly(truth))
    model.save(tmp_path / "run")
    again = SimGCD.load(tmp_path / "run")
    assert type(again).__name__ == name
    assert again.n_categories == K
    assert np.array_equal(again.predict(X), model.predict(X))


def test_a_loaded_estimator_has_the_number_of_categories_that_was_used(tmp_path: Path) -> None:
    X, truth = blobs()
    model = SimGCD("auto", epochs=1, device="cpu").fit(X, partly(truth))
    model.save(tmp_path / "run")
    again = SimGCD.load(tmp_path / "run")
    assert again.n_categories == len(model.classes_)
    assert newkind.load(tmp_path / "run").run.config()["n_categories"]["used"] == len(model.classes_)


def test_arrays_of_paths_and_pandas_like_columns(tmp_path: Path, make_image, monkeypatch) -> None:
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path / "cache"))
    paths = np.array([str(make_image(tmp_path / f"{i}.png", seed=i)) for i in range(12)])
    small = {"backbone": "vit_tiny_patch16_224", "random_weights": True, "image_size": 32, "views": 2}
    model = SimGCD(4, epochs=1, batch_size=6, device="cpu", **small).fit(paths, np.array(["a", "b", ""] * 4))
    assert model.labels_.shape == (12,)
