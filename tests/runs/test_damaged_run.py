"""Run folders that were damaged or written by somebody else: an error with a code, never a traceback or a wrong number."""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import newkind
from error_codes import raises
from feature_clusters import feature_clusters
from newkind.errors import RunError
from newkind.runs.assignments import read_assignments, read_categories
from newkind.runs.model_io import load_model
from newkind.runs.run import Run


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damaged")
    np.savez(folder / "clouds.npz", **feature_clusters(6, 3, n_each=10, dim=8))
    newkind.discover(folder / "clouds.npz", folder / "run", report=False)
    return folder / "run"


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


def change(path: Path, changed: Callable[[dict[str, Any]], Any]) -> None:
    content = json.loads(path.read_text())
    path.write_text(json.dumps(changed(content)))


def test_a_very_long_cell_of_the_assignments_is_refused(run: Path) -> None:
    path = run / "assignments.csv"
    path.write_text(path.read_text().replace("new-01", "x" * 200_000))
    limit = csv.field_size_limit(10**6)  # as other packages set it
    try:
        with raises(RunError, "unreadable"):
            read_assignments(Run.open(run))
    finally:
        csv.field_size_limit(limit)


def test_a_sound_model_is_loaded(run: Path) -> None:
    assert len(load_model(Run.open(run)).categories) == 6


def test_a_changed_byte_of_the_model_is_found(run: Path) -> None:
    path = run / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1  # in the values, where safetensors itself checks nothing
    path.write_bytes(content)
    with raises(RunError, "damaged-model"):
        load_model(Run.open(run))


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_values_that_are_not_finite_are_refused_also_in_runs_without_a_digest(run: Path, bad: float) -> None:
    tensors = load_file(run / "model.safetensors")
    name = next(name for name, value in tensors.items() if value.is_floating_point() and value.numel() > 1)
    tensors[name] = torch.full_like(tensors[name], bad)
    save_file(tensors, run / "model.safetensors")
    change(run / "model.json", lambda card: {k: v for k, v in card.items() if k != "model_sha256"})
    with raises(RunError, "damaged-model"):
        load_model(Run.open(run))


def test_a_run_of_a_version_without_digests_is_read(run: Path) -> None:
    change(run / "model.json", lambda card: {k: v for k, v in card.items() if k != "model_sha256"})
    assert load_model(Run.open(run)).dim == 8


@pytest.mark.parametrize(
    "bad",
    [
        {"dim": 10**12},
        {"dim": 0},
        {"dim": "8"},
        {"n_known": -1},
        {"n_known": 10**6},
        {"n_categories": 10**15},
        {"n_categories": None},
        {"views": [10**9]},
        {"views": "all"},
        {"views": []},
        {"method": ["modern"]},
        {"method_config": None},
        {"backbone": {"name": 5}},
        {"backbone": {"weights": 5}},
        {"weights_sha256": 7},
    ],
    ids=str,
)
def test_a_mistyped_model_card_is_refused(run: Path, bad: dict[str, Any]) -> None:
    change(run / "model.json", lambda card: card | bad)
    with pytest.raises(RunError):
        load_model(Run.open(run))


def test_categories_of_another_model_are_refused(run: Path) -> None:
    change(run / "categories.json", lambda content: content | {"categories": content["categories"][:-1]})
    with raises(RunError, "assignments-mismatch"):
        load_model(Run.open(run))


@pytest.mark.parametrize(
    "categories",
    [
        None,
        {},
        [[]],
        [{"name": ["x"]}],
        "deep",
        [{"name": 5, "status": "new", "prototype": 0, "n_images": 1, "mean_confidence": 1}],
    ],
)
def test_mistyped_categories_are_refused(run: Path, categories: Any) -> None:
    if categories == "deep":
        (run / "categories.json").write_text('{"categories": ' + "[" * 100_000)
    else:
        change(run / "categories.json", lambda content: content | {"categories": categories})
    with raises(RunError, "unreadable"):
        read_categories(Run.open(run))


@pytest.mark.parametrize(
    "bad", [{"root": 5}, {"data": []}, {"config": 1}, {"fingerprint": {}}, {"answer": []}, {"format": "x"}]
)
def test_a_mistyped_config_is_refused(run: Path, bad: dict[str, Any]) -> None:
    change(run / "config.json", lambda content: content | bad)
    with pytest.raises(RunError):
        Run.open(run)


@pytest.mark.parametrize("line", [b"[]", b'{"epoch": "x"}', b"[" * 100_000, b"\xff", b'{"epoch": NaN}', b"{}"])
def test_metrics_end_at_the_first_bad_row(run: Path, line: bytes) -> None:
    (run / "metrics.jsonl").write_bytes(b'{"epoch": 1}\n' + line + b'\n{"epoch": 3}\n')
    assert Run.open(run).metrics() == [{"epoch": 1}]
    Run.open(run).cut_metrics(1)
