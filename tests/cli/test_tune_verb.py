"""`newkind tune`, as a user runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def clouds(tmp_path: Path) -> Path:
    """Six clouds in 8-d; four are known, with half of their samples labelled."""
    rng = np.random.default_rng(0)
    kind = np.repeat(np.arange(6), 12)
    features = (3 * rng.normal(size=(6, 8))[kind] + rng.normal(size=(72, 8))).astype(np.float32)
    labels = np.where((kind < 4) & (np.arange(72) % 2 == 0), kind, -1)
    np.savez(tmp_path / "clouds.npz", features=features, labels=labels, truth=kind)
    np.savez(tmp_path / "blank.npz", features=features, labels=np.full(72, -1))
    return tmp_path


def answer(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLUMNS": "200", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "newkind", "tune", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=place, env=environment)


def test_from_labels_to_the_next_command(clouds: Path) -> None:
    done = answer(clouds, "clouds.npz", "--out", "o", "--try", "mixture_balance=1", "--epochs", "2")
    assert done.returncode == 0, done.stderr
    assert "4 runs (2 settings x 2 folds), about " in done.stdout
    assert "[4/4] mixture_balance=1, fold 1: All " in done.stdout
    assert "default" in done.stdout
    assert "Next:  newkind discover clouds.npz --out RUN" in done.stdout
    found = json.loads((clouds / "o" / "tune.json").read_text())
    assert [len(row["all"]["folds"]) for row in found["rows"]] == [2, 2]
    assert found["n_classes"] == 4
    assert found["verdict"] in done.stdout
    assert (clouds / "o" / "tune.md").exists()


@pytest.mark.parametrize(
    ("data", "extra", "sentence"),
    [("blank.npz", "mixture_balance=1", "No image is labelled"), ("clouds.npz", "speed=9", "has no setting 'speed'")],
)
def test_bad_input(clouds: Path, data: str, extra: str, sentence: str) -> None:
    done = answer(clouds, data, "--out", "o", "--try", extra)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert not (clouds / "o").exists()
