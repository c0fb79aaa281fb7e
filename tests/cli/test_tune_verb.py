"""`newkind tune` on the command line."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from error_codes import raises
from feature_clusters import feature_clusters
from newkind.cli import app
from newkind.errors import NewkindError

NEWKIND = shlex.join([sys.executable, "-m", "newkind"])


@pytest.fixture
def clouds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six clusters in 8-d; four are known, with half of their samples labelled."""
    arrays = feature_clusters(6, 4, n_each=12)
    np.savez(tmp_path / "my clouds.npz", **arrays)
    np.savez(tmp_path / "blank.npz", features=arrays["features"], labels=np.full(72, -1))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shell(command: str, place: Path) -> subprocess.CompletedProcess[str]:
    """Run a command line as a user pastes it."""
    environment = os.environ | {"COLUMNS": "200", "OMP_NUM_THREADS": "1"}
    pasted = command.replace("newkind", NEWKIND, 1)
    return subprocess.run(
        pasted, shell=True, capture_output=True, text=True, check=False, cwd=place, env=environment, timeout=300
    )


def test_from_labels_to_the_next_command(clouds: Path) -> None:
    tune = "newkind tune 'my clouds.npz' --out o --try mixture_balance=1 --epochs 2 --views 8 --seed 1 --set frame_shrinkage=0.2"
    done = shell(tune, clouds)
    assert done.returncode == 0, done.stderr
    assert "[4/4] mixture_balance=1, fold 1: All " in done.stderr
    found = json.loads((clouds / "o" / "tune.json").read_text())
    assert [len(row["all"]["folds"]) for row in found["rows"]] == [2, 2]
    assert found["n_classes"] == 4
    assert found["verdict"] in done.stdout
    assert (clouds / "o" / "tune.md").exists()
    (following,) = [line.split("Next:")[1].strip() for line in done.stdout.splitlines() if "Next:" in line]
    assert following == found["command"]
    assert shlex.split(following)[2] == "my clouds.npz"
    assert {"--views", "--seed", "frame_shrinkage=0.2"} <= set(shlex.split(following))
    words = shlex.split(following)
    assert words[words.index("--views") + 1] == "8"
    pasted = shell(f"{following} --dry-run", clouds)
    assert pasted.returncode == 0, pasted.stderr


def test_dry_run(clouds: Path) -> None:
    arguments = ["tune", "my clouds.npz", "--out", "o", "--try", "mixture_balance=1", "--dry-run"]
    answer = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert answer.exit_code == 0
    assert answer.output.count("to run  ") == 4
    assert not (clouds / "o").exists()


@pytest.mark.parametrize(
    ("data", "extra", "code"),
    [("blank.npz", "mixture_balance=1", "no-labels"), ("my clouds.npz", "speed=9", "unknown-setting")],
)
def test_bad_input(clouds: Path, data: str, extra: str, code: str) -> None:
    with raises(NewkindError, code):
        CliRunner().invoke(app, ["tune", data, "--out", "o", "--try", extra], catch_exceptions=False)
    assert not (clouds / "o").exists()
