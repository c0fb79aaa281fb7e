"""`newkind predict` of tables, boxes and groups: one result per input, in order."""

import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import newkind as package
from error_codes import raises
from newkind.data.items import Features, FileImages
from newkind.errors import ConfigError, DataError
from newkind.export.onnx_model import list_images
from newkind.pipeline.predict_inputs import open_inputs, read_inputs
from newkind.pipeline.predict_parts import open_parts
from newkind.reading import ReadingConfig

TINY = {"backbone": "vit_tiny_patch16_224", "random_weights": True, "image_size": 32, "device": "cpu"}


def test_images_of_a_burst_share_a_category(newkind, fails, shapes: Path, tmp_path: Path) -> None:
    run = package.discover(shapes, tmp_path / "run", n_categories=4, effort="quick", report=False, **TINY)
    names = [f"img/{kind}{i:02d}.png" for kind in ("red", "grey", "grey", "green") for i in range(4)]
    names.insert(3, "img/gone.png")
    frame = pd.DataFrame({"Photo": names, "burst": np.arange(len(names)) % 4, "species": "NA"})
    frame.to_csv(shapes / "new photos.csv", sep=";", index=False)
    table = (tmp_path / "run", shapes / "new photos.csv")
    alone = pd.read_csv(io.StringIO(newkind("predict", *table, "--device", "cpu").stdout))
    done = newkind("predict", *table, "--group-column", "Burst", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    together = pd.read_csv(io.StringIO(done.stdout))
    for found in (alone, together):
        assert list(found["file"]) == names
        assert list(np.flatnonzero(found["status"] == "unreadable")) == [3]
    bursts = together[together["status"] != "unreadable"].groupby(frame["burst"])
    assert bursts["category"].nunique().max() == 1
    assert alone.groupby(frame["burst"])["category"].nunique().max() > 1
    expected = run.predict([shapes / name for name in names], groups=frame["burst"])
    assert list(together["category"].fillna("")) == [line.category for line in expected]
    fails("needs-file", "predict", *table, "--group-column", "burst", "--out", f"{tmp_path}/parts/")


def test_a_list_keeps_its_order(pile: Path, tmp_path: Path) -> None:
    names = [str(pile / "loose.bmp"), "gone.jpg", str(pile / "apple" / "0.jpg")]
    (tmp_path / "list.txt").write_text("\n".join(names))
    assert list(read_inputs([tmp_path / "list.txt"]).names) == names
    assert list(list_images([tmp_path / "list.txt"]).names) == names


def test_boxes_of_a_folder_and_of_a_table(pile: Path) -> None:
    """Names of a detector's file start from the folder of the images."""
    box = {"category": "1", "conf": 0.9, "bbox": [0.1, 0.1, 0.5, 0.5]}
    images = [{"file": "apple/0.jpg", "detections": [box, box]}, {"file": "loose.bmp", "detections": []}]
    boxes = pile / "found.json"
    boxes.write_text(json.dumps({"images": images, "detection_categories": {"1": "animal"}, "info": {}}))
    found = open_inputs([pile], ReadingConfig(boxes=boxes))
    assert list(found.items.names) == ["apple/0.jpg#1", "apple/0.jpg#2"]
    assert len(found.skipped) == 8
    (pile / "t.csv").write_text("file,burst\nloose.bmp,b\napple/0.jpg,a\n")
    found = open_inputs([pile / "t.csv"], ReadingConfig(boxes=boxes, group_column="burst"))
    assert list(found.items.names) == ["apple/0.jpg#1", "apple/0.jpg#2"]
    assert found.groups is not None
    assert found.groups[0] == found.groups[1]


def test_features_without_labels(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.eye(3, dtype=np.float32))
    items = read_inputs([tmp_path / "x.npy"])
    assert isinstance(items, Features)
    assert len(items) == 3
    np.save(tmp_path / "one.npy", np.float32(1))
    with raises(DataError, "array-shape"):
        read_inputs([tmp_path / "one.npy"])


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("a,b\n1,2\n", "missing-column"),
        ("file,label\n", "empty-table"),
        ("", "missing-column"),
        ('"', "not-csv"),
    ],
)
def test_bad_tables(tmp_path: Path, content: str, code: str) -> None:
    (tmp_path / "t.csv").write_text(content)
    with raises(DataError, code):
        read_inputs([tmp_path / "t.csv"])


def test_inputs_that_do_not_go_together(pile: Path) -> None:
    (pile / "t.csv").write_text("file\nloose.bmp\n")
    with raises(DataError, "mixed-inputs"):
        read_inputs([pile / "t.csv", pile / "loose.bmp"])
    assert len(read_inputs([pile / "t.csv", pile / "loose.bmp"], missing_ok=True)) == 2
    for places in ([pile / "loose.bmp", pile / "apple"], [pile / "loose.bmp"]):
        with raises(ConfigError, "unused-option"):
            open_inputs(places, ReadingConfig(group_column="x"))
    with raises(ConfigError, "needs-file"):
        open_parts([pile / "t.csv"], ReadingConfig(group_column="x"))
    with raises(DataError, "missing-column"):
        open_inputs([pile / "t.csv"], ReadingConfig(group_column="x"))
    assert isinstance(read_inputs([pile / "t.csv"]), FileImages)
