"""Features on a real local Ray cluster: the same as of one process, although a worker is killed."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from PIL import Image

from error_codes import raises
from newkind.config import BackboneConfig
from newkind.data import open_data
from newkind.data.items import Features
from newkind.errors import DataError
from newkind.pipeline.compute_features import FeatureParts, compute_features
from newkind.pipeline.ray_features import _Worker, compute_on_ray
from newkind.shard import Shard

N_IMAGES, PART = 60, 2
CONFIG = BackboneConfig(name="vit_tiny_patch16_224", random_weights=True, image_size=32, device="cpu")
OPTIONS = ["--backbone", "vit_tiny_patch16_224", "--random-weights", "--image-size", "32", "--device", "cpu"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    lines = ["file_name,label"]
    for i in range(N_IMAGES):
        Image.fromarray(rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)).save(tmp_path / f"{i:02d}.png")
        lines.append(f"{i:02d}.png,{'ab'[i % 2] if i < 20 else ''}")
    (tmp_path / "30.png").write_bytes(b"no picture")
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "table.csv"


def workers_of(process: psutil.Process) -> list[psutil.Process]:
    """Processes of Ray below a process that compute parts."""
    found = []
    for child in process.children(recursive=True):
        try:
            if " ".join(child.cmdline()).startswith("ray::") and "_Worker" in " ".join(child.cmdline()):
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


def test_parts_are_computed_although_a_worker_is_killed(table: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'newkind[ray]'")
    store = tmp_path / "store"
    command = [sys.executable, "-m", "newkind", "features", str(table), "--out", str(store), *OPTIONS]
    command += ["--part-size", str(PART), "--ray-workers", "2"]
    environment = os.environ | {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",
        "RAY_ADDRESS": "local",
        "COLUMNS": "200",
    }
    process = psutil.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path
    )
    deadline = time.monotonic() + 300
    while not list(store.glob("part-*.json")) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    killed = workers_of(process)[:1]
    for worker in killed:
        worker.kill()
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert killed, output
    found = open_data(store)
    assert [item.name for item in found.skipped] == ["30.png"]
    compute_features(FeatureParts(open_data(table), CONFIG, tmp_path / "one", part_size=PART), shard=Shard())
    one = open_data(tmp_path / "one").catalog
    assert isinstance(one.items, Features)
    assert isinstance(found.catalog.items, Features)
    assert list(found.catalog.items.names) == list(one.items.names)
    np.testing.assert_allclose(found.catalog.items.values, one.items.values, atol=1e-5)


def test_relative_names_start_from_the_folder_of_the_command(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker of a cluster that runs already was started elsewhere; there it would skip every image."""
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(get=lambda reference: reference))
    monkeypatch.chdir(table.parent)
    collection = open_data(table.name)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    worker = _Worker(str(table.parent), collection, CONFIG, tmp_path / "store", {"part_size": PART})
    assert worker({"part": [0]})["images"] == [PART]


def test_without_ray_the_package_is_named(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with raises(DataError, "missing-package"):
        compute_on_ray(open_data(table), CONFIG, tmp_path / "store", n_workers=1)
