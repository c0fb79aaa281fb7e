"""`newkind bench` on the command line."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from error_codes import raises
from feature_clusters import feature_clusters
from newkind.cli import app
from newkind.errors import NewkindError, RunError
from newkind.experiments import cells
from newkind.experiments.paper.catalogue import ARTEFACTS


@pytest.fixture
def blobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four clusters of twelve samples; half of the samples of the first two are labelled."""
    arrays = feature_clusters(4, 2, n_each=12)
    np.savez(tmp_path / "blobs.npz", **arrays)
    np.savez(tmp_path / "blind.npz", features=arrays["features"], labels=arrays["labels"])
    monkeypatch.chdir(tmp_path)
    return tmp_path / "blobs.npz"


def answer(*arguments: str | Path) -> str:
    found = CliRunner().invoke(app, ["bench", *map(str, arguments)], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.output


def test_a_study_from_the_command_line(blobs: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "newkind", "bench", "errors", "--data", blobs, "--methods", "kmeans", "--out", "o"]
    done = subprocess.run(
        [*map(str, command), "--seeds", "2"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"COLUMNS": "200", "OMP_NUM_THREADS": "1"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "[2/2] k-means, seed 1: All" in done.stderr
    assert "o/errors.csv, o/errors.json, o/errors.md, o/errors.tex" in done.stdout
    assert {path.name for path in (tmp_path / "o").iterdir()} == {
        "runs",
        *(f"errors.{suffix}" for suffix in ("csv", "json", "md", "tex", "svg", "png")),
    }
    # A dry run of another study finds the finished runs.
    options = ["--methods", "kmeans,simgcd", "--seeds", "2", "--out", tmp_path / "o", "--dry-run"]
    words = answer("methods", "--data", blobs, *options)
    assert words.count("finished  k-means") == 2
    assert words.count("to run    SimGCD") == 2
    assert len(list((tmp_path / "o" / "runs").iterdir())) == 2


def test_list_names_everything() -> None:
    words = answer("list")
    for artefact in ARTEFACTS.values():
        assert artefact.name in words
        assert artefact.shows in words
        assert artefact.command() in words


def test_dry_run_writes_nothing(blobs: Path, tmp_path: Path) -> None:
    words = answer("unknown-k", "--data", blobs, "--seeds", "1", "--out", tmp_path / "o", "--dry-run")
    assert words.count("to run  ") == 7  # six, and a line for two that wait for an estimate
    assert "Estimated on" in words
    assert not (tmp_path / "o").exists()


def test_failed_runs_end_with_an_error_after_the_table(blobs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_, **__):
        raise RunError("No.", code="nonsense")

    monkeypatch.setattr(cells, "discover", fail)
    with raises(RunError, "runs-failed") as caught:
        answer("errors", "--data", blobs, "--methods", "kmeans", "--seeds", "2", "--out", "o", "--no-figures")
    assert caught.value.facts["n_failures"] == 2
    assert Path("o", "errors.md").exists()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["magic", "--data", "blobs.npz", "--out", "o"], "unknown-study"),
        (["methods", "--out", "o"], "missing-option"),
        (["fig-tsne", "--data", "blobs.npz"], "missing-option"),
        (["methods", "--data", "blind.npz", "--out", "o"], "no-truth"),
        (["methods", "--data", "none.npz", "--out", "o"], "missing-file"),
        (["methods", "--data", "blobs.npz", "--methods", "magic", "--out", "o"], "unknown-method"),
        (["k", "--data", "blobs.npz", "--epsilons", "much", "--out", "o"], "not-a-number"),
        (["methods", "--data", "blobs.npz", "--seeds", "0", "--out", "o"], "out-of-range"),
    ],
)
def test_bad_input(blobs: Path, arguments: list[str], code: str) -> None:
    with raises(NewkindError, code):
        answer(*arguments)
    assert not Path("o").exists()
