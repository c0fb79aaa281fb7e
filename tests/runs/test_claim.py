"""Run folders are claimed before the work: checked, locked, and replaced as a whole."""

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import newkind
from error_codes import raises
from feature_clusters import feature_clusters
from newkind.config import DiscoverConfig
from newkind.data import Collection, open_data
from newkind.errors import ConfigError, DataError, RunError
from newkind.pipeline.configure import configure
from newkind.pipeline.discover import discover
from newkind.runs.assignments import read_assignments, write_assignments
from newkind.runs.claim import claim_run
from newkind.runs.run import Run


@pytest.fixture
def collection(tmp_path: Path) -> Collection:
    np.savez(tmp_path / "data.npz", **feature_clusters(6, 3, n_each=12))
    return open_data(tmp_path / "data.npz")


@pytest.fixture
def config(collection: Collection) -> DiscoverConfig:
    return configure(collection, method="kmeans", n_categories=6)


def other(config: DiscoverConfig) -> DiscoverConfig:
    return replace(config, training=replace(config.training, seed=7))


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith("lock"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_overwrite_does_not_touch_a_run_that_is_being_written(
    collection: Collection, config: DiscoverConfig, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    discover(collection, out, config)
    before = contents(out)
    with claim_run(out, config):
        with raises(RunError, "locked"):
            discover(collection, out, other(config), overwrite=True)
        assert contents(out) == before
        assert (out / ".lock").exists()


def test_overwrite_replaces_the_run_when_the_new_one_has_an_answer(
    collection: Collection, config: DiscoverConfig, tmp_path: Path
) -> None:
    out, fresh = tmp_path / "run", tmp_path / "fresh"
    discover(collection, out, config)
    (out / "notes.txt").write_text("kept")
    (out / "metrics.jsonl").write_text("{}\n")
    (out / "report.html").write_text('<meta name="generator" content="Newkind 0">')
    discover(collection, out, other(config), overwrite=True)
    discover(collection, fresh, other(config))
    found, expected = contents(out), contents(fresh)
    assert found.pop("notes.txt") == b"kept"
    assert found == expected


def test_nothing_is_deleted_for_settings_or_data_that_are_not_valid(
    collection: Collection, config: DiscoverConfig, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    discover(collection, out, config)
    before = contents(out)
    with raises(ConfigError, "unknown-device"):
        discover(collection, out, replace(config, backbone=replace(config.backbone, device="quantum")), overwrite=True)
    assert contents(out) == before


def test_an_answer_that_fails_leaves_the_old_run(
    collection: Collection, config: DiscoverConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    discover(collection, out, config)
    before = contents(out)

    def fails(*_: object) -> None:
        raise DataError("Interrupted.", code="interrupted")

    with monkeypatch.context() as patch:
        patch.setattr(Run, "write_features", fails)
        with raises(DataError, "interrupted"):
            discover(collection, out, other(config), overwrite=True)
    after = contents(out)
    assert {name: after[name] for name in before} == before
    assert read_assignments(Run.open(out))
    with raises(RunError, "other-run"):
        discover(collection, out, replace(config, training=replace(config.training, seed=8)))
    discover(collection, out, other(config))  # it was asked to replace the run before it was interrupted
    assert Run.open(out).config()["config"]["training"]["seed"] == 7
    assert not (out / ".new").exists()


@pytest.mark.parametrize("moved", range(0, 12, 2))
def test_a_replacement_that_was_killed_is_finished(
    collection: Collection, config: DiscoverConfig, tmp_path: Path, moved: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, fresh = tmp_path / "run", tmp_path / "fresh"
    discover(collection, out, config)
    discover(collection, fresh, other(config))
    calls = 0
    rename = os.replace

    def killed(source: object, target: object) -> None:
        nonlocal calls
        calls += ".new" in str(source) and ".new" not in str(target)
        if calls > moved:
            raise KeyboardInterrupt
        rename(source, target)  # type: ignore[call-overload]

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with suppress(KeyboardInterrupt):
            discover(collection, out, other(config), overwrite=True)
    Run.open(out)
    assert contents(out) == contents(fresh)
    assert not (out / ".new").exists()


def test_the_folder_is_checked_before_anything_is_computed(
    collection: Collection, config: DiscoverConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    discover(collection, out, config)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.doc").write_text("precious")
    (tmp_path / "file").write_text("precious")

    def computed(*_: object, **__: object) -> None:
        raise AssertionError("the work began")

    monkeypatch.setattr("newkind.pipeline.discover.load_setup", computed)
    with raises(RunError, "other-run"):
        discover(collection, out, other(config))
    with raises(RunError, "not-a-run"):
        discover(collection, tmp_path / "mine", config)
    with raises(RunError, "cannot-write"):
        discover(collection, tmp_path / "file" / "run", config)
    with raises(RunError, "cannot-write"):
        discover(collection, Path("/proc/run"), config)
    with raises(RunError, "nothing-to-resume"):
        discover(collection, tmp_path / "none", config, resume=True)
    assert not (tmp_path / "none").exists()
    with pytest.raises(AssertionError):
        discover(collection, tmp_path / "none", config)
    assert not (tmp_path / "none").exists()


def test_a_killed_process_leaves_no_lock_and_no_half_files(
    collection: Collection, config: DiscoverConfig, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    discover(collection, out, config)
    before = contents(out)
    program = "import os, sys\nfrom pathlib import Path\nfrom newkind.runs.run import Run\n"
    program += "with Run(Path(sys.argv[1])).locked():\n    os.kill(os.getpid(), 9)\n"
    done = subprocess.run([sys.executable, "-c", program, str(out)], check=False, timeout=120)
    assert done.returncode == -9
    (out / "model.safetensors.partial").write_bytes(b"half")
    discover(collection, out, config)
    assert contents(out) == before


def test_a_part_of_the_assignments_is_not_taken_for_the_whole(
    collection: Collection, config: DiscoverConfig, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "run"
    discover(collection, out, config)
    run = Run.open(out)
    whole = run.assignments_file.read_text()
    assert len(read_assignments(run)) == 72
    run.assignments_file.write_text("".join(whole.splitlines(keepends=True)[:40]))
    with raises(RunError, "incomplete"):
        read_assignments(run)
    with raises(RunError, "incomplete"):
        newkind.load(out)
    caplog.clear()
    run.assignments_file.write_text(whole.replace("new-01", "new-02"))  # edited by hand
    assert not any(line.category == "new-01" for line in read_assignments(run))
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_the_record_is_that_of_the_models_answer_before_and_after_decisions(
    collection: Collection, config: DiscoverConfig, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "run"
    discover(collection, out, config)
    found = newkind.load(out)
    found.rename("new-01", "violets")
    discover(collection, out, config)  # with stable ids of categories
    caplog.clear()
    assert any(line.category == "violets" for line in read_assignments(Run.open(out)))
    assert not [record for record in caplog.records if record.levelname == "WARNING"]
    run = Run.open(out)
    rows = run.model_assignments_file.read_text().splitlines(keepends=True)
    run.model_assignments_file.write_text("".join(rows[:40]))
    with raises(RunError, "incomplete"):
        read_assignments(run)


def test_overwrite_keeps_the_decisions_about_the_old_run_apart(
    collection: Collection, config: DiscoverConfig, tmp_path: Path
) -> None:
    out, fresh = tmp_path / "run", tmp_path / "fresh"
    discover(collection, out, config)
    newkind.load(out).rename("new-01", "violets")
    discover(collection, out, other(config), overwrite=True)
    discover(collection, fresh, other(config))
    found = contents(out)
    assert found.pop("decisions-1.sqlite")
    assert found == contents(fresh)


def test_names_that_are_formulas_to_a_spreadsheet_are_named(
    collection: Collection, config: DiscoverConfig, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "run"
    discover(collection, out, config)
    run = Run.open(out)
    lines = read_assignments(run)
    caplog.clear()
    write_assignments(run, [replace(line, file="-3") for line in lines])
    assert not caplog.records
    for name in ('=HYPERLINK("http://x")', "@x", "+a", "-a", "\t=1"):
        caplog.clear()
        write_assignments(run, [replace(lines[0], file=name)])
        assert [record.levelname for record in caplog.records] == ["WARNING"]
        assert read_assignments(run)[0].file == name  # the names themselves stay
