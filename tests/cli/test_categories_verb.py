"""`estimate-k`, `methods`, and discover with other methods and an unknown number of categories."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

Newkind = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def newkind(tmp_path: Path) -> Newkind:
    environment = os.environ | {"COLUMNS": "300", "NEWKIND_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "newkind", *map(os.fspath, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    return run


@pytest.fixture
def features(tmp_path: Path) -> Path:
    """Ten clouds in 16-d; five are known, with half of their samples labelled."""
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(10), 20)
    x = 3 * rng.normal(size=(10, 16))[truth] + rng.normal(size=(200, 16))
    labels = np.where((truth < 5) & (np.arange(200) % 2 == 0), truth, -1)
    path = tmp_path / "clouds.npz"
    np.savez(path, features=x.astype(np.float32), labels=labels, truth=truth)
    return path


def test_estimate_k(newkind: Newkind, features: Path, tmp_path: Path) -> None:
    done = newkind("estimate-k", features, "--out", tmp_path / "k")
    assert done.returncode == 0, done.stderr
    assert "(5 of them known), probably between" in done.stdout
    assert "The truth has 10." in done.stdout
    found = json.loads((tmp_path / "k" / "estimate-k.json").read_text())
    assert 8 <= found["n_categories"] <= 13
    assert (tmp_path / "k" / "estimate-k.svg").read_text().startswith("<svg")
    again = newkind("estimate-k", features, "--out", tmp_path / "k")
    assert again.returncode == 2
    assert "holds an estimate already" in again.stderr
    published = newkind("estimate-k", features, "--published", "--max-categories", "40")
    assert "by the published search" in published.stdout, published.stderr


def test_discover_with_an_unknown_number(newkind: Newkind, features: Path, tmp_path: Path) -> None:
    settings = ["--n-categories", "auto", "--epochs", "20", "--batch-size", "64", "--evaluate-every", "20"]
    done = newkind("discover", features, "--out", tmp_path / "auto", *settings)
    assert done.returncode == 0, done.stderr
    assert "probably between" in done.stdout
    assert "Of room for" in done.stdout
    rows = json.loads((tmp_path / "auto" / "categories.json").read_text())["categories"]
    assert sum(row["status"] == "known" for row in rows) == 5
    assert all(row["n_images"] > 0 for row in rows if row["status"] == "new")
    card = json.loads((tmp_path / "auto" / "model.json").read_text())
    assert card["method_config"]["n_categories"] == len(rows)
    assert (tmp_path / "auto" / "estimate-k.svg").exists()
    before = (tmp_path / "auto" / "assignments.csv").read_bytes()
    again = newkind("discover", features, "--out", tmp_path / "auto", *settings)
    assert "Going on after epoch 20 of 20" in again.stdout, again.stderr
    assert (tmp_path / "auto" / "assignments.csv").read_bytes() == before
    predicted = newkind("predict", tmp_path / "auto", features)
    assert predicted.returncode == 0, predicted.stderr
    ours = {row["file"]: row["category"] for row in csv.DictReader(before.decode().splitlines())}
    labelled = {r["file"] for r in csv.DictReader(before.decode().splitlines()) if r["status"] == "labelled"}
    for row in csv.DictReader(predicted.stdout.splitlines()):
        if row["file"] not in labelled:
            assert row["category"] == ours[row["file"]]


@pytest.mark.parametrize("method", ["kmeans", "gcd"])
def test_methods_that_cluster(newkind: Newkind, features: Path, tmp_path: Path, method: str) -> None:
    run = tmp_path / method
    settings = ["--method", method, "--set", "n_init=2", "--epochs", "2", "--batch-size", "64"]
    done = newkind("discover", features, "--out", run, *settings)
    assert done.returncode == 0, done.stderr
    assert f"method {method}" in done.stdout
    assert json.loads((run / "scores.json").read_text())["accuracy"]["all"] > 0.8
    predicted = newkind("predict", run, features)
    assert predicted.returncode == 0, predicted.stderr
    ours = {row["file"]: row for row in csv.DictReader((run / "assignments.csv").read_text().splitlines())}
    for row in csv.DictReader(predicted.stdout.splitlines()):
        if ours[row["file"]]["status"] != "labelled":
            assert row["category"] == ours[row["file"]]["category"]


def test_methods_are_listed_with_their_settings(newkind: Newkind) -> None:
    assert all(name in newkind("methods").stdout for name in ("simgcd", "gcd", "kmeans"))
    assert "supervised_weight" in newkind("methods", "gcd").stdout


@pytest.mark.parametrize(
    ("extra", "sentence"),
    [
        (["--method", "magic"], "There is no method 'magic'"),
        (["--set", "speed=9"], "has no setting 'speed'"),
        (["--set", "speed"], "written as name=value"),
        (["--set", "entropy_weight=much"], "entropy_weight is a number"),
        (["--n-categories", "many"], "a whole number or auto"),
        (["--n-categories", "4"], "fewer than the 5 known"),
    ],
)
def test_bad_settings_of_methods(
    newkind: Newkind, features: Path, tmp_path: Path, extra: list[str], sentence: str
) -> None:
    done = newkind("discover", features, "--out", tmp_path / "run", *extra)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()
