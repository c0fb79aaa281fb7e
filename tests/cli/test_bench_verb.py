"""`newkind bench`, as a user runs it."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from newkind.cli import app
from newkind.errors import NewkindError
from newkind.experiments.paper.catalogue import ARTEFACTS


@pytest.fixture
def blobs(tmp_path: Path) -> Path:
    """Four clusters of twelve; half of the first two are labelled."""
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(4), 12)
    features = (3 * rng.normal(size=(4, 8))[truth] + rng.normal(size=(48, 8))).astype(np.float32)
    labels = np.where((truth < 2) & (np.arange(48) % 2 == 0), truth, -1)
    np.savez(tmp_path / "blobs.npz", features=features, labels=labels, truth=truth)
    np.savez(tmp_path / "blind.npz", features=features, labels=labels)
    return tmp_path / "blobs.npz"


def answer(*arguments: str | Path) -> str:
    found = CliRunner().invoke(app, ["bench", *map(str, arguments)], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.output


def test_the_whole_study_from_the_command_line(blobs: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "newkind", "bench", "errors", "--data", blobs, "--methods", "kmeans", "--out", "o"]
    done = subprocess.run(
        [*map(str, command), "--seeds", "2"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"COLUMNS": "200", "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "2 runs, 0 of them finished, 2 to do" in done.stdout
    assert "[2/2] k-means, seed 1: All" in done.stdout
    assert "Selection: last epoch, one matching over all unlabelled images, nothing chosen by a label." in done.stdout
    assert "Tables: o/errors.csv, o/errors.json, o/errors.md, o/errors.tex" in done.stdout
    assert {path.name for path in (tmp_path / "o").iterdir()} == {
        "runs",
        *(f"errors.{suffix}" for suffix in ("csv", "json", "md", "tex", "svg", "png")),
    }
    # And what --dry-run says of it afterwards.
    words = answer(
        "methods", "--data", blobs, "--methods", "kmeans,simgcd", "--seeds", "2", "--out", tmp_path / "o", "--dry-run"
    )
    assert words.count("finished  k-means") == 2
    assert words.count("to do     SimGCD") == 2
    assert "4 runs, 2 of them finished. Nothing was run." in words
    assert len(list((tmp_path / "o" / "runs").iterdir())) == 2


def test_list_names_everything() -> None:
    words = answer("list")
    for artefact in ARTEFACTS.values():
        assert artefact.name in words
        assert artefact.shows in words
        assert f"newkind bench {artefact.study}" in words


def test_dry_run_makes_nothing(blobs: Path, tmp_path: Path) -> None:
    words = answer("unknown-k", "--data", blobs, "--seeds", "1", "--out", tmp_path / "o", "--dry-run")
    assert "2 runs with a number of categories that is to be estimated first" in words
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["magic", "--data", "blobs.npz", "--out", "o"], "There is no study 'magic'"),
        (["methods", "--out", "o"], "needs --data and --out"),
        (["methods", "--data", "blobs.npz"], "needs --data and --out"),
        (["methods", "--data", "blind.npz", "--out", "o"], "carries no truth"),
        (["methods", "--data", "none.npz", "--out", "o"], "does not exist"),
        (["methods", "--data", "blobs.npz", "--methods", "magic", "--out", "o"], "There is no method 'magic'"),
        (["k", "--data", "blobs.npz", "--epsilons", "much", "--out", "o"], "got 'much'"),
        (["methods", "--data", "blobs.npz", "--seeds", "0", "--out", "o"], "At least 1 seed"),
    ],
)
def test_bad_input(
    blobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NewkindError) as caught:
        answer(*arguments)
    assert sentence in caught.value.what
    assert not (tmp_path / "o").exists()
