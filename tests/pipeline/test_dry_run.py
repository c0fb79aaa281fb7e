"""What `discover --dry-run` estimates, and what it does not do."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from newkind.backbone.build_time import ViewRates
from newkind.cli import app
from newkind.config import BackboneConfig, TrainingConfig
from newkind.data import open_data
from newkind.pipeline.configure import configure
from newkind.pipeline.dry_run import estimate_efforts

BACKBONE = BackboneConfig(
    name="vit_tiny_patch16_224", random_weights=True, image_size=32, device="cpu", trunk_precision="fp32"
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEWKIND_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    """48 pictures of four kinds, of which two are known."""
    folder, rng = tmp_path / "photographs", np.random.default_rng(0)
    folder.mkdir()
    rows = ["file_name,label,truth"]
    for i in range(48):
        Image.fromarray(rng.integers(0, 255, (40, 48, 3), dtype=np.uint8)).save(folder / f"{i:02d}.png")
        rows.append(f"{i:02d}.png,{i % 4 if i % 4 < 2 and i % 8 < 4 else ''},{i % 4}")
    (folder / "metadata.csv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds per image and one per view, on one processor; no time for training."""
    fixed = ViewRates(trunk=1.0, image=10.0, crop=0.0, n_cpus=1, n_busy=1)
    monkeypatch.setattr("newkind.pipeline.dry_run.measure_rates", lambda *_: fixed)
    monkeypatch.setattr("newkind.pipeline.dry_run.training_seconds", lambda *_: 0.0)


@pytest.mark.usefixtures("rates")
def test_times_count_each_decoding(photographs: Path) -> None:
    """The views of an answer are cropped from one decoded image; the first answer decodes all images on its own."""
    collection = open_data(photographs)
    config = configure(collection, backbone=BACKBONE, training=TrainingConfig(batch_size=16))
    quick, standard, thorough = estimate_efforts(collection, config)
    assert (quick.first_seconds, quick.seconds) == (None, 48 * 11)
    assert (standard.first_seconds, standard.seconds) == (48 * 11, 48 * (11 + 12))
    assert (thorough.first_seconds, thorough.seconds) == (48 * 11, 48 * (11 + 15))
    alone = estimate_efforts(collection, config, first_answer=False)
    assert [cost.first_seconds for cost in alone] == [None, None, None]
    assert [cost.seconds for cost in alone] == [48 * 11, 48 * 13, 48 * 15]
    assert [cost.n_views for cost in alone] == [48, 3 * 48, 5 * 48]
    for more in ({"method": "gcd"}, {"recipe": "release"}):
        (only,) = estimate_efforts(collection, configure(collection, backbone=BACKBONE, **more))
        assert (only.first_seconds, only.seconds) == (None, 48 * (10 + 9))


@pytest.mark.usefixtures("rates")
def test_online_views_are_counted(photographs: Path) -> None:
    collection = open_data(photographs)
    training = TrainingConfig(batch_size=16, evaluate_every=40)
    config = configure(collection, backbone=BACKBONE, training=training, online=True)
    quick, standard, thorough = estimate_efforts(collection, config)
    assert (quick.n_views, standard.n_views) == (2 * 48, 2 * 3 * 48)  # the number of categories is that of the truth
    assert (quick.first_seconds, standard.first_seconds) == (None, None)
    assert (quick.seconds, standard.seconds) == (2 * 48 * 11, 2 * 48 * 13)
    assert thorough.n_views == 48 + 3 * 5 * 48 + 40 * 3 * 16 * 2  # first answer, three passes, two views per step
    assert thorough.first_seconds == 48 * 11
    assert [cost.n_bytes for cost in (quick, standard)] == [0, 0]


def test_a_dry_run_downloads_no_weights(photographs: Path, monkeypatch: pytest.MonkeyPatch, caplog) -> None:
    caplog.set_level("INFO", logger="newkind")
    monkeypatch.setattr("newkind.backbone.weights._find", lambda *_: pytest.fail("downloaded"))
    collection = open_data(photographs)
    config = configure(collection, backbone=replace(BACKBONE, random_weights=False))
    costs = estimate_efforts(collection, config)
    assert [cost.n_views for cost in costs] == [48, 3 * 48, 6 * 48]
    assert " MB" in caplog.text
    assert "random weights" in caplog.text
    caplog.clear()
    estimate_efforts(collection, configure(collection, backbone=BACKBONE))
    assert " MB" not in caplog.text


@pytest.mark.parametrize(
    "command", [["cache", "DATA"], ["tune", "DATA", "--out", "tuned"], ["discover", "DATA", "--out", "run"]]
)
def test_no_dry_run_downloads_weights(command: list[str], photographs: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("newkind.backbone.weights._find", lambda *_: pytest.fail("downloaded"))
    rows = ["file_name,label", *(f"{path.name},{i % 4}" for i, path in enumerate(sorted(photographs.glob("*.png"))))]
    rows[-8:] = [f"{row.split(',')[0]}," for row in rows[-8:]]  # unlabelled
    (photographs / "all.csv").write_text("\n".join(rows) + "\n")
    data = [str(photographs / "all.csv") if word == "DATA" else word for word in command]
    options = ["--backbone", "vit_tiny_patch16_224", "--image-size", "32", "--device", "cpu", "--dry-run"]
    done = CliRunner().invoke(app, [*data, *options], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert not (tmp_path / "cache").exists()
