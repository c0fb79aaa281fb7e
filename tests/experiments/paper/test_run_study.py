"""Studies run each cell once, continue after an interruption, and show the numbers of the results."""

import json
import logging
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import pytest
from pretend import pretend
from small_features import write_blobs

from error_codes import raises
from newkind.errors import ConfigError, RunError
from newkind.experiments import cells
from newkind.experiments.paper.dataset import BenchData, open_bench_data
from newkind.experiments.paper.describe_protocol import SELECTION
from newkind.experiments.paper.plan_study import StudyPlan, find_study, plan_study
from newkind.experiments.paper.protocol import Protocol
from newkind.experiments.paper.run_study import build_table, run_study
from newkind.experiments.paper.studies import STUDIES


def plan(study: str, data: BenchData, protocol: Protocol, out: Path, **more) -> StudyPlan:
    return plan_study(STUDIES[study], [data], protocol, out, **more)


def test_methods_from_start_to_table_and_never_twice(
    data: BenchData, protocol: Protocol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = []

    @contextmanager
    def stop_in_the_third(title: str, epochs: int):
        def on_epoch(report, scores) -> None:
            if title == "SimGCD, seed 0" and not stopped:
                stopped.append(title)
                raise KeyboardInterrupt

        yield on_epoch

    protocol = replace(protocol, methods=("kmeans", "gcd", "simgcd"))
    first = plan("methods", data, protocol, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run_study(first, watch=stop_in_the_third)
    assert len(first.schedule.results()) == 2
    assert "2 of 6" in json.loads((tmp_path / "methods.json").read_text())["notes"][-1]

    paths = run_study(plan("methods", data, protocol, tmp_path))
    assert [path.name for path in paths] == ["methods.csv", "methods.json", "methods.md", "methods.tex"]

    monkeypatch.setattr(cells, "discover", lambda *_, **__: pytest.fail("a finished cell was run again"))
    before = {path: path.read_bytes() for path in paths}
    run_study(plan("methods", data, protocol, tmp_path))
    assert before == {path: path.read_bytes() for path in paths}
    check_numbers(tmp_path)
    # The row of SimGCD itself is the same cell in other studies.
    for study in ("ablation", "pilot", "epsilon", "k", "errors", "epochs", "inference", "tsne"):
        other = plan(study, data, replace(protocol, methods=()), tmp_path)
        assert any(result.content["method"] == "simgcd" for result in other.schedule.results().values()), study


def check_numbers(out: Path) -> None:
    """Compare the table with result.json and metrics.jsonl."""
    content = json.loads((out / "methods.json").read_text())
    assert content["protocol"]["selection"] == SELECTION
    assert [row["label"] for row in content["rows"]] == ["k-means", "GCD", "SimGCD"]
    for row in content["rows"]:
        results = [json.loads((out / "runs" / name / "result.json").read_text()) for name in row["runs"]]
        assert [result["seed"] for result in results] == [0, 1]
        for key, kind, part in (
            (start + part, kind, part)
            for start, kind in (("", "accuracy"), ("by_name_", "by_name"))
            for part in ("all", "old", "new")
        ):
            values = [100 * result[kind][part] for result in results]
            assert row[key]["mean"] == pytest.approx(fmean(values))
            assert row[key]["std"] == pytest.approx(stdev(values))
        assert row["seconds"] == pytest.approx(
            fmean(result["seconds"]["training"] + result["seconds"]["assigning"] for result in results)
        )
        scores = json.loads((out / "runs" / row["runs"][0] / "scores.json").read_text())
        assert scores["accuracy"] == results[0]["accuracy"]
        assert not (out / "runs" / row["runs"][0] / "checkpoint.safetensors").exists()
        if row["method"] == "simgcd":
            metrics = (out / "runs" / row["runs"][0] / "metrics.jsonl").read_text().splitlines()
            last = json.loads(metrics[-1])  # the last epoch, not the best
            assert len(metrics) == last["epoch"] == 2
            assert last["accuracy/all"] == pytest.approx(results[0]["accuracy"]["all"], abs=1e-6)
            assert last["by_name/all"] == pytest.approx(results[0]["by_name"]["all"], abs=1e-6)
            assert results[0]["seconds"]["training"] == pytest.approx(sum(json.loads(m)["seconds"] for m in metrics))
    mean = content["rows"][2]["all"]
    assert f"{mean['mean']:.1f} ± {mean['std']:.1f}" in (out / "methods.md").read_text()
    assert rf"{mean['mean']:.1f} $\pm$ {mean['std']:.1f}" in (out / "methods.tex").read_text()


def test_failed_runs_are_notes_of_the_table(
    data: BenchData, protocol: Protocol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_, **__):
        raise RunError("The loss is NaN in epoch 1.", code="nan-loss")

    monkeypatch.setattr(cells, "discover", fail)
    found = plan("methods", data, replace(protocol, methods=("gcd",)), tmp_path)
    run_study(found)
    assert [error.code for error in found.schedule.failures.values()] == ["nan-loss"] * 2
    text = (tmp_path / "methods.md").read_text()
    assert text.count("The loss is NaN in epoch 1.") == 2
    line = next(line for line in text.splitlines() if line.startswith("| GCD |"))
    assert set(line.split(" | ")[1:-2]) == {"–"}
    assert line.endswith("| 0 | – |")


def test_the_estimate_is_made_once_and_kept(
    data: BenchData, protocol: Protocol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dry = plan("unknown-k", data, protocol, tmp_path, estimate=False)
    assert dry.n_open == 4
    assert len(dry.schedule.cells) == 12
    assert not list(tmp_path.glob("estimates/*"))
    found = plan("unknown-k", data, protocol, tmp_path)
    assert found.n_open == 0
    (kept,) = tmp_path.glob("estimates/blobs-*.json")
    k = json.loads(kept.read_text())["n_categories"]
    monkeypatch.setattr(
        "newkind.experiments.paper.estimates.backbone_features", lambda *_, **__: pytest.fail("estimated twice")
    )
    for again in (found, plan("unknown-k", data, protocol, tmp_path)):
        asked = again.lines[1].row.n_categories
        assert asked is not None
        assert asked.number == k
    rows = build_table(pretend(found)).rows
    assert [row["k"] for row in rows[:3]] == [6, k, 12]
    assert rows[3]["k"].mean == 6  # what the runs have in the end
    assert build_table(found).cells()[3][2] == "6 ± 0"


def test_several_data_have_different_titles(protocol: Protocol, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    paths = [write_blobs(tmp_path / "a" / "x.npz"), write_blobs(tmp_path / "b" / "x.npz", seed=1)]
    datas = [open_bench_data(str(path)) for path in [*paths, paths[0]]]
    found = plan_study(STUDIES["errors"], datas, replace(protocol, methods=("gcd",)), tmp_path)
    assert [data.title for data in found.datas] == ["x (1)", "x (2)"]
    assert {cell.title.split(",")[0] for cell in found.schedule.cells.values()} == {"x (1)", "x (2)"}
    table = build_table(pretend(found))
    assert table.columns[0].key == "data"
    assert table.groups() == [1]
    assert "x (1)" in table.about["data"]
    assert "x (2)" in table.about["data"]


def test_overwriting_a_table_of_other_data_is_a_warning(
    data: BenchData, protocol: Protocol, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    one = pretend(plan("errors", data, replace(protocol, methods=("gcd",)), tmp_path))
    run_study(one)
    run_study(one)
    assert not [record for record in caplog.records if record.levelno == logging.WARNING]
    other = open_bench_data(str(write_blobs(tmp_path / "other.npz", seed=5)))
    run_study(pretend(plan("errors", other, replace(protocol, methods=("gcd",)), tmp_path)))
    (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert str(tmp_path / "errors") in warning.getMessage()


def test_bad_requests(data: BenchData, protocol: Protocol, tmp_path: Path) -> None:
    with raises(ConfigError, "unknown-study"):
        find_study("everything")
    with raises(ConfigError, "not-applicable") as caught:
        plan("ablation", data, replace(protocol, methods=("gcd",)), tmp_path)
    assert caught.value.facts["setting"] == "methods"
    with raises(ConfigError, "not-applicable") as caught:
        plan("methods", data, replace(protocol, epsilons=(1.0,)), tmp_path)
    assert caught.value.facts["setting"] == "epsilons"
    with raises(ConfigError, "unknown-method"):
        plan("methods", data, replace(protocol, methods=("magic",)), tmp_path)
    study, artefact = find_study("fig-ks")
    assert study.name == "k"
    assert artefact is not None
    assert artefact.epsilons == (1, 2, 4)
