"""Features by several workers: the same whoever computes them, resumable, and data for `discover` and `predict`."""

import errno
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import newkind
from error_codes import raises
from newkind.config import BackboneConfig
from newkind.data import open_data
from newkind.data.feature_parts import part_file
from newkind.data.items import Features
from newkind.errors import DataError
from newkind.pipeline.compute_features import ComputedFeatures, FeatureParts, compute_features
from newkind.pipeline.predict import model_features
from newkind.pipeline.predict_inputs import read_inputs
from newkind.runs.model_io import load_model
from newkind.runs.run import Run
from newkind.shard import Shard

TINY = {"name": "vit_tiny_patch16_224", "random_weights": True, "image_size": 32, "device": "cpu"}
CONFIG = BackboneConfig(**TINY)


def picture(seed: int) -> bytes:
    """A picture that is mostly red, green or blue."""
    pixels = np.random.default_rng(seed).integers(0, 120, (32, 32, 3)) + 130 * np.eye(3)[seed % 3]
    content = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(content, "png")
    return content.getvalue()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Table with 30 pictures, labels and truth, and one file that is broken."""
    root = tmp_path_factory.mktemp("table")
    lines = ["file_name,label,truth"]
    for i in range(30):
        (root / f"{i:02d}.png").write_bytes(b"no picture" if i == 7 else picture(i))
        name = ("red", "green", "blue")[i % 3]
        lines.append(f"{i:02d}.png,{name if i % 3 < 2 and i % 2 else ''},{name}")
    (root / "table.csv").write_text("\n".join(lines) + "\n")
    return root / "table.csv"


def computed(data: Path, out: Path, shard: str = "0/1", n_views: int = 1) -> ComputedFeatures:
    parts = FeatureParts(open_data(data), CONFIG, out, n_views=n_views, part_size=8)
    return compute_features(parts, shard=Shard.parse(shard))


def test_workers_in_any_order_give_the_features_of_one(table: Path, tmp_path: Path) -> None:
    whole = computed(table, tmp_path / "one")
    assert (whole.n_images, whole.n_skipped, whole.is_complete) == (29, 1, True)
    for shard in ("2/3", "0/3", "2/3"):
        assert not computed(table, tmp_path / "three", shard).is_complete
        with raises(DataError, "incomplete-features"):
            open_data(tmp_path / "three")
    assert computed(table, tmp_path / "three", "0/3").n_images == 0
    assert computed(table, tmp_path / "three", "1/3").is_complete
    one, three = open_data(tmp_path / "one"), open_data(tmp_path / "three")
    assert isinstance(one.catalog.items, Features)
    assert isinstance(three.catalog.items, Features)
    assert np.array_equal(one.catalog.items.values, three.catalog.items.values)
    before = open_data(table)
    kept = [i for i in range(30) if i != 7]
    assert list(three.catalog.items.names) == [before.catalog.items.names[i] for i in kept]
    assert three.catalog.class_names == before.catalog.class_names
    assert np.array_equal(three.catalog.labels, before.catalog.labels[kept])
    assert three.truth is not None
    assert before.truth is not None
    assert np.array_equal(three.truth.labels, before.truth.labels[kept])
    assert [item.name for item in three.skipped] == ["07.png"]


def test_discover_and_predict_use_a_folder_of_features(table: Path, tmp_path: Path) -> None:
    computed(table, tmp_path / "store")
    found = newkind.discover(tmp_path / "store", tmp_path / "run", n_categories=3, report=False)
    assert len(found.assignments) == 29
    again = found.predict(tmp_path / "store")
    free = [line.status != "labelled" for line in found.assignments]
    pairs = zip(again, found.assignments, free, strict=True)
    assert all(new.category == old.category for new, old, is_free in pairs if is_free)
    # The features are those that a run of the images uses.
    newkind.discover(
        table, tmp_path / "images", n_categories=3, effort="quick", report=False, backbone=TINY["name"], **_rest()
    )
    model = load_model(Run.open(tmp_path / "images"), device="cpu")
    quick = computed(table, tmp_path / "quick", n_views=0)
    assert quick.is_complete
    expected, _ = model_features(model, read_inputs([table.parent / f"{i:02d}.png" for i in (0, 1, 8)]))
    items = open_data(tmp_path / "quick").catalog.items
    assert isinstance(items, Features)
    np.testing.assert_allclose(items.values[[0, 1, 7]], expected, atol=1e-4)


def _rest() -> dict[str, object]:
    return {name: value for name, value in TINY.items() if name != "name"}


def test_features_of_other_data_or_settings_are_refused(table: Path, tmp_path: Path) -> None:
    computed(table, tmp_path / "store", "0/4")
    with raises(DataError, "other-features"):
        computed(table, tmp_path / "store", "1/4", n_views=2)
    part_file(tmp_path / "store", 0, ".json").unlink()  # as after a kill between the two files of a part
    assert computed(table, tmp_path / "store").is_complete
    for change in (lambda path: path.write_bytes(b"damaged"), Path.unlink):
        change(part_file(tmp_path / "store", 0, ".npy"))
        with raises(DataError, "unreadable") as caught:
            open_data(tmp_path / "store")
        assert caught.value.facts["path"].endswith("part-000000.npy")


def test_a_folder_of_features_that_may_not_be_written(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Joining the parts needs to write; reading what was joined does not."""
    computed(table, tmp_path / "store")

    def refuse(path: Path) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    with monkeypatch.context() as patch:
        patch.setattr("newkind.data.feature_parts.file_lock", refuse)
        with raises(DataError, "cannot-write"):
            open_data(tmp_path / "store")
    open_data(tmp_path / "store")
    monkeypatch.setattr("newkind.data.feature_parts.file_lock", refuse)
    assert len(open_data(tmp_path / "store").catalog) == 29


def test_archives_are_computed_by_the_command(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "shard.tar", "w") as archive:
        for i in range(12):
            for name, content in ((f"{i}.png", picture(i)), (f"{i}.cls", b"" if i > 7 else b"ab"[i % 2 : i % 2 + 1])):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    options = ["--backbone", "vit_tiny_patch16_224", "--random-weights", "--image-size", "32", "--device", "cpu"]
    command = [
        sys.executable,
        "-m",
        "newkind",
        "features",
        str(tmp_path / "shard.tar"),
        "--out",
        str(tmp_path / "store"),
    ]
    done = subprocess.run(
        [*command, *options, "--shard", "0/1", "--part-size", "5"],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert len(open_data(tmp_path / "store").catalog) == 12


def test_images_in_parquet_are_computed_by_torchrun_discovered_and_predicted(tmp_path: Path) -> None:
    """The features of two processes are those of one; a run of the images has a page that shows them."""
    images = [{"bytes": picture(i), "path": f"{i}.png"} for i in range(12)]
    labels = [("a", "b", None)[i % 3] if i < 9 else None for i in range(12)]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"image": images, "label": labels}), path, row_group_size=5)
    options = ["--backbone", "vit_tiny_patch16_224", "--random-weights", "--image-size", "32", "--device", "cpu"]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "newkind"]
    command += ["features", str(path), "--out", str(tmp_path / "two"), *options, "--part-size", "5", "--views", "1"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240, env=environment)
    assert done.returncode == 0, done.stderr
    assert [done.stdout.count(words) for words in ("Results:", "newkind discover")] == [1, 1], done.stdout
    assert "12 images" in done.stdout + done.stderr
    parts = FeatureParts(open_data(path), CONFIG, tmp_path / "one", n_views=1, part_size=5)
    assert compute_features(parts, shard=Shard()).is_complete
    one, two = (open_data(tmp_path / name).catalog.items for name in ("one", "two"))
    assert isinstance(one, Features)
    assert isinstance(two, Features)
    np.testing.assert_allclose(one.values, two.values, atol=1e-5)
    found = newkind.discover(path, tmp_path / "run", n_categories=3, effort="quick", backbone=TINY["name"], **_rest())
    assert (tmp_path / "run" / "report.html").read_text().count("data:image/") >= 12
    lines = newkind.predict(found.run.folder, path)
    assert [line.file for line in lines] == [f"{i}.png" for i in range(12)]
    assert all(line.status in ("known", "new") for line in lines)


@pytest.mark.parametrize(
    ("key", "value"),
    [("parts", 10**12), ("parts", "1"), ("parts", -1), ("dim", 0), ("class_names", [3]), ("truth_names", "x")],
)
def test_a_manifest_from_elsewhere_is_checked(tmp_path: Path, key: str, value: object) -> None:
    sound = {"kind": "newkind-features", "format": 1, "parts": 0, "dim": 4, "class_names": [], "truth_names": None}
    (tmp_path / "manifest.json").write_text(json.dumps(sound | {key: value}))
    with raises(DataError, "unreadable"):
        open_data(tmp_path)
