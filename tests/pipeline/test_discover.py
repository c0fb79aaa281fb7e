"""Metrics of a run, settings of benchmarks, and the number of categories that was used."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import newkind
from error_codes import raises
from newkind.config import TrainingConfig
from newkind.data import from_features, open_data
from newkind.effort import Amount
from newkind.errors import ConfigError
from newkind.pipeline.configure import configure
from newkind.pipeline.discover import discover


def _discover(out: Path, *, method: str, truth: bool) -> list[dict[str, float]]:
    """Five epochs on four blobs, two of them known; the lines of metrics.jsonl."""
    rng = np.random.default_rng(0)
    kind = np.repeat(np.arange(4), 20)
    features = (rng.normal(size=(4, 16))[kind] + 0.1 * rng.normal(size=(80, 16))).astype(np.float32)
    labels = np.where((kind < 2) & (np.arange(80) % 2 == 0), kind, -1)
    collection = from_features(features, labels.tolist(), truth=kind.tolist() if truth else None)
    config = configure(
        collection,
        amount=Amount(epochs=5),
        training=TrainingConfig(batch_size=16, evaluate_every=2),
        method=method,
        n_categories=6,
    )
    discover(collection, out, config)
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("truth", [False, True])
def test_categories_in_use_are_counted_with_truth_and_without(tmp_path: Path, truth: bool) -> None:
    metrics = _discover(tmp_path / "run", method="simgcd", truth=truth)
    assert [row["epoch"] for row in metrics if "active_prototypes" in row] == [2, 4, 5]
    assert [row["epoch"] for row in metrics if "accuracy/all" in row] == ([2, 4, 5] if truth else [])
    with open(tmp_path / "run" / "assignments.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    used = {row["category"] for row in rows if row["status"] != "labelled"}
    assert metrics[-1]["active_prototypes"] == len(used)


def test_evaluations_change_nothing(tmp_path: Path) -> None:
    """The same losses to the last digit, with and without evaluations."""
    with_truth = _discover(tmp_path / "a", method="gcd", truth=True)
    without = _discover(tmp_path / "b", method="gcd", truth=False)
    assert [row["loss/total"] for row in with_truth] == [row["loss/total"] for row in without]
    assert "active_prototypes" in with_truth[-1]
    # A costly read-out is not done just for a count.
    assert not any("active_prototypes" in row for row in without)


def _blobs(tmp_path: Path, name: str = "data") -> Path:
    rng = np.random.default_rng(0)
    kind = np.repeat(np.arange(4), 20)
    features = rng.normal(size=(4, 16))[kind] + 0.1 * rng.normal(size=(80, 16))
    np.savez(tmp_path / f"{name}.npz", features=features, labels=np.where((kind < 2) & (np.arange(80) % 2), kind, -1))
    return tmp_path / f"{name}.npz"


def test_a_folder_called_cub_is_not_the_benchmark(tmp_path: Path, pile: Path) -> None:
    mine = pile.rename(tmp_path / "cub")
    config = configure(open_data(mine), recipe="release")
    assert config.method.entropy_weight == 1.0
    benchmark = replace(open_data(mine), benchmark="cub")
    assert configure(benchmark, recipe="release").method.entropy_weight == 2.0


@pytest.mark.parametrize("asked", [None, 5])
def test_config_json_has_the_number_that_was_used(tmp_path: Path, asked: int | None) -> None:
    found = newkind.discover(
        _blobs(tmp_path), tmp_path / "run", n_categories=asked, epochs=1, device="cpu", report=False
    )
    counts = found.run.config()["n_categories"]
    assert counts["used"] == len(found.categories)
    assert counts["asked"] == ("auto" if asked is None else str(asked))
    assert asked is None or counts["used"] == asked


def test_python_options_and_messages(tmp_path: Path, capsys, caplog) -> None:
    caplog.set_level("INFO", logger="newkind")
    newkind.discover(_blobs(tmp_path), tmp_path / "run", n_categories=4, epochs=1, device="cpu", report=False)
    assert capsys.readouterr() == ("", "")
    assert any(record.name.startswith("newkind.") for record in caplog.records)
    with raises(ConfigError, "unknown-option"):
        newkind.discover(_blobs(tmp_path), tmp_path / "run", epoch=1)


def _clear_blobs(folder: Path, *, truth: bool) -> Path:
    """Twelve well separated blobs of 30, six of them known."""
    rng = np.random.default_rng(0)
    kind = np.repeat(np.arange(12), 30)
    features = 4 * rng.normal(size=(12, 24))[kind] + 0.3 * rng.normal(size=(360, 24))
    more = {"truth": kind} if truth else {}
    np.savez(
        folder / "blobs.npz", features=features, labels=np.where((kind < 6) & (np.arange(360) % 2), kind, -1), **more
    )
    return folder / "blobs.npz"


@pytest.mark.parametrize(("asked", "warned"), [(12, False), (60, True)])
def test_a_given_number_is_obeyed_and_compared_with_the_estimate(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, asked: int, warned: bool
) -> None:
    newkind.discover(
        _clear_blobs(tmp_path, truth=False), tmp_path / "run", n_categories=asked, epochs=1, device="cpu", report=False
    )
    content = json.loads((tmp_path / "run" / "categories.json").read_text())
    assert len(content["categories"]) == asked
    assert content["n_new"]["low"] <= content["n_new"]["estimate"] <= content["n_new"]["high"]
    assert content["n_new"]["low"] <= 6 <= content["n_new"]["high"]
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [str(asked) in text for text in warnings] == [True] * warned


def test_the_number_of_the_truth_is_not_estimated(tmp_path: Path) -> None:
    newkind.discover(_clear_blobs(tmp_path, truth=True), tmp_path / "run", epochs=1, device="cpu", report=False)
    content = json.loads((tmp_path / "run" / "categories.json").read_text())
    assert content["n_new"] == {"found": 6}
    assert not (tmp_path / "run" / "estimate-k.json").exists()


@pytest.mark.parametrize(("filled", "rule"), [(0, "estimated"), (40, "estimated"), (80, "fixed")])
def test_a_truth_of_some_images_does_not_set_the_number(filled: int, rule: str) -> None:
    kind = np.repeat(np.arange(4), 20)
    labels = [int(k) if k < 2 and i % 2 else None for i, k in enumerate(kind)]
    truth = [int(k) if i < filled else None for i, k in enumerate(kind)]
    collection = from_features(np.ones((80, 4), dtype=np.float32), labels, truth=truth)
    assert configure(collection).n_categories.rule == rule


@pytest.mark.parametrize("n_free", [1, 3])
def test_few_unlabelled_images(tmp_path: Path, n_free: int) -> None:
    rng = np.random.default_rng(0)
    kind = np.arange(40) % 2
    features = (rng.normal(size=(2, 16))[kind] + 0.1 * rng.normal(size=(40, 16))).astype(np.float32)
    labels = [None if i < n_free else int(k) for i, k in enumerate(kind)]
    collection = from_features(features, labels)
    found = newkind.discover(collection, tmp_path / "run", report=False)
    assert 2 <= len(found.categories) <= 2 + n_free
    with raises(ConfigError, "too-many-categories"):
        newkind.discover(collection, tmp_path / "more", n_categories=3 + n_free, report=False)
