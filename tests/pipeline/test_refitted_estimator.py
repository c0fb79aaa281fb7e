"""An estimator loaded from a run with decisions."""

import pickle
from pathlib import Path

import numpy as np

import newkind
from feature_clusters import feature_clusters


def test_an_estimator_follows_decisions_and_can_be_pickled(tmp_path: Path) -> None:
    arrays = feature_clusters(6, 3, n_each=16, dim=8)
    np.savez(tmp_path / "clouds.npz", **arrays)
    found = newkind.discover(tmp_path / "clouds.npz", tmp_path / "run", n_categories=6, report=False)
    new = [category.id for category in found.categories if category.status == "new"]
    found.merge(new[:2], into=new[0])
    found.rename(new[0], "bee")
    found.junk(found[new[2]].images[0])
    found.accept(found.refit())
    model = newkind.SimGCD.load(tmp_path / "run")
    assert set(model.classes_) == {"0", "1", "2", "bee", new[2]}
    assert (model.labels_ == "").sum() == 1
    predicted = model.predict(arrays["features"])
    assert (predicted == [line.category for line in found.predict(tmp_path / "clouds.npz")]).all()
    np.testing.assert_allclose(model.predict_proba(arrays["features"]).sum(axis=1), 1, rtol=1e-5)
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(arrays["features"]) == predicted).all()
