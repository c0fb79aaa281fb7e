"""`predict` into a folder of Parquet files: complete, resumable, and divided between workers."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import newkind
from error_codes import raises
from feature_clusters import feature_clusters
from newkind.config import BackboneConfig
from newkind.data import from_features, open_data
from newkind.data.slices import ItemParts, ListParts
from newkind.errors import ConfigError, DataError, RunError
from newkind.pipeline.compute_features import FeatureParts
from newkind.pipeline.predict_parts import InputParts, PredictedParts, open_parts, predict_parts
from newkind.reading import ReadingConfig
from newkind.runs.assignment import COLUMNS, Assignment
from newkind.runs.model_io import load_model
from newkind.runs.run import Run
from newkind.shard import Shard

TINY = {"backbone": "vit_tiny_patch16_224", "random_weights": True, "image_size": 32, "device": "cpu"}
REST = {name: value for name, value in TINY.items() if name != "backbone"}
OPTIONS = ("--device", "cpu", "--part-size", "16")


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 pictures in two colours; a third of them labelled."""
    root = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    for i in range(40):
        folder = root / ("unlabelled" if i % 3 else ("red", "blue")[i % 2])
        folder.mkdir(exist_ok=True)
        pixels = rng.integers(0, 120, (32, 32, 3)) + np.array([[130, 0, 0], [0, 0, 130]])[i % 2]
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{i:02d}.png")
    return root


@pytest.fixture(scope="module")
def run(images: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run")
    newkind.discover(images, out, n_categories=3, effort="quick", report=False, **TINY)
    return out


@pytest.fixture
def listed(images: Path, tmp_path: Path) -> Path:
    """List of all pictures and of one file that does not exist."""
    names = [*map(str, sorted(images.rglob("*.png"))), str(images / "missing.png")]
    path = tmp_path / "list.txt"
    path.write_text("\n".join(names) + "\n")
    return path


def rows_of(out: Path) -> list[Assignment]:
    tables = [pq.read_table(path).to_pylist() for path in sorted(out.glob("part-*.parquet"))]
    assert all(tuple(row) == COLUMNS for table in tables for row in table)
    return [Assignment(**row) for table in tables for row in table]


def parts(run: Path, inputs: InputParts, out: Path, shard: str = "0/1") -> PredictedParts:
    return predict_parts(load_model(Run.open(run), device="cpu"), inputs, out, shard=Shard.parse(shard))


def test_parts_together_are_the_prediction_of_all_images(run: Path, listed: Path, tmp_path: Path) -> None:
    inputs = open_parts([listed], size=8)
    assert isinstance(inputs, ListParts)
    first = parts(run, inputs, tmp_path / "parts", "1/2")
    assert (first.n_parts, first.n_found, first.is_complete) == (3, 0, False)
    second = parts(run, inputs, tmp_path / "parts", "0/2")
    assert second.is_complete
    assert first.n_images + second.n_images == 41
    assert first.n_unreadable + second.n_unreadable == 1
    whole = newkind.predict(run, listed)
    found = rows_of(tmp_path / "parts")
    assert [row.file for row in found] == listed.read_text().split()
    assert [(row.category, row.status) for row in found] == [(line.category, line.status) for line in whole]
    assert np.allclose([row.confidence for row in found], [line.confidence for line in whole], atol=2e-4)
    again = parts(run, inputs, tmp_path / "parts")
    assert (again.n_found, again.n_images) == (6, 0)
    manifest = json.loads((tmp_path / "parts" / "manifest.json").read_text())
    assert (manifest["images"], manifest["parts"], manifest["part_size"]) == (41, 6, 8)


def test_parts_of_another_prediction_are_refused(run: Path, listed: Path, tmp_path: Path) -> None:
    parts(run, open_parts([listed], size=50), tmp_path / "parts")
    with raises(RunError, "other-parts"):
        parts(run, open_parts([listed], size=20), tmp_path / "parts")
    listed.write_text(listed.read_text() + "another.png\n")
    with raises(RunError, "other-parts"):
        parts(run, open_parts([listed], size=50), tmp_path / "parts")


def test_features_are_predicted_in_parts(tmp_path: Path) -> None:
    arrays = feature_clusters(4, 2, n_each=10)
    newkind.discover(
        from_features(arrays["features"], arrays["labels"]), tmp_path / "run", n_categories=4, report=False
    )
    np.savez(tmp_path / "more.npz", features=arrays["features"], labels=arrays["labels"])
    inputs = open_parts([tmp_path / "more.npz"], size=16)
    assert isinstance(inputs, ItemParts)
    assert parts(tmp_path / "run", inputs, tmp_path / "parts").is_complete
    found, whole = rows_of(tmp_path / "parts"), newkind.predict(tmp_path / "run", tmp_path / "more.npz")
    assert [row.category for row in found] == [line.category for line in whole]


def test_a_killed_prediction_is_completed_without_repeating_a_part(run: Path, listed: Path, tmp_path: Path) -> None:
    """Kill the command as soon as it has written a part; the part stays as it is."""
    out = tmp_path / "parts"
    many = tmp_path / "many.txt"
    many.write_text(listed.read_text() * 20)  # 820 images: many parts
    command = [sys.executable, "-m", "newkind", "predict", str(run), str(many), "--out", f"{out}/", *OPTIONS]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 240
    while not list(out.glob("part-*.parquet")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=120)
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("part-*.parquet")}
    assert before
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert {path.name: path.stat().st_mtime_ns for path in out.glob("part-*.parquet")}.items() >= before.items()
    assert [row.file for row in rows_of(out)] == many.read_text().split()


def test_processes_of_torchrun_share_the_parts(run: Path, listed: Path, tmp_path: Path) -> None:
    out = tmp_path / "parts"
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "newkind"]
    command += ["predict", str(run), str(listed), "--out", f"{out}/", *OPTIONS]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    assert [row.file for row in rows_of(out)] == listed.read_text().split()


def test_shards_and_lists_that_cannot_be_used(tmp_path: Path) -> None:
    for text in ("", "1", "a/2", "1/", "-1/2", "1/2/3"):
        with raises(ConfigError, "shard-format"):
            Shard.parse(text)
    for text in ("2/2", "0/0"):
        with raises(ConfigError, "shard-range"):
            Shard.parse(text)
    (tmp_path / "empty.txt").write_text("\n \n")
    with raises(DataError, "no-images"):
        open_parts([tmp_path / "empty.txt"])


def test_boxes_of_another_margin_are_other_inputs(images: Path, tmp_path: Path) -> None:
    """Their names are the same."""
    names = [str(path.relative_to(images)) for path in sorted(images.rglob("*.png"))[:2]]
    found = [{"category": "1", "conf": 0.9, "bbox": [0.1, 0.1, 0.5, 0.5]}]
    content = {"detection_categories": {"1": "animal"}, "images": [{"file": n, "detections": found} for n in names]}
    (tmp_path / "boxes.json").write_text(json.dumps(content))
    opened = [
        open_parts([tmp_path / "boxes.json"], ReadingConfig(image_folder=images, box_margin=margin))
        for margin in (0.1, 0.1, 0.3)
    ]
    first, same, other = (each.digest for each in opened)
    assert first == same != other
    for margin, code in ((0.1, ""), (0.3, "other-features")):
        boxes = open_data(tmp_path / "boxes.json", image_folder=images, box_margin=margin)
        with raises(DataError, code) if code else nullcontext():
            FeatureParts(boxes, BackboneConfig(name=TINY["backbone"], **REST), tmp_path / "store")
