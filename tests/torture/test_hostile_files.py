"""Files of a run that somebody else made, or that were replaced: locks, the log of decisions, pipes, exported models."""

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command_line import newkind
from onnx_files import ABOUT, onnx_file
from small_runs import SmallRuns

from error_codes import raises
from newkind.errors import DataError, RunError
from newkind.export.onnx_model import OnnxModel
from newkind.runs import decision_log
from newkind.runs.decision_log import DecisionLog

ENDLESS = """CREATE VIEW events AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
SELECT i AS number, '' AS time, '' AS author, 0 AS based_on, 'note' AS kind, '{}' AS decision FROM n"""


@pytest.fixture
def run(runs: SmallRuns, tmp_path: Path) -> Path:
    shutil.copytree(runs.features_run, tmp_path / "run")
    return tmp_path / "run"


def change(path: Path, *statements: str) -> None:
    """Run SQL on a database."""
    with sqlite3.connect(path, isolation_level=None) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


@pytest.mark.parametrize("lock", [".lock", ".answer.lock"])
@pytest.mark.parametrize("plant", [os.symlink, os.link])
def test_a_planted_lock_does_not_empty_another_file(
    run: Path, runs: SmallRuns, tmp_path: Path, lock: str, plant: Callable[[Path, Path], None]
) -> None:
    precious = tmp_path / "precious.txt"
    precious.write_text("precious")
    (run / lock).unlink(missing_ok=True)
    plant(precious, run / lock)
    command = ["rename", str(run), "new-01", "Samoyed"] if "answer" in lock else [*runs.discover(run), "--overwrite"]
    done = newkind(command)
    assert (done.code, precious.read_text()) == (2, "precious"), done.traceback
    assert "[cannot-write]" in done.errors


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(run: Path) -> None:
    (run / "features.npy").unlink()
    os.mkfifo(run / "features.npy")
    for command in (["refit", str(run), "--dry-run"], ["report", str(run)]):
        done = newkind(command)
        assert done.code == 2, done.traceback
        assert "[unreadable]" in done.errors


@pytest.mark.parametrize(
    "statements",
    [
        ("DROP TABLE events", ENDLESS),
        ("CREATE TRIGGER more AFTER INSERT ON events BEGIN SELECT 1; END",),
        ("CREATE TABLE other (x)",),
        ("ALTER TABLE events ADD COLUMN x TEXT",),
        ("DROP TRIGGER no_update", "UPDATE events SET number = 7"),
    ],
    ids=["endless view", "another trigger", "another table", "another column", "a gap"],
)
def test_another_database_in_the_place_of_the_log_is_refused(run: Path, statements: tuple[str, ...]) -> None:
    assert newkind(["rename", str(run), "new-01", "Samoyed"]).code == 0
    change(run / "decisions.sqlite", "PRAGMA journal_mode = DELETE", *statements)
    before = (run / "decisions.sqlite").read_bytes()
    for command in (["history", str(run)], ["rename", str(run), "new-01", "Husky"], ["refit", str(run), "--dry-run"]):
        done = newkind(command)
        assert done.code == 2, done.traceback
        assert "[unreadable]" in done.errors
    assert (run / "decisions.sqlite").read_bytes() == before


def test_a_link_to_another_database_is_not_written_through(run: Path, tmp_path: Path) -> None:
    change(tmp_path / "bookmarks.sqlite", "CREATE TABLE bookmarks (address TEXT)")
    before = (tmp_path / "bookmarks.sqlite").read_bytes()
    (run / "decisions.sqlite").symlink_to(tmp_path / "bookmarks.sqlite")
    assert "[unreadable]" in newkind(["rename", str(run), "new-01", "Samoyed"]).errors
    assert (tmp_path / "bookmarks.sqlite").read_bytes() == before


def test_a_locked_log_is_not_read_behind_the_lock(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the lock and the write-ahead log, decisions would be missing without a message."""
    assert newkind(["rename", str(run), "new-01", "Samoyed"]).code == 0
    monkeypatch.setattr(decision_log, "WAIT", 0.1)
    change(run / "decisions.sqlite", "PRAGMA journal_mode = DELETE")
    with sqlite3.connect(run / "decisions.sqlite", isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        with raises(RunError, "locked"):
            DecisionLog(run).events()
        other.execute("ROLLBACK")
    other.close()
    assert len(DecisionLog(run).events()) == 1


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ('"image_size": 32', '"image_size": 1000000'),
        ('"image_size": 32', '"image_size": 64'),
        ('"crop_share": 0.875', '"crop_share": 1e-9'),
        ('"reducing_gap": 3.0', '"reducing_gap": 1e9'),
        ('"views": [0, 1]', '"views": [0]'),
        ('"views": [0, 1]', '"views": [0, -1]'),
        ('"view_seed": 0', '"view_seed": -1'),
        ('"categories": [', '"categories": [7, '),
    ],
)
def test_what_a_model_says_about_itself_is_checked(tmp_path: Path, good: str, bad: str) -> None:
    sound = np.array([[0.6, 0.4]], dtype=np.float32)
    assert OnnxModel(onnx_file(tmp_path / "x.onnx", ABOUT, sound)).images_per_batch == 8
    with raises(DataError, "not-an-export"):
        OnnxModel(onnx_file(tmp_path / "x.onnx", ABOUT.replace(good, bad), sound))


@pytest.mark.parametrize("answer", [[[np.nan, 0.4]], [[0.2, 0.3, 0.5]], [[0.5, 0.5]] * 2, [0.5, 0.5]])
def test_answers_of_a_model_are_checked(runs: SmallRuns, tmp_path: Path, answer: list[object]) -> None:
    path = onnx_file(tmp_path / "x.onnx", ABOUT, np.array(answer, dtype=np.float32))
    done = newkind(["predict", "--onnx", str(path), str(runs.images / "img" / "red0.png")])
    assert done.code == 2, done.traceback
    assert "[damaged-model]" in done.errors


def test_a_damaged_part_of_a_folder_of_features_is_noticed(runs: SmallRuns, tmp_path: Path) -> None:
    """Before and after the parts are joined."""
    store = tmp_path / "store"
    backbone = ["--backbone", "vit_tiny_patch16_224", "--random-weights", "--image-size", "32", "--views", "0"]
    assert newkind(["features", str(runs.images), "--out", str(store), *backbone, "--part-size", "16"]).code == 0
    assert newkind(["inspect", str(store)]).code == 0
    for name in ("features.npy", "part-000001.npy"):
        sound = (store / name).read_bytes()
        (store / name).write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
        done = newkind(["inspect", str(store)])
        assert done.code == 2, done.traceback
        assert "[unreadable]" in done.errors
        (store / "features.npy").unlink(missing_ok=True)
