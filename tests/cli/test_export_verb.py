"""`export`, `apply` and `sort`, run as a user runs them."""

import csv
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from newkind.runs.run import Run
from painted_run import write_run

Newkind = Fails = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run of 48 images in four categories."""
    return write_run(tmp_path / "run", tmp_path / "data")


def test_out_and_back(newkind: Newkind, fails: Fails, run: Run, tmp_path: Path) -> None:
    done = newkind("export", run.folder, "--format", "labelstudio", "--out", tmp_path / "t.json")
    assert done.returncode == 0, done.stderr
    tasks = json.loads((tmp_path / "t.json").read_text())
    moved = next(task for task in tasks if task["data"]["category"] == "new-01")
    region = moved["predictions"][0]["result"][0]
    region["value"]["choices"] = ["apple"]
    moved["annotations"] = [{"result": [region]}]
    (tmp_path / "t.json").write_text(json.dumps(tasks))
    apply = ("apply", run.folder, tmp_path / "t.json", "--format", "labelstudio")
    assert "1 decision," in newkind(*apply, "--dry-run").stdout
    assert not (run.folder / "decisions.sqlite").exists()
    done = newkind(*apply, "--author", "ann")
    assert done.returncode == 0, done.stderr
    assert "ann" in newkind("history", run.folder).stdout
    with open(run.assignments_file, newline="") as file:
        rows = {row["file"]: row for row in csv.DictReader(file)}
    assert rows[moved["data"]["newkind_file"]]["category"] == "apple"
    (tmp_path / "t.json").write_text("{")
    fails("invalid-file", *apply)
    fails("missing-mode", "export", run.folder, "--format", "folders", "--out", tmp_path / "x")
    fails("unknown-role", "export", run.folder, "--format", "csv", "--out", tmp_path / "x.csv", "--column", "lat")
    fails("unknown-choice", "sort", run.folder, "--to", tmp_path / "x")
    assert not (tmp_path / "x").exists()
