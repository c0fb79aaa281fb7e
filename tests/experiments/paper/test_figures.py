"""Every study's table and figures, from results that nobody has run; inference and t-SNE from a real run."""

import builtins
import json
from dataclasses import replace
from pathlib import Path

import pytest
from pretend import pretend

from newkind.errors import ConfigError
from newkind.experiments.paper.catalogue import ARTEFACTS
from newkind.experiments.paper.dataset import BenchData
from newkind.experiments.paper.figures import sheet
from newkind.experiments.paper.protocol import Protocol
from newkind.experiments.paper.run_study import build_table, plan_study, run_study
from newkind.experiments.paper.studies import STUDIES

FIGURES = {
    "methods": ["methods", "methods-tradeoff"],
    "ablation": ["ablation"],
    "pilot": ["pilot"],
    "epsilon": ["epsilon", "epsilon-errors", "epsilon-distribution"],
    "k": ["k", "k-distribution"],
    "unknown-k": ["unknown-k"],
    "errors": ["errors"],
    "distribution": ["distribution"],
    "epochs": ["epochs"],
    "logit-adjust": ["logit-adjust"],
}
ROWS = {"methods": 7, "ablation": 6, "pilot": 16, "epsilon": 4, "k": 5, "unknown-k": 8, "errors": 3, "distribution": 4}
ROWS |= {"epochs": 5, "logit-adjust": 5}


def quiet(_: str) -> None:
    pass


@pytest.mark.parametrize("name", FIGURES)
def test_tables_and_figures(
    name: str, data: BenchData, protocol: Protocol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sheet.FORMATS, "png")  # the same drawing once more; the next test has both
    study = STUDIES[name]
    published = replace(data, benchmark="cub", title="CUB_200")
    plan = pretend(plan_study(study, [published], protocol, tmp_path))
    run_study(plan, detail=lambda line: pytest.fail(f"something was run: {line}"))
    table = build_table(plan)
    assert len(table.rows) == ROWS[name]
    assert not any("Not complete" in note for note in table.notes)
    assert all(len(cells) == len(table.columns) for cells in table.cells())
    assert {"data", "backbone", "image_size", "views", "epochs", "k_rule", "selection"} <= set(table.about)
    if name in ("methods", "ablation", "unknown-k", "logit-adjust"):
        assert "51.3 / 56.6 / 48.7" in (tmp_path / f"{name}.md").read_text()
    assert study.draw is not None
    drawn = study.draw(name, plan.finished(), tmp_path)
    assert [path.name for path in drawn] == [f"{file}.svg" for file in FIGURES[name]]
    assert all(path.stat().st_size > 1000 for path in drawn)
    wanted = {artefact.file for artefact in ARTEFACTS.values() if artefact.study == name and artefact.file}
    assert wanted <= set(FIGURES[name])


def test_statistics_need_no_run(data: BenchData, protocol: Protocol, tmp_path: Path) -> None:
    plan = plan_study(STUDIES["data"], [data], protocol, tmp_path)
    run_study(plan, say=lambda line: pytest.fail(line), detail=quiet)
    (row,) = json.loads((tmp_path / "data.json").read_text())["rows"]
    assert (row["labelled_images"], row["labelled_classes"]) == (20, 4)
    assert (row["unlabelled_images"], row["unlabelled_classes"], row["imbalance"]) == (40, 6, 1.0)


def test_inference_and_tsne_measure_once(data: BenchData, protocol: Protocol, tmp_path: Path) -> None:
    protocol = replace(protocol, n_seeds=1, epochs=1)
    for name, rows in (("inference", 2), ("tsne", 2)):
        study = STUDIES[name]
        plan = plan_study(study, [data], protocol, tmp_path)
        run_study(plan, detail=quiet)
        assert len(build_table(plan).rows) == rows
        (result,) = plan.results().values()
        kept = result.run.folder / f"{name}.json"
        before = kept.stat().st_mtime_ns
        run_study(plan, detail=quiet)
        assert kept.stat().st_mtime_ns == before
        assert study.draw is not None
        assert [path.suffix for path in study.draw(name, plan.finished(), tmp_path)] == [".svg", ".png"]
    measured = json.loads((result.run.folder / "inference.json").read_text())
    assert measured["prototypes"]["all"] == pytest.approx(result.content["accuracy"]["all"])  # as discover sorted them
    assert measured["n_images"] == 40
    points = json.loads((result.run.folder / "tsne.json").read_text())
    assert len(points["before"]["points"]) == len(points["classes"]) == 40
    assert sum(points["is_old"]) == 20


def test_without_matplotlib_tables_are_made(
    data: BenchData, protocol: Protocol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = pretend(plan_study(STUDIES["errors"], [data], replace(protocol, n_seeds=1), tmp_path))
    run_study(plan, detail=quiet)
    usual = builtins.__import__

    def without(name: str, *more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return usual(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    study = STUDIES["errors"]
    assert study.draw is not None
    with pytest.raises(ConfigError, match="matplotlib") as caught:
        study.draw("errors", plan.finished(), tmp_path)
    assert "pip install 'newkind[plots]'" in caught.value.fix
    assert (tmp_path / "errors.tex").exists()
