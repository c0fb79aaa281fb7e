"""Tables and figures of every study, from written results; inference and t-SNE from a real run."""

import builtins
import json
from dataclasses import replace
from pathlib import Path

import pytest
from pretend import pretend

from error_codes import raises
from newkind.errors import ConfigError
from newkind.experiments import scheduler
from newkind.experiments.paper.catalogue import ARTEFACTS
from newkind.experiments.paper.dataset import BenchData
from newkind.experiments.paper.figures import FIGURES, sheet
from newkind.experiments.paper.plan_study import plan_study
from newkind.experiments.paper.protocol import Protocol
from newkind.experiments.paper.run_study import build_table, run_study
from newkind.experiments.paper.studies import STUDIES

FILES = {
    "methods": ["methods", "methods-tradeoff"],
    "ablation": ["ablation"],
    "pilot": ["pilot"],
    "epsilon": ["epsilon", "epsilon-errors", "epsilon-distribution"],
    "k": ["k", "k-distribution"],
    "unknown-k": ["unknown-k"],
    "recipes": ["recipes"],
    "errors": ["errors"],
    "distribution": ["distribution"],
    "epochs": ["epochs"],
    "logit-adjust": ["logit-adjust"],
}
ROWS = {"methods": 7, "ablation": 6, "pilot": 16, "epsilon": 4, "k": 5, "unknown-k": 8, "errors": 3, "distribution": 4}
ROWS |= {"epochs": 5, "logit-adjust": 5, "recipes": 12}


def run_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "run_cell", lambda cell, *_, **__: pytest.fail(f"{cell.title} was run"))


@pytest.mark.parametrize("name", FILES)
def test_tables_and_figures(
    name: str, cub: BenchData, protocol: Protocol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sheet.FORMATS, "png")  # the same drawing again; another test has both
    run_nothing(monkeypatch)
    plan = pretend(plan_study(STUDIES[name], [cub], protocol, tmp_path))
    run_study(plan)
    table = build_table(plan)
    assert len(table.rows) == ROWS[name]
    assert len(table.notes) <= len(STUDIES[name].notes) + 1  # the estimate; nothing is incomplete
    assert all(len(cells) == len(table.columns) for cells in table.cells())
    assert {"data", "backbone", "image_size", "views", "epochs", "k_rule", "selection"} <= set(table.about)
    if name in ("methods", "ablation", "unknown-k", "logit-adjust"):
        assert "51.3 / 56.6 / 48.7" in (tmp_path / f"{name}.md").read_text()
    drawn = FIGURES[name](name, plan.finished(), tmp_path)
    assert [path.name for path in drawn] == [f"{file}.svg" for file in FILES[name]]
    assert all(path.stat().st_size > 1000 for path in drawn)
    wanted = {artefact.file for artefact in ARTEFACTS.values() if artefact.study == name and artefact.file}
    assert wanted <= set(FILES[name])


def test_several_data_in_one_figure(data: BenchData, protocol: Protocol, tmp_path: Path) -> None:
    other = replace(data, digest="other", title="other")
    for name in ("errors", "pilot", "methods"):
        plan = pretend(plan_study(STUDIES[name], [data, other], replace(protocol, seeds=1), tmp_path / name))
        assert FIGURES[name](name, plan.finished(), tmp_path)
        assert FIGURES[name](name, [], tmp_path) == []


def test_statistics_need_no_run(
    data: BenchData, protocol: Protocol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_nothing(monkeypatch)
    run_study(plan_study(STUDIES["data"], [data], protocol, tmp_path))
    (row,) = json.loads((tmp_path / "data.json").read_text())["rows"]
    assert (row["labelled_images"], row["labelled_classes"]) == (20, 4)
    assert (row["unlabelled_images"], row["unlabelled_classes"], row["imbalance"]) == (40, 6, 1.0)


def test_inference_and_tsne_measure_once(data: BenchData, protocol: Protocol, tmp_path: Path) -> None:
    protocol = replace(protocol, seeds=1, epochs=1)
    for name in ("inference", "tsne"):
        plan = plan_study(STUDIES[name], [data], protocol, tmp_path)
        run_study(plan)
        assert len(build_table(plan).rows) == 2
        (result,) = plan.schedule.results().values()
        kept = result.run.folder / f"{name}.json"
        before = kept.stat().st_mtime_ns
        run_study(plan)
        assert kept.stat().st_mtime_ns == before
        assert [path.suffix for path in FIGURES[name](name, plan.finished(), tmp_path)] == [".svg", ".png"]
    measured = json.loads((result.run.folder / "inference.json").read_text())
    assert measured["prototypes"]["all"] == pytest.approx(
        result.content["accuracy"]["all"]
    )  # as discover assigned them
    assert measured["n_images"] == 40
    points = json.loads((result.run.folder / "tsne.json").read_text())
    assert len(points["before"]["points"]) == len(points["classes"]) == 40
    assert sum(points["is_old"]) == 20


def test_tables_are_written_without_matplotlib(
    data: BenchData, protocol: Protocol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = pretend(plan_study(STUDIES["errors"], [data], replace(protocol, seeds=1), tmp_path))
    run_study(plan)
    usual = builtins.__import__

    def without(name: str, *more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return usual(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    with raises(ConfigError, "no-matplotlib") as caught:
        FIGURES["errors"]("errors", plan.finished(), tmp_path)
    assert "pip install" in caught.value.fix
    assert (tmp_path / "errors.tex").exists()
