"""Runs whose items are not files of their own: boxes in images, and images in archives."""

import json
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from error_codes import raises
from newkind.data import Collection, open_data
from newkind.discovery import Discovery
from newkind.errors import ConfigError, RunError
from newkind.export.sorting import plan_run, sort_images
from newkind.progress import quiet
from newkind.runs.assignment import Assignment, Category, assignments_csv
from newkind.runs.assignments import category_rows
from newkind.runs.run import Run


def write_run(folder: Path, collection: Collection, data: Path) -> Discovery:
    """A finished run of a collection, in which items belong to fox and new-01 in turn."""
    folder.mkdir()
    run, names = Run(folder), ["fox", "new-01"]
    run.write_config(
        {"data": str(data), "root": None, "reading": dict(collection.reading), "fingerprint": "1", "config": {}}
    )
    lines = [
        Assignment(file, names[i % 2], ("known", "new")[i % 2], 0.75, names[1 - i % 2], 0.25)
        for i, file in enumerate(collection.catalog.items.names)
    ]
    categories = [Category(name, ("known", "new")[k], k, len(lines) // 2, 0.75) for k, name in enumerate(names)]
    run.write_json(run.categories_file, category_rows(categories))
    run.write_text(run.assignments_file, assignments_csv(lines))
    return Discovery(Run.open(folder))


def paint(path: Path, seed: int) -> None:
    pixels = np.random.default_rng(seed).integers(0, 255, (60, 120, 3), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


@pytest.fixture
def boxes(tmp_path: Path) -> Discovery:
    """Two images with two boxes each, in fractions."""
    for i in range(2):
        paint(tmp_path / "data" / "cam1" / f"{i}.png", i)
    found = [{"category": "1", "conf": 0.9, "bbox": [left, 0.1, 0.4, 0.8]} for left in (0.05, 0.55)]
    images = [{"file": f"cam1/{i}.png", "detections": found} for i in range(2)]
    path = tmp_path / "data" / "md.json"
    path.write_text(json.dumps({"detection_categories": {"1": "animal"}, "images": images}))
    return write_run(tmp_path / "run", open_data(path), path)


@pytest.fixture
def archive(tmp_path: Path) -> Discovery:
    """Four images in a tar file."""
    path = tmp_path / "shard.tar"
    with tarfile.open(path, "w") as tar:
        for i in range(4):
            paint(tmp_path / f"{i}.png", i)
            tar.add(tmp_path / f"{i}.png", f"{i}.png")
    return write_run(tmp_path / "run", open_data(path), path)


def test_boxes_are_sorted_as_the_crops_that_the_model_saw(boxes: Discovery, tmp_path: Path) -> None:
    for mode in ("symlink", "move"):
        with raises(ConfigError, "only-copy"):
            plan_run(boxes.run, tmp_path / "out", mode)
    plan = plan_run(boxes.run, tmp_path / "out", "copy")
    assert sort_images(plan, advance=quiet) == 4
    assert sort_images(plan, advance=quiet) == 0
    assert sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.png")) == [
        "fox/0-1.png",
        "fox/1-1.png",
        "new-01/0-2.png",
        "new-01/1-2.png",
    ]
    items = open_data(boxes.run.config()["data"]).catalog.items
    with Image.open(tmp_path / "out" / "fox" / "0-1.png") as image:
        assert image.tobytes() == items.open(0).tobytes()
    (tmp_path / "out" / "fox" / "0-1.png").write_text("precious")
    with raises(RunError, "exists"):
        sort_images(plan, advance=quiet)


def test_images_of_an_archive_are_sorted_as_they_are(archive: Discovery, tmp_path: Path) -> None:
    plan = plan_run(archive.run, tmp_path / "out", "copy")
    assert sort_images(plan, advance=quiet) == 4
    assert (tmp_path / "out" / "new-01" / "3.png").read_bytes() == (tmp_path / "3.png").read_bytes()
    rows = json.loads(archive.export(tmp_path / "c.json", format="coco").read_text())["annotations"]
    assert [row["bbox"] for row in rows] == [[0, 0, 120, 60]] * 4


def test_images_of_a_parquet_file_are_sorted_with_the_suffix_of_their_format(tmp_path: Path) -> None:
    for i in range(4):
        paint(tmp_path / f"{i}.png", i)
    content = [(tmp_path / f"{i}.png").read_bytes() for i in range(4)]
    pq.write_table(pa.table({"image": content, "species": ["fox", None, "fox", None]}), tmp_path / "x.parquet")
    collection = open_data(tmp_path / "x.parquet")
    run = write_run(tmp_path / "run", collection, tmp_path / "x.parquet").run
    with raises(ConfigError, "only-copy"):
        plan_run(run, tmp_path / "out", "move")
    assert sort_images(plan_run(run, tmp_path / "out", "copy"), advance=quiet) == 4
    assert (tmp_path / "out" / "new-01" / "0000003.png").read_bytes() == content[3]


def test_boxes_keep_their_places(boxes: Discovery, tmp_path: Path) -> None:
    content = json.loads(boxes.export(tmp_path / "c.json", format="coco").read_text())
    assert [row["file_name"] for row in content["images"]] == ["cam1/0.png", "cam1/1.png"]
    assert [row["bbox"] for row in content["annotations"][:2]] == [[6, 6, 48, 48], [66, 6, 48, 48]]
    again = open_data(tmp_path / "c.json", image_folder=tmp_path / "data").catalog  # as data of the next run
    assert list(again.items.names) == [line.file for line in boxes.assignments]
    tasks = json.loads(boxes.export(tmp_path / "ls.json", format="labelstudio").read_text())
    assert [task["data"]["newkind_file"] for task in tasks] == ["cam1/0.png", "cam1/1.png"]
    region = tasks[0]["predictions"][0]["result"][1]
    assert region["id"] == "2"
    assert region["value"]["rectanglelabels"] == ["new-01"]
    assert region["value"]["x"] == pytest.approx(55)


def test_features_have_no_images(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", features=np.eye(4), labels=["a", "b", "", ""])
    run = write_run(tmp_path / "run", open_data(tmp_path / "f.npz"), tmp_path / "f.npz")
    with raises(RunError, "no-files"):
        plan_run(run.run, tmp_path / "out", "copy")
    assert len(run.export(tmp_path / "a.csv").read_text().splitlines()) == 5
