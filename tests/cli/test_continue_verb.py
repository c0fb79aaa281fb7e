"""`discover --continue`, `predict --report` and their errors, run as a user runs them."""

import csv
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from coloured_pictures import make_data, make_more

Newkind = Fails = Callable[..., subprocess.CompletedProcess[str]]
SMALL = ["--backbone", "vit_tiny_patch16_224", "--random-weights", "--image-size", "32", "--effort", "quick"]


@pytest.fixture
def run(newkind: Newkind, tmp_path: Path) -> Path:
    """A run with a renamed category."""
    data = make_data(tmp_path / "data")
    done = newkind("discover", data, "--out", tmp_path / "run", *SMALL, "--n-categories", "4", "--no-report")
    assert done.returncode == 0, done.stderr
    assert newkind("rename", tmp_path / "run", "new-01", "Blau").returncode == 0
    return tmp_path / "run"


def rows_of(path: Path) -> dict[str, dict[str, str]]:
    with open(path, newline="") as file:
        return {row["file"]: row for row in csv.DictReader(file)}


def test_come_back_next_month(newkind: Newkind, run: Path, tmp_path: Path) -> None:
    more, after = make_more(tmp_path / "march"), tmp_path / "run2"
    done = newkind("discover", "--continue", run, "--add", more, "--n-categories", "5", "--out", after)
    assert done.returncode == 0, done.stderr
    assert "New images" in done.stdout
    assert "48 images known, 20 new" in done.stderr
    before, rows = rows_of(run / "assignments.csv"), rows_of(after / "assignments.csv")
    assert len(rows) == 68
    assert {name: row["category"] for name, row in before.items()} == {name: rows[name]["category"] for name in before}
    assert rows[str(more / "day5" / "yellow.png")]["category"] == "new-03"
    assert 'id="since"' in (after / "report.html").read_text()
    done = newkind("sort", after, "--to", tmp_path / "sorted", "--mode", "symlink")  # the run knows both folders
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "sorted" / "new-03").iterdir())) == 12
    done = newkind("predict", after, more, "--out", tmp_path / "p.csv", "--report")
    assert done.returncode == 0, done.stderr
    assert "Predictions of run2" in (tmp_path / "p.html").read_text()
    assert len(rows_of(tmp_path / "p.csv")) == 20
    assert newkind("report", after).returncode == 0
    assert 'id="since"' in (after / "report.html").read_text()


def test_killed_and_repeated(run: Path, tmp_path: Path, environment: dict[str, str], newkind: Newkind) -> None:
    more = make_more(tmp_path / "march")
    command = ["discover", "--continue", str(run), "--add", str(more), "--no-report", "--out"]
    assert newkind(*command, tmp_path / "whole").returncode == 0
    for seconds in (2.0, 3.0, 4.0):
        process = subprocess.Popen(
            [sys.executable, "-m", "newkind", *command, str(tmp_path / "killed")],
            env=environment,
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        time.sleep(seconds)
        process.kill()
        process.wait(timeout=120)
    assert newkind(*command, tmp_path / "killed").returncode == 0
    for name in ("assignments.csv", "categories.json", "features.npy", "digests.npy", "model.safetensors"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_errors(fails: Fails, run: Path, tmp_path: Path, features: Path) -> None:
    more, out = make_more(tmp_path / "march", n_yellow=2), tmp_path / "out"
    together = ["discover", "--continue", run, "--out", out, "--add"]
    fails("overlapping-folders", *together, tmp_path / "data" / "red")
    fails("overlapping-folders", *together, more, "--add", more)
    fails("not-images", *together, features)
    fails("missing-file", *together, tmp_path / "nothing")
    fails("other-settings", *together, more, "--epochs", "3")
    fails("other-backbone", *together, more, "--backbone", "vit_small_patch14_dinov2.lvd142m")
    fails("missing-file", "discover", "--continue", tmp_path / "nothing", "--out", out)
    fails("missing-argument", "discover", "--out", out)
    fails("other-settings", "discover", tmp_path / "data", "--add", more, "--out", out)
    os.unlink(run / "model-assignments.csv")
    os.unlink(run / "assignments.csv")
    fails("not-finished", *together, more)
    assert not out.exists()
