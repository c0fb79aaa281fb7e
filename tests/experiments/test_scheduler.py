"""Schedules run every cell once, continue after an interruption, and do not stop at a failure."""

import logging
import os
import signal
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from error_codes import raises
from newkind.config import TrainingConfig
from newkind.data import open_data
from newkind.effort import Amount
from newkind.errors import ConfigError, RunError
from newkind.experiments import scheduler
from newkind.experiments.cells import Cell, make_cell
from newkind.experiments.collection_digest import collection_digest
from newkind.experiments.scheduler import Schedule
from newkind.pipeline.configure import configure

QUICK = TrainingConfig(epochs=2, batch_size=30)


def make_cells(blobs: Path, *, method: str = "kmeans", n: int = 3, training: TrainingConfig = QUICK) -> list[Cell]:
    collection = open_data(str(blobs))
    digest = collection_digest(collection)
    recipe = "release" if method == "simgcd" else None
    return [
        make_cell(
            collection,
            configure(
                collection,
                method=method,
                recipe=recipe,
                amount=Amount(epochs=training.epochs),
                training=replace(training, seed=seed),
            ),
            title=f"{method}, seed {seed}",
            prefix="blobs",
            digest=digest,
        )
        for seed in range(n)
    ]


def test_every_cell_once(blobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = make_cells(blobs)
    schedule = Schedule([*cells, *cells], tmp_path / "runs")
    assert len(schedule.cells) == 3
    written = []
    schedule.run(after_cell=lambda: written.append(len(schedule.results())))
    assert written == [1, 2, 3]
    assert [line.split()[0] for line in schedule.listing()] == ["finished"] * 3
    monkeypatch.setattr(scheduler, "run_cell", lambda *_, **__: pytest.fail("a finished cell was run again"))
    Schedule(cells, tmp_path / "runs").run()


def test_a_failure_does_not_stop_the_others(
    blobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = scheduler.run_cell

    def run(cell: Cell, *args, **kwargs):
        if cell.seed == 1:
            raise RunError("The loss is NaN in epoch 1.", code="nan-loss")
        return real(cell, *args, **kwargs)

    monkeypatch.setattr(scheduler, "run_cell", run)
    cells = make_cells(blobs)
    schedule = Schedule(cells, tmp_path)
    with caplog.at_level(logging.ERROR, logger="newkind"):
        schedule.run()
    assert {name: error.code for name, error in schedule.failures.items()} == {cells[1].name: "nan-loss"}
    assert len(schedule.results()) == 2
    assert cells[1].title in caplog.text
    monkeypatch.setattr(scheduler, "run_cell", real)
    schedule.run()  # the failed cell again
    assert not schedule.failures
    assert len(schedule.results()) == 3


def test_an_error_that_concerns_all_cells_stops(blobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_, **__):
        raise ConfigError("No.", code="nonsense")

    monkeypatch.setattr(scheduler, "run_cell", run)
    with raises(ConfigError, "nonsense"):
        Schedule(make_cells(blobs), tmp_path).run()


def test_progress_is_logged_with_the_remaining_time(
    blobs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    schedule = Schedule(make_cells(blobs), tmp_path, seconds=60)
    assert "3 min" in schedule.summary()
    with caplog.at_level(logging.INFO, logger="newkind"):
        schedule.run()
    lines = [record.getMessage() for record in caplog.records if record.name == "newkind.experiments.scheduler"]
    assert [line[:5] for line in lines] == ["[1/3]", "[2/3]", "[3/3]"]
    assert ["remaining" in line for line in lines] == [True, True, False]
    stages = [record for record in caplog.records if record.name.startswith("newkind.pipeline")]
    assert stages  # of the first run
    assert caplog.records.index(stages[-1]) < next(
        i for i, record in enumerate(caplog.records) if record.name == "newkind.experiments.scheduler"
    )


def test_epochs_are_watched_and_an_interrupted_cell_is_resumed(blobs: Path, tmp_path: Path) -> None:
    epochs: list[int] = []

    @contextmanager
    def watch(title: str, n_epochs: int):
        def on_epoch(report, _) -> None:
            epochs.append(report.epoch)
            if len(epochs) == 3:
                raise KeyboardInterrupt

        assert title == "simgcd, seed 0"
        assert n_epochs == 5
        yield on_epoch

    training = TrainingConfig(epochs=5, batch_size=30, checkpoint_seconds=0)
    (cell,) = make_cells(blobs, method="simgcd", n=1, training=training)
    with pytest.raises(KeyboardInterrupt):
        Schedule([cell], tmp_path).run(watch=watch)
    Schedule([cell], tmp_path).run(watch=watch)
    assert epochs[:3] == [1, 2, 3]
    assert epochs[3] > 1  # not from the start
    assert epochs[-1] == 5


def test_a_killed_process_loses_no_finished_cell(blobs: Path, tmp_path: Path) -> None:
    program = """
        import os, signal, sys
        from pathlib import Path
        sys.path[:0] = sys.argv[3:]
        from test_scheduler import make_cells
        from newkind.experiments.scheduler import Schedule
        schedule = Schedule(make_cells(Path(sys.argv[1])), Path(sys.argv[2]))
        schedule.run(after_cell=lambda: os.kill(os.getpid(), signal.SIGKILL))
    """
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), str(blobs), str(tmp_path), str(here), str(here.parent)],
        check=False,
        timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == -signal.SIGKILL
    schedule = Schedule(make_cells(blobs), tmp_path)
    assert len(schedule.results()) == 1
    schedule.run()
    assert len(schedule.results()) == 3


def test_a_folder_that_cannot_be_created(blobs: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with raises(RunError, "cannot-write"):
        Schedule(make_cells(blobs), tmp_path / "file" / "runs").run()
