"""Run folders of format 1, written by an earlier version, still load, predict and show their settings."""

from pathlib import Path

import numpy as np
import pytest

import newkind
from newkind.config import DiscoverConfig, NCategories, TrainingConfig, from_json
from newkind.data import from_features
from newkind.methods.registry import find_method
from newkind.pipeline.predict import predict
from newkind.runs.run import Run

FOLDER = Path(__file__).parent / "format_1"
METHODS = {"modern": "modern", "release": "simgcd", "gcd": "gcd"}


@pytest.mark.parametrize("name", METHODS)
def test_an_old_run_predicts_what_it_assigned(name: str) -> None:
    run = newkind.load(FOLDER / name)
    items = from_features(np.load(FOLDER / "features.npy"), [None] * 40).catalog.items
    found = predict(run.model, items).assignments
    for old, new in zip(run.assignments, found, strict=True):
        if old.status != "labelled":
            assert new.category == old.category
            assert new.confidence == pytest.approx(old.confidence, abs=2e-3)


@pytest.mark.parametrize("name", METHODS)
def test_an_old_config_is_read_as_a_current_one(name: str) -> None:
    content = Run.open(FOLDER / name).config()["config"]
    config = DiscoverConfig(
        method_name=content["method_name"],
        method=from_json(find_method(content["method_name"]).config, content["method"]),
        n_categories=from_json(NCategories, content["n_categories"]),
        training=from_json(TrainingConfig, content["training"]),
    )
    assert config.method_name == METHODS[name]
    assert config.n_categories.number == 4
    assert config.training.views_per_step == 2


def test_an_old_run_becomes_an_estimator() -> None:
    model = newkind.SimGCD.load(FOLDER / "gcd")
    assert type(model).__name__ == "GCD"
    assert model.n_categories == 4


def test_an_old_run_says_that_nothing_is_calibrated() -> None:
    run = newkind.load(FOLDER / "modern")
    assert not run.model.calibrated
    assert all(line.outlier is None and line.novelty is None for line in run.assignments)
    found = predict(run.model, from_features(np.load(FOLDER / "features.npy"), [None] * 40).catalog.items).assignments
    assert all(line.outlier is None and line.novelty is not None for line in found)
