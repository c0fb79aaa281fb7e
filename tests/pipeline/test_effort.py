"""What each effort does, from one configuration to a run that predicts its own images."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import newkind
from error_codes import raises
from newkind import api
from newkind.backbone.cache_folders import list_caches
from newkind.config import BackboneConfig, DiscoverConfig, TrainingConfig
from newkind.data import Collection, from_arrays, from_features, open_data
from newkind.effort import Amount
from newkind.errors import ConfigError
from newkind.pipeline import discover as stages
from newkind.pipeline.configure import configure, first_config
from newkind.pipeline.dry_run import estimate_efforts
from newkind.runs.run import Run

SMALL = {
    "backbone": "vit_tiny_patch16_224",
    "random_weights": True,
    "image_size": 32,
    "batch_size": 16,
    "device": "cpu",
    "trunk_precision": "fp32",
}
BACKBONE = BackboneConfig(
    name="vit_tiny_patch16_224", random_weights=True, image_size=32, device="cpu", trunk_precision="fp32"
)
EFFORTS = {"quick": {}, "standard": {}, "thorough": {"epochs": 2, "views": 3}}
VIEWS = {"quick": [0], "standard": [0, 1, 2], "thorough": [0, 1, 2, 3]}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path / "cache"))


def pictures(folder: Path, n_kinds: int, n_known: int, *, contrast: int = 200) -> Path:
    """Twelve pictures per kind, with patterns that have a left and a right side; half of those of known kinds are labelled."""
    rng = np.random.default_rng(0)
    rows = ["file_name,label,truth"]
    folder.mkdir()
    for kind in range(n_kinds):
        pattern = rng.integers(0, contrast, (5, 6, 3))
        for i in range(12):
            pixels = np.kron(pattern, np.ones((8, 8, 1))) + rng.integers(0, 50, (40, 48, 3))
            name = f"{kind}-{i:02d}.png"
            Image.fromarray(pixels.astype(np.uint8)).save(folder / name)
            rows.append(f"{name},{kind if kind < n_known and i % 2 else ''},{kind}")
    (folder / "metadata.csv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    return pictures(tmp_path / "photographs", 4, 2)


def images() -> Collection:
    """Images that are configured for, but never opened."""
    return from_arrays(np.zeros((4, 8, 8, 3), dtype=np.uint8), [0, 1, -1, -1])


def asked(method: str = "simgcd", *, online: bool = False, recipe: str | None = None, **amount) -> DiscoverConfig:
    return configure(images(), method=method, recipe=recipe, amount=Amount(**amount), backbone=BACKBONE, online=online)


@pytest.mark.parametrize("effort", ["quick", "standard"])
def test_an_effort_without_training_and_epochs_contradict_each_other(effort: str) -> None:
    with raises(ConfigError, "conflict"):
        asked(effort=effort, epochs=5)


@pytest.mark.parametrize(
    ("config", "effort", "epochs", "views", "tuned", "averaged"),
    [
        (asked(), "standard", 0, 2, 0, (0, 1, 2)),
        (asked(effort="quick"), "quick", 0, 0, 0, (0,)),
        (asked(effort="quick", views=2), "quick", 0, 2, 0, (0, 1, 2)),
        (asked(views=3), "standard", 0, 3, 0, (0, 1, 2, 3)),
        (asked(effort="thorough"), "thorough", 40, 4, 1, (0, 1, 2, 3, 4)),
        (asked(effort="thorough", epochs=0), "thorough", 0, 4, 0, (0, 1, 2, 3, 4)),
        (asked(epochs=5), "thorough", 5, 4, 1, (0, 1, 2, 3, 4)),
        (asked(epochs=5, views=2), "thorough", 5, 2, 1, (0, 1, 2)),
        (asked(epochs=0), "standard", 0, 2, 0, (0, 1, 2)),
        (asked(online=True), "thorough", 40, 4, 1, (0, 1, 2, 3, 4)),
        (asked("kmeans", epochs=5), "standard", 0, 2, 0, (0, 1, 2)),
        (asked("kmeans", effort="quick"), "quick", 0, 0, 0, (0,)),
        (asked("gcd"), "thorough", 200, 8, 1, (0,)),
        (asked(recipe="release", effort="thorough", views=4, epochs=3), "thorough", 3, 4, 1, (0,)),
    ],
)
def test_an_effort_decides_views_and_epochs_that_were_not_asked_for(
    config: DiscoverConfig, effort: str, epochs: int, views: int, tuned: int, averaged: tuple[int, ...]
) -> None:
    assert (config.effort, config.training.epochs, config.averaged_views) == (effort, epochs, averaged)
    assert (config.backbone.views, config.backbone.tuned_blocks) == (views, tuned)


def test_standard_has_more_views_where_they_are_cheap() -> None:
    cheap = replace(BACKBONE, trunk_precision="bf16")

    def averaged(backbone: BackboneConfig, **amount) -> tuple[int, ...]:
        return configure(images(), amount=Amount(**amount), backbone=backbone).averaged_views

    assert averaged(cheap) == averaged(cheap, epochs=3) == averaged(BACKBONE, epochs=3) == (0, 1, 2, 3, 4)
    assert averaged(cheap, effort="quick") == (0,)
    assert averaged(cheap, views=1) == (0, 1)


def test_a_method_that_needs_training_has_no_other_effort() -> None:
    for method in ("gcd", "uno", "orca", "rankstats", "debiaspl"):
        for amount in ({"effort": "quick"}, {"effort": "standard"}, {"epochs": 0}):
            with raises(ConfigError, "needs-training"):
                asked(method, **amount)
    with raises(ConfigError, "unknown-choice"):
        asked(effort="heroic")
    with raises(ConfigError, "out-of-range"):
        asked(views=10**9)


def test_several_tuned_blocks_need_training() -> None:
    blocks = replace(BACKBONE, tuned_blocks=2)
    for amount in (Amount(), Amount(effort="quick"), Amount(effort="thorough", epochs=0)):
        with raises(ConfigError, "needs-training"):
            configure(images(), amount=amount, backbone=blocks)
    trained = configure(images(), amount=Amount(effort="thorough"), backbone=blocks)
    assert trained.backbone.tuned_blocks == 2
    assert first_config(images(), trained) is not None
    assert configure(images(), method="kmeans", backbone=blocks).training.epochs == 0


def test_which_discoveries_have_a_first_answer() -> None:
    first = first_config(images(), asked(epochs=5))
    assert first is not None
    assert (first.training.epochs, first.backbone.tuned_blocks, first.averaged_views) == (0, 0, (0,))
    assert first_config(images(), asked()) is not None
    assert first_config(images(), asked("kmeans")) is not None
    assert first_config(images(), asked(online=True)) is not None
    assert first_config(images(), asked(effort="quick")) is None
    assert first_config(images(), asked("gcd")) is None
    ready = from_features(np.eye(4), [0, 1, -1, -1])
    assert first_config(ready, configure(ready, amount=Amount(epochs=3))) is None


@pytest.mark.parametrize("effort", EFFORTS)
def test_predict_repeats_the_assignments_of_the_run(effort: str, photographs: Path, tmp_path: Path, caplog) -> None:
    caplog.set_level("INFO", logger="newkind")
    out = tmp_path / "run"
    found = newkind.discover(photographs, out, effort=effort, report=False, **SMALL, **EFFORTS[effort])
    assert ("First answer: " in caplog.text) == (effort != "quick")
    assert found.run.config()["config"]["effort"] == effort
    assert found.run.config()["answer"] == "final"
    assert json.loads((out / "model.json").read_text())["views"] == VIEWS[effort]
    assert not (out / ".next").exists()
    predicted = {Path(line.file).name: line for line in newkind.predict(out, photographs)}
    assert len(predicted) == 48
    for line in found.assignments:
        if line.status != "labelled":
            assert predicted[line.file].category == line.category
            assert predicted[line.file].confidence == pytest.approx(line.confidence, abs=5e-3)
    tokens = [cache.content for cache in list_caches() if cache.content.startswith("tokens")]
    assert len(tokens) == (effort == "thorough")


def test_a_higher_effort_uses_what_a_lower_one_has_stored(photographs: Path, tmp_path: Path) -> None:
    def stored() -> dict[str, bytes]:
        root = tmp_path / "cache" / "tokens"
        return {str(file.relative_to(root)): file.read_bytes() for file in root.glob("*/*.bin")}

    before: dict[str, bytes] = {}
    for effort, n_stores in (("quick", 1), ("standard", 3), ("thorough", 4)):
        newkind.discover(photographs, tmp_path / effort, effort=effort, report=False, **SMALL, **EFFORTS[effort])
        now = stored()
        assert before.items() <= now.items()
        assert len(list_caches()) == n_stores
        before = now
    counts = estimate_efforts(open_data(photographs), configure(open_data(photographs), backbone=BACKBONE))
    assert [cost.n_views for cost in counts] == [0, 0, 48 * 5]  # only tokens of other views are missing


def test_costs_of_all_efforts(photographs: Path) -> None:
    collection = open_data(photographs)
    config = configure(collection, backbone=BACKBONE, training=TrainingConfig(batch_size=16))
    quick, standard, thorough = estimate_efforts(collection, config)
    assert [cost.effort for cost in (quick, standard, thorough)] == ["quick", "standard", "thorough"]
    assert [cost.is_chosen for cost in (quick, standard, thorough)] == [False, True, False]
    assert [cost.n_views for cost in (quick, standard, thorough)] == [48, 3 * 48, 6 * 48]
    assert standard.n_bytes == 3 * quick.n_bytes
    assert thorough.n_bytes > 2 * standard.n_bytes  # half of 4 patch tokens per view
    assert [cost.epochs for cost in (quick, standard, thorough)] == [0, 0, 40]
    assert 0 < standard.first_seconds < standard.seconds
    (only,) = estimate_efforts(collection, configure(collection, method="gcd", backbone=BACKBONE))
    assert (only.effort, only.is_chosen, only.n_views) == ("thorough", True, 9 * 48)


def test_ready_features_have_no_block_to_train() -> None:
    features = from_features(np.eye(8), [0, 0, 1, 1, None, None, None, None])
    for method, epochs in (("simgcd", 0), ("gcd", 200)):
        config = configure(features, method=method, amount=Amount(effort="thorough"))
        assert (config.effort, config.training.epochs) == ("thorough", epochs)
    assert configure(features, amount=Amount(epochs=3)).training.epochs == 3


class Killed(BaseException):
    """Stands for the end of the process at this moment."""


RESULTS = ("assignments.csv", "categories.json", "model.safetensors", "model.json", "features.npy", "config.json")
"""Files that have to be the same, whether or not a run was interrupted."""


def results(run: Path, *names: str) -> dict[str, bytes]:
    """Content of some files of a run; by default, of all results of one with an estimated number of categories."""
    return {name: (run / name).read_bytes() for name in names or (*RESULTS, "estimate-k.json", "scores.json")}


def stop_at(patch: pytest.MonkeyPatch, owner: object, name: str, call: int) -> None:
    """End at the given call of a function; of the moves of files, only those out of the folder of the next answer count."""
    function, calls = getattr(owner, name), 0

    def counted(*args, **more):
        nonlocal calls
        calls += owner is not Path or (args[0].parent.name == ".next" and args[1].parent.name != ".next")
        if calls == call:
            raise Killed
        return function(*args, **more)

    patch.setattr(owner, name, counted)


N_MOVES = len(Run(Path())._names)
MOMENTS = {
    "first results": (stages, "write_results", 1, "none"),
    "first move": (Path, "replace", 1, "first"),
    "in the middle of the first moves": (Path, "replace", 4, "first"),
    "second stage": (stages, "_open_stage", 2, "first"),
    "final results": (stages, "write_results", 2, "first"),
    "in the middle of the final moves": (Path, "replace", N_MOVES + 4, "final"),
}


@pytest.mark.parametrize("effort", ["standard", "thorough"])
def test_a_run_that_is_stopped_anywhere_ends_in_the_same_bytes(
    effort: str, photographs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(name: str) -> None:
        newkind.discover(
            photographs, tmp_path / name, effort=effort, n_categories="auto", report=False, **SMALL, **EFFORTS[effort]
        )

    run("whole")
    expected = results(tmp_path / "whole")
    for moment, (owner, name, call, left) in MOMENTS.items():
        with monkeypatch.context() as patch:
            stop_at(patch, owner, name, call)
            with pytest.raises(Killed):
                run(moment)
        out = tmp_path / moment
        assert Run.open(out).answer == left
        if left == "final":
            assert results(out) == expected
        elif left == "first":
            opened = newkind.load(out)
            predicted = {Path(line.file).name: line.category for line in opened.predict(photographs)}
            assert all(
                predicted[line.file] == line.category for line in opened.assignments if line.status != "labelled"
            )
        run(moment)
        assert results(out) == expected


def test_an_estimate_of_the_first_answer_is_not_that_of_the_final_one(tmp_path: Path) -> None:
    """The first one is made from one view per image, the final one from three."""
    data = pictures(tmp_path / "pictures", 7, 6, contrast=20)

    def run(name: str, *, first_answer: bool) -> None:
        newkind.discover(data, tmp_path / name, n_categories="auto", report=False, first_answer=first_answer, **SMALL)

    run("whole", first_answer=False)
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, stages, "new_network", 1)
        with pytest.raises(Killed):
            run("stopped", first_answer=True)
    estimated = results(tmp_path / "stopped" / ".next", "estimate-k.json")
    assert estimated != results(tmp_path / "whole", "estimate-k.json")
    run("stopped", first_answer=False)
    assert results(tmp_path / "stopped") == results(tmp_path / "whole")
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, stages, "new_network", 1)
        with pytest.raises(Killed):
            run("resumed", first_answer=False)
    written = (tmp_path / "resumed" / ".next" / "estimate-k.json").stat().st_mtime_ns
    run("resumed", first_answer=False)
    assert (tmp_path / "resumed" / "estimate-k.json").stat().st_mtime_ns == written


def test_overwriting_a_first_answer_starts_again(photographs: Path, tmp_path: Path, monkeypatch) -> None:
    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        stop_at(patch, stages, "write_results", 2)
        with pytest.raises(Killed):
            newkind.discover(photographs, out, report=False, **SMALL)
    assert (out / ".next").exists()
    newkind.discover(photographs, out, effort="quick", overwrite=True, report=False, **SMALL)
    assert Run.open(out).answer == "final"
    assert not (out / ".next").exists()


def test_a_run_of_an_earlier_version_predicts_from_the_evaluation_view(photographs: Path, tmp_path: Path) -> None:
    """Its model file has a setting that is gone, and names no views."""
    run = newkind.discover(photographs, tmp_path / "run", effort="quick", report=False, **SMALL)
    card = json.loads(run.run.model_card.read_text())
    del card["views"]
    card["method_config"]["frame_views"] = 4
    run.run.model_card.write_text(json.dumps(card))
    predicted = {Path(line.file).name: line.category for line in newkind.predict(tmp_path / "run", photographs)}
    assert all(predicted[line.file] == line.category for line in run.assignments if line.status != "labelled")


def report_of(run: Path) -> str | None:
    path = run / "report.html"
    return path.read_text(encoding="utf-8") if path.exists() else None


def test_the_report_of_a_first_answer_never_stands_beside_the_final_one(photographs: Path, tmp_path: Path) -> None:
    out, note = tmp_path / "run", "This is a first answer"
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, api, "report_outcome", 2)  # after the final answer was adopted
        with pytest.raises(Killed):
            newkind.discover(photographs, out, **SMALL)
    assert Run.open(out).answer == "final"
    assert report_of(out) is None
    newkind.discover(photographs, out, **SMALL)
    written = report_of(out)
    assert written is not None
    assert note not in written
    newkind.discover(photographs, out, report=False, **SMALL)  # the same answer again
    assert report_of(out) == written
    newkind.discover(photographs, out, report=False, min_confidence=0.5, **SMALL)
    assert report_of(out) is None
    (out / "report.html").write_text("my own notes")
    newkind.discover(photographs, out, report=False, min_confidence=0.6, **SMALL)
    assert report_of(out) == "my own notes"


@pytest.mark.parametrize("effort", ["standard", "thorough"])
def test_both_answers_are_calibrated_and_take_another_minimum_confidence(effort: str, tmp_path: Path) -> None:
    data, out = pictures(tmp_path / "pictures", 7, 6, contrast=20), tmp_path / "run"

    def run(**more) -> newkind.Discovery:
        return newkind.discover(data, out, effort=effort, report=False, **SMALL, **EFFORTS[effort], **more)

    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, stages, "_open_stage", 2)
        with pytest.raises(Killed):
            run()
    first = newkind.load(out)
    assert first.run.answer == "first"
    assert first.model.calibrated
    assert {line.outlier for line in first.assignments} <= {True, False}
    found = run()
    before = results(out, "model.safetensors", "model.json", "features.npy")
    free = sorted(line.confidence for line in found.assignments if line.status != "labelled")
    limit = (free[len(free) // 2] + free[-1]) / 2
    again = run(min_confidence=limit)
    assert again.run.answer == "final"
    assert again.model.calibrated
    assert again.run.config()["config"]["min_confidence"] == limit
    assert results(out, *before) == before
    for line, plain in zip(again.assignments, found.assignments, strict=True):
        assert (line.category, line.confidence, line.novelty) == (plain.category, plain.confidence, plain.novelty)
    n_unsure = sum(line.status == "unsure" for line in again.assignments)
    assert 0 < n_unsure == sum(category.n_unsure for category in again.categories)
    assert newkind.load(out).assignments == again.assignments
    assert not (out / ".next").exists()


def test_a_first_answer_is_completed_with_another_minimum_confidence(tmp_path: Path) -> None:
    data, out = pictures(tmp_path / "pictures", 7, 6, contrast=20), tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch:
        stop_at(patch, stages, "write_results", 2)
        with pytest.raises(Killed):
            newkind.discover(data, out, report=False, **SMALL)
    assert Run.open(out).config()["config"]["min_confidence"] == 0
    newkind.discover(data, out, report=False, min_confidence=0.8, **SMALL)
    whole = newkind.discover(data, tmp_path / "whole", report=False, min_confidence=0.8, **SMALL)
    assert whole.run.config()["config"]["min_confidence"] == 0.8
    names = ("assignments.csv", "categories.json", "scores.json", "config.json")
    assert results(out, *names) == results(tmp_path / "whole", *names)
