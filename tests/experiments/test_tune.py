"""Settings chosen with labelled images alone."""

import json
import logging
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from labelled_clouds import SECRET, clouds

import newkind
from error_codes import raises
from newkind.config import BackboneConfig, TrainingConfig
from newkind.data import Collection, open_data
from newkind.errors import ConfigError, RunError
from newkind.experiments import cells
from newkind.experiments.tune import plan_tuning, tune
from newkind.experiments.tune_config import TuneConfig

QUICK = TrainingConfig(epochs=2, batch_size=16)


def test_the_token_cache_of_all_images_is_used(
    tmp_path: Path,
    make_image,  # type: ignore[no-untyped-def]
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path / "cache"))
    for i in range(16):
        make_image(tmp_path / "pile" / f"class{i // 4}" / f"{i}.png", seed=i, size=(40, 40))
        make_image(tmp_path / "pile" / f"{i}.png", seed=100 + i, size=(40, 40))
    (tmp_path / "pile" / "class0" / "broken.png").write_bytes(b"not a picture")
    backbone = BackboneConfig(name="vit_tiny_patch16_224", random_weights=True, image_size=32)
    config = TuneConfig(tries={"block_rate": ["0"]}, views=2, training=QUICK, backbone=backbone)
    data = open_data(tmp_path / "pile")
    before = plan_tuning(data, tmp_path / "out", config, dry_run=True)
    assert not (tmp_path / "cache" / "tokens").exists()
    with caplog.at_level(logging.INFO, logger="newkind"):
        found = tune(data, tmp_path / "out", config)
    assert len(list((tmp_path / "cache" / "tokens").iterdir())) == 1
    assert any("33 images" in record.getMessage() for record in caplog.records)  # all of them, not only labelled ones
    assert found.about["n_images"] == 16  # without the broken one
    assert len(before.schedule.results()) == len(before.schedule.cells) == 4  # a dry run names the same cells
    words = shlex.split(found.command)
    assert words[:5] == ["newkind", "discover", str((tmp_path / "pile").resolve()), "--out", "run"]
    assert {"--backbone", "--random-weights", "--image-size", "--views", "--batch-size"} <= set(words)
    assert words[words.index("--views") + 1] == "2"


def test_problems_have_the_true_number_of_categories() -> None:
    plan = plan_tuning(clouds(), Path("nowhere"), TuneConfig(training=QUICK))
    assert {cell.config.n_categories.number for cell in plan.schedule.cells.values()} == {6}
    assert len(plan.schedule.cells) == len(plan.candidates) * 2


def test_a_tuning_is_resumed_and_nothing_is_run_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = TuneConfig(tries={"mixture_balance": ["1", "2"]}, training=QUICK)
    real, ran = cells.discover, []

    def discover(data: Collection, out: Path, *args, **kwargs):  # type: ignore[no-untyped-def]
        if len(ran) == 4:
            raise KeyboardInterrupt
        ran.append(out)
        return real(data, out, *args, **kwargs)

    monkeypatch.setattr(cells, "discover", discover)
    with pytest.raises(KeyboardInterrupt):
        tune(clouds(), tmp_path / "out", config)
    assert not (tmp_path / "out" / "tune.json").exists()
    listed = plan_tuning(clouds(), tmp_path / "out", config, dry_run=True).schedule.listing()
    assert [line.split()[0] for line in listed] == ["finished"] * 4 + ["to"] * 2
    first, ran = ran.copy(), []
    found = tune(clouds(), tmp_path / "out", config)
    assert len(ran) == 2
    assert len({*first, *ran}) == 6 == len(list((tmp_path / "out" / "runs").iterdir()))
    written = (tmp_path / "out" / "tune.json").read_bytes()
    ran = []
    again = tune(clouds(), tmp_path / "out", config)
    assert not ran
    assert again == found
    assert (tmp_path / "out" / "tune.json").read_bytes() == written
    # Other conditions are other runs.
    for data, other in (
        (clouds(), replace(config, training=replace(QUICK, epochs=3))),
        (clouds(n_each=10), config),
    ):
        plan = plan_tuning(data, tmp_path / "out", other)
        assert len(plan.schedule.cells) == 6
        assert not plan.schedule.results()


def test_the_truth_of_the_data_is_not_used(tmp_path: Path) -> None:
    config = TuneConfig(tries={"mixture_balance": ["1"]}, training=QUICK)
    found = tune(clouds(), tmp_path / "a", config)
    assert found == tune(replace(clouds(), truth=None), tmp_path / "b", config)
    for path in (tmp_path / "a").rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes(), path


def test_a_failed_run_is_named_and_the_others_are_ranked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, failing = cells.discover, {2.0}

    def discover(data, out, config, **kwargs):  # type: ignore[no-untyped-def]
        if config.method.mixture_balance in failing:
            raise RunError("The loss is NaN in epoch 1.", code="nan-loss")
        return real(data, out, config, **kwargs)

    monkeypatch.setattr(cells, "discover", discover)
    config = TuneConfig(tries={"mixture_balance": ["1", "2"]}, training=QUICK)
    found = tune(clouds(), tmp_path / "out", config)
    assert [row.settings["mixture_balance"] for row in found.rows if not row.is_default] == ["1"]
    assert len(found.failures) == 2
    assert len(json.loads((tmp_path / "out" / "tune.json").read_text())["failures"]) == 2
    failing |= {1.0, None}
    with raises(RunError, "nothing-finished"):
        tune(clouds(), tmp_path / "other", config)


def test_bad_requests_write_nothing(tmp_path: Path) -> None:
    with raises(ConfigError, "unknown-setting"):
        tune(clouds(), tmp_path / "out", TuneConfig(training=QUICK, tries={"speed": ["9"]}))
    assert not (tmp_path / "out").exists()


def test_a_method_without_training(tmp_path: Path) -> None:
    found = newkind.tune(clouds(), tmp_path, tries={"n_init": [1, 3]}, method="kmeans")
    assert len(found.rows) == 3
    assert shlex.split(found.command)[:7] == ["newkind", "discover", "DATA", "--out", "run", "--method", "kmeans"]


def test_the_next_command_repeats_the_conditions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training = TrainingConfig(epochs=3, batch_size=16, seed=3)
    config = TuneConfig(tries={"head_rate": ["0.5"]}, recipe="release", settings={"block_rate": "0"}, training=training)
    real = cells._content

    def content(cell, run, seconds):  # type: ignore[no-untyped-def]
        """Much better scores with the setting that is tried."""
        found = real(cell, run, seconds)
        share = 0.9 if cell.config.method.head_rate == 0.5 else 0.1
        return found | {"accuracy": found["accuracy"] | {"all": share}}

    monkeypatch.setattr(cells, "_content", content)
    found = tune(clouds(), tmp_path, config, data="my data")
    words = "--recipe release --batch-size 16 --seed 3 --epochs 3 --set block_rate=0 --set head_rate=0.5"
    assert shlex.split(found.command) == ["newkind", "discover", "my data", "--out", "run", *words.split()]
