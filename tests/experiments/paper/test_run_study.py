"""Studies: cells are run once, go on after an interruption, and the tables' numbers are those of the results."""

import json
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import pytest
from pretend import pretend
from small_features import write_blobs

from newkind.errors import ConfigError, RunError
from newkind.experiments.paper import cells
from newkind.experiments.paper.dataset import BenchData, open_bench_data
from newkind.experiments.paper.protocol import SELECTION, Protocol
from newkind.experiments.paper.run_study import Plan, build_table, find_study, plan_study, run_study
from newkind.experiments.paper.studies import STUDIES


def plan(study: str, data: BenchData, protocol: Protocol, out: Path, **more) -> Plan:
    return plan_study(STUDIES[study], [data], protocol, out, **more)


def quiet(_: str) -> None:
    pass


def test_methods_from_start_to_table_and_never_twice(
    data: BenchData, protocol: Protocol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    stopped = []

    @contextmanager
    def stop_in_the_third(words: str, epochs: int):
        def on_epoch(report, scores) -> None:
            if words == "SimGCD, seed 0" and not stopped:
                stopped.append(words)
                raise KeyboardInterrupt

        yield on_epoch

    protocol = replace(protocol, methods=("kmeans", "gcd", "simgcd"))
    first = plan("methods", data, protocol, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run_study(first, detail=quiet, watch=stop_in_the_third)
    assert len(first.results()) == 2
    assert "Not complete: 2 of 6 runs are finished." in (tmp_path / "methods.md").read_text()

    paths = run_study(plan("methods", data, protocol, tmp_path), detail=quiet)
    assert [path.name for path in paths] == ["methods.csv", "methods.json", "methods.md", "methods.tex"]
    assert said[0].startswith("Every method under one protocol: 6 runs, 0 of them finished, 6 to do (how long is known")
    assert "6 runs, 2 of them finished, 4 to do (about" in said[3]
    assert said[-1].startswith("[4/4] SimGCD, seed 1: All ")
    assert "left)" not in said[-1]

    monkeypatch.setattr(cells, "discover", lambda *_, **__: pytest.fail("a finished cell was run again"))
    before = {path: path.read_bytes() for path in paths}
    run_study(plan("methods", data, protocol, tmp_path), detail=quiet)
    assert said[-1] == "Every method under one protocol: all 6 runs are finished."
    assert before == {path: path.read_bytes() for path in paths}
    check_numbers(tmp_path)
    # SimGCD's own row of other studies is the same cell.
    for study in ("ablation", "pilot", "epsilon", "k", "errors", "epochs", "inference", "tsne"):
        other = plan(study, data, replace(protocol, methods=()), tmp_path)
        assert any(result.content["method"] == "simgcd" for result in other.results().values()), study


def check_numbers(out: Path) -> None:
    """Against result.json and metrics.jsonl themselves."""
    content = json.loads((out / "methods.json").read_text())
    assert content["protocol"]["selection"] == SELECTION
    assert [row["label"] for row in content["rows"]] == ["k-means", "GCD", "SimGCD"]
    for row in content["rows"]:
        results = [json.loads((out / "runs" / name / "result.json").read_text()) for name in row["runs"]]
        assert [result["seed"] for result in results] == [0, 1]
        for part in ("all", "old", "new"):
            values = [100 * result["accuracy"][part] for result in results]
            assert row[part]["mean"] == pytest.approx(fmean(values))
            assert row[part]["std"] == pytest.approx(stdev(values))
        assert row["seconds"] == pytest.approx(
            fmean(result["seconds"]["training"] + result["seconds"]["sorting"] for result in results)
        )
        scores = json.loads((out / "runs" / row["runs"][0] / "scores.json").read_text())
        assert scores["accuracy"] == results[0]["accuracy"]
        assert not (out / "runs" / row["runs"][0] / "checkpoint.safetensors").exists()
        if row["method"] == "simgcd":
            metrics = (out / "runs" / row["runs"][0] / "metrics.jsonl").read_text().splitlines()
            last = json.loads(metrics[-1])  # the last epoch, not the best
            assert len(metrics) == last["epoch"] == 2
            assert last["accuracy/all"] == pytest.approx(results[0]["accuracy"]["all"], abs=1e-6)
            assert results[0]["seconds"]["training"] == pytest.approx(sum(json.loads(m)["seconds"] for m in metrics))
    mean = content["rows"][2]["all"]
    assert f"{mean['mean']:.1f} ± {mean['std']:.1f}" in (out / "methods.md").read_text()
    assert rf"{mean['mean']:.1f} $\pm$ {mean['std']:.1f}" in (out / "methods.tex").read_text()


def test_a_run_that_fails_does_not_end_the_others(
    data: BenchData, protocol: Protocol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_, **__):
        raise RunError("The loss became nan in epoch 1.")

    monkeypatch.setattr(cells, "discover", fail)
    found = plan("methods", data, replace(protocol, methods=("gcd",)), tmp_path)
    run_study(found, detail=quiet)
    assert len(found.failures) == 2
    text = (tmp_path / "methods.md").read_text()
    assert text.count("A run failed and is not in the table: The loss became nan") == 2
    assert "| GCD | – | – | – | 0 | – |" in text


def test_an_unfinished_run_that_does_not_fit_says_which_folder(
    data: BenchData, protocol: Protocol, tmp_path: Path
) -> None:
    cell = cells.make_cell(data, protocol, method="kmeans", seed=0)
    folder = tmp_path / cell.name
    folder.mkdir()
    (folder / "config.json").write_text('{"format": 1, "fingerprint": "of something else"}')
    with pytest.raises(RunError, match=r"Remove .*kmeans.* and run the same command again"):
        cells.run_cell(cell, tmp_path)


def test_the_estimate_is_made_once_and_kept(
    data: BenchData, protocol: Protocol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dry = plan("unknown-k", data, protocol, tmp_path, estimate=False)
    assert dry.n_open == 4
    assert len(dry.cells()) == 12
    assert not list(tmp_path.glob("estimates/*"))
    found = plan("unknown-k", data, protocol, tmp_path)
    assert found.n_open == 0
    (kept,) = tmp_path.glob("estimates/blobs-*.json")
    k = json.loads(kept.read_text())["n_categories"]
    assert found.lines[1].row.n_categories == k
    monkeypatch.setattr(
        "newkind.experiments.paper.estimates.backbone_features", lambda *_, **__: pytest.fail("estimated twice")
    )
    assert plan("unknown-k", data, protocol, tmp_path).lines[1].row.n_categories == k
    rows = build_table(pretend(found)).rows
    assert [row["k"] for row in rows[:3]] == [6, k, 12]
    assert rows[3]["k"].mean == 6  # what the runs ended with
    assert build_table(found).cells()[3][2] == "6 ± 0"


def test_several_data_are_told_apart(protocol: Protocol, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    paths = [write_blobs(tmp_path / "a" / "x.npz"), write_blobs(tmp_path / "b" / "x.npz", seed=1)]
    datas = [open_bench_data(str(path)) for path in [*paths, paths[0]]]
    found = plan_study(STUDIES["errors"], datas, replace(protocol, methods=("gcd",)), tmp_path)
    assert [data.title for data in found.datas] == ["x (1)", "x (2)"]
    table = build_table(pretend(found))
    assert table.columns[0].key == "data"
    assert table.groups() == [1]
    assert "x (1)" in table.about["data"]
    assert "x (2)" in table.about["data"]


def test_tables_of_other_data_are_replaced_with_a_word(data: BenchData, protocol: Protocol, tmp_path: Path) -> None:
    said: list[str] = []
    one = pretend(plan("errors", data, replace(protocol, methods=("gcd",)), tmp_path))
    run_study(one, detail=quiet)
    run_study(one, detail=quiet)
    assert not any("replaced" in line for line in said)
    other = open_bench_data(str(write_blobs(tmp_path / "other.npz", seed=5)))
    run_study(pretend(plan("errors", other, replace(protocol, methods=("gcd",)), tmp_path)), detail=quiet)
    assert sum("are replaced; their runs are kept" in line for line in said) == 1


def test_bad_questions(data: BenchData, protocol: Protocol, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no study 'everything'"):
        find_study("everything")
    with pytest.raises(ConfigError, match="does not compare methods"):
        plan("ablation", data, replace(protocol, methods=("gcd",)), tmp_path)
    with pytest.raises(ConfigError, match="does not vary epsilon"):
        plan("methods", data, replace(protocol, epsilons=(1.0,)), tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be made"):
        run_study(plan("errors", data, protocol, tmp_path / "file"), detail=quiet)
    study, artefact = find_study("fig-ks")
    assert study.name == "k"
    assert artefact is not None
    assert artefact.epsilons == (1, 2, 4)
