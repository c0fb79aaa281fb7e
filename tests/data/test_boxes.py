"""Boxes as items: MegaDetector's layouts, COCO and COCO Camera Traps, crops, and files that are wrong."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from error_codes import raises
from newkind.data import BoxImages, inspect_collection, open_data, read_boxes
from newkind.data.boxes import crop_corners
from newkind.data.catalog import find_obstacles
from newkind.errors import BrokenImage, DataError, NewkindError

WIDTH, HEIGHT = 100, 50


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Three images: red on the left, blue on the right."""
    pixels = np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8)
    pixels[:, :50, 0], pixels[:, 50:, 2] = 255, 255
    (tmp_path / "img").mkdir()
    for i in range(3):
        pixels[0, 0, 1] = i  # no duplicates
        Image.fromarray(pixels).save(tmp_path / "img" / f"{i}.png")
    return tmp_path


def write(folder: Path, content: Any, name: str = "boxes.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(content))
    return path


def batch(*images: dict[str, Any]) -> dict[str, Any]:
    """Layout of MegaDetector's Python package."""
    return {
        "info": {"format_version": "1.4"},
        "detection_categories": {"1": "animal", "2": "person", "3": "vehicle"},
        "images": list(images),
    }


def detection(
    left: float, top: float, width: float, height: float, *, conf: float = 0.9, category: str = "1"
) -> dict[str, Any]:
    return {"category": category, "conf": conf, "bbox": [left, top, width, height]}


LEFT, RIGHT = (0.0, 0.0, 0.4, 0.8), (0.6, 0.0, 0.4, 0.8)  # left, top, width, height in fractions
LAYOUTS = {
    "batch": batch(
        {"file": "img/0.png", "detections": [detection(*LEFT), detection(*RIGHT, conf=0.5), detection(*LEFT, conf=0.1)]},
        {"file": "img\\1.png", "detections": [detection(*RIGHT), detection(*LEFT, category="2")]},
        {"file": "img/2.png", "detections": []},
        {"file": "img/3.png", "failure": "image access failure", "detections": None},
    ),
    "list": [
        {"file": "img/0.png", "detections": [
            {"category": "animal", "confidence": 0.9, "bbox": [0, 0, 40, 40]},
            {"category": "animal", "confidence": 0.5, "bbox": [60, 0, 100, 40]},
            {"category": "animal", "confidence": 0.1, "bbox": [0, 0, 40, 40]}]},
        {"file": "img/1.png", "detections": [
            {"category": "animal", "confidence": 0.9, "bbox": [60.0, 0.0, 100.0, 40.0]},
            {"category": "person", "confidence": 0.9, "bbox": [0, 0, 40, 40]}]},
        {"file": "img/2.png", "detections": []},
    ],
    "lists": {
        "annotations": [
            {"img_id": "img/0.png", "category": [0, 0, 0], "confidence": [0.9, 0.5, 0.1],
             "bbox": [[0, 0, 40, 40], [60, 0, 100, 40], [0, 0, 40, 40]]},
            {"img_id": "img/1.png", "category": [0, 1], "confidence": [0.9, 0.9], "bbox": [[60, 0, 100, 40], [0, 0, 40, 40]]},
            {"img_id": "img/2.png", "category": [], "confidence": [], "bbox": []},
        ],
        "categories": {"0": "animal", "1": "person"},
    },
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_megadetector(photos: Path, layout: str) -> None:
    collection = open_data(write(photos, LAYOUTS[layout]))
    items = collection.catalog.items
    assert isinstance(items, BoxImages)
    assert list(items.names) == ["img/0.png#1", "img/0.png#2", "img/1.png#1"]
    assert [np.asarray(items.open(i)).mean(axis=(0, 1)).argmax() for i in range(3)] == [0, 2, 2]  # red, blue, blue
    assert not collection.catalog.is_labelled.any()
    assert list(collection.metadata["box_confidence"]) == ["0.9", "0.5", "0.9"]
    assert list(collection.metadata["box_category"]) == ["animal"] * 3
    assert {item.name for item in collection.skipped} >= {"img/2.png"}
    assert {item.code for item in collection.skipped} == {"no-box"}
    assert len(collection.notes) == 2  # boxes of persons, and below the confidence
    assert len(items.content(0)) > len(items.source.content(0))
    assert items.content(0) != items.content(1)


def test_options_of_boxes(photos: Path) -> None:
    path = write(photos, LAYOUTS["batch"])
    assert len(open_data(path, min_box_confidence=0.05).catalog) == 4
    assert list(open_data(path, box_category="person").catalog.items.names) == ["img/1.png#2"]
    assert len(open_data(path, box_category="all").catalog) == 4
    assert open_data(path, box_margin=0).catalog.items.open(0).size == (40, 40)
    with raises(DataError, "missing-category"):
        open_data(path, box_category="fish")
    inspection = inspect_collection(open_data(path))
    assert inspection.formats == {"box": 3}
    assert not inspection.duplicates


def test_labels_from_a_table_and_boxes_from_a_detector(photos: Path) -> None:
    boxes = write(photos, LAYOUTS["batch"])
    (photos / "t.csv").write_text("file,species,site,burst\nimg/0.png,fox,A,1\nimg/1.png,,B,2\nimg/2.png,hare,A,3\n")
    collection = open_data(photos / "t.csv", boxes=boxes, group_column="burst")
    assert list(collection.catalog.items.names) == ["img/0.png#1", "img/0.png#2", "img/1.png#1"]
    assert collection.catalog.labels.tolist() == [0, 0, -1]
    assert collection.catalog.class_names == ("fox",)  # the hare has no box
    assert [obstacle.code for obstacle in find_obstacles(collection.catalog.labels, ("fox", "hare"))] == [
        "single-class"
    ]
    assert collection.catalog.groups is not None
    assert collection.catalog.groups.tolist() == [0, 0, 1]
    assert list(collection.metadata["site"]) == ["A", "A", "B"]
    assert ("img/2.png", "no-box") in {(item.name, item.code) for item in collection.skipped}
    again = open_data(collection.location, **collection.reading)
    assert list(again.catalog.items.names) == list(collection.catalog.items.names)


def test_a_class_without_a_box_is_a_new_one(photos: Path) -> None:
    boxes = write(photos, LAYOUTS["batch"])
    (photos / "t.csv").write_text("file,label,truth\nimg/0.png,fox,fox\nimg/1.png,,cat\nimg/2.png,cat,cat\n")
    found = open_data(photos / "t.csv", boxes=boxes)
    assert found.truth is not None
    assert (found.catalog.class_names, found.truth.class_names, found.truth.n_old) == (("fox",), ("fox", "cat"), 1)
    assert (found.catalog.labels.tolist(), found.truth.labels.tolist()) == ([0, 0, -1], [0, 0, 1])


def test_absolute_names_of_a_detector(photos: Path) -> None:
    files = [{"file": str(photos / "img" / f"{i}.png"), "detections": [detection(*LEFT)]} for i in range(3)]
    (photos / "t.csv").write_text("file,species\nimg/0.png,fox\nimg/1.png,\n")
    found = open_data(photos / "t.csv", boxes=write(photos, batch(*files)))
    assert list(found.catalog.items.names) == ["img/0.png#1", "img/1.png#1"]


def coco(*annotations: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "images": [
            {
                "id": f"x{i}",
                "file_name": f"img/{i}.png",
                "width": WIDTH,
                "height": HEIGHT,
                "seq_id": f"s{i // 2}",
                "location": "L",
            }
            for i in range(3)
        ],
        "annotations": [{"id": i, **annotation} for i, annotation in enumerate(annotations)],
        "categories": [{"id": 1, "name": "fox"}, {"id": 2, "name": "hare"}, {"id": 3, "name": "unknown"}],
    } | more


def test_coco(photos: Path) -> None:
    content = coco(
        {"image_id": "x0", "category_id": 1, "bbox": [0, 0, 40, 40]},
        {"image_id": "x0", "category_id": 3, "bbox": [60, 0, 40, 40]},
        {"image_id": "x1", "category_id": 2, "bbox": [60, 0, 40, 40], "score": 0.9},
        {"image_id": "x1", "category_id": 2, "bbox": [60, 0, 40, 40], "score": 0.1},
        {"image_id": "x1", "category_id": 2, "bbox": [0, 0, 90, 40], "iscrowd": 1},
    )
    collection = open_data(write(photos, content))
    assert list(collection.catalog.items.names) == ["img/0.png#1", "img/0.png#2", "img/1.png#1"]
    assert collection.catalog.class_names == ("fox", "hare")
    assert collection.catalog.labels.tolist() == [0, -1, 1]
    with raises(DataError, "group-conflict"):
        open_data(write(photos, content), group_column="location")
    assert list(collection.metadata["annotation_id"]) == ["0", "1", "2"]


def test_coco_is_relative_to_the_size_it_states(photos: Path) -> None:
    """A small copy of the images, as LILA offers them, has the same boxes."""
    Image.open(photos / "img" / "0.png").resize((50, 25)).save(photos / "img" / "0.png")
    content = coco({"image_id": "x0", "category_id": 1, "bbox": [60, 0, 40, 40]})
    items = open_data(write(photos, content), box_margin=0).catalog.items
    assert items.open(0).size == (20, 20)
    assert np.asarray(items.open(0)).mean(axis=(0, 1)).argmax() == 2


def test_coco_camera_traps_without_boxes(photos: Path) -> None:
    content = coco(
        {"image_id": "x0", "category_id": 1},
        {"image_id": "x1", "category_id": 3, "sequence_level_annotation": True},
    )
    collection = open_data(write(photos, content), group_column="seq_id")
    assert list(collection.catalog.items.names) == ["img/0.png", "img/1.png", "img/2.png"]
    assert collection.catalog.labels.tolist() == [0, -1, -1]
    assert collection.catalog.groups is not None
    assert collection.catalog.groups.tolist() == [0, 0, 1]
    assert list(collection.metadata) == ["seq_id", "location"]
    several = coco(
        {"image_id": "x0", "category_id": 1}, {"image_id": "x0", "category_id": 2}, {"image_id": "x1", "category_id": 1}
    )
    assert [item.code for item in open_data(write(photos, several)).skipped] == ["several-classes"]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ({}, "bad-boxes"),
        (3, "bad-boxes"),
        ({"images": "x"}, "bad-boxes"),
        ({"images": "x", "detection_categories": {}}, "bad-boxes"),
        ([], "no-images"),
        ([3], "bad-boxes"),
        ([{"file": 3}], "bad-boxes"),
        ([{"detections": []}], "bad-boxes"),
        ([{"file": "img/0.png", "detections": 5}], "bad-boxes"),
        ([{"file": "img/0.png", "detections": [5]}], "bad-boxes"),
        (batch({"file": "img/0.png", "detections": [{"conf": 0.9, "bbox": [0, 0, 1]}]}), "bad-box"),
        (batch({"file": "img/0.png", "detections": [{"conf": 0.9, "bbox": [0, 0, 1, "1"]}]}), "bad-box"),
        (batch({"file": "img/0.png", "detections": [{"conf": 0.9, "bbox": [0, 0, 1, 10**400]}]}), "bad-box"),
        (batch({"file": "img/0.png", "detections": [{"conf": 0.9, "bbox": [0, 0, 1, float("nan")]}]}), "bad-box"),
        (batch({"file": "img/0.png", "detections": [{"conf": "high", "bbox": [0, 0, 1, 1]}]}), "bad-box"),
        (batch({"file": "img/0.png", "detections": [{"conf": 90, "bbox": [0, 0, 1, 1]}]}), "bad-box"),
        (batch({"file": "img/0.png", "detections": [{"bbox": [0, 0, 1, 1]}]}), "bad-box"),
        (batch({"file": "img/0.png", "detections": [detection(2, 2, 1, 1)]}), "no-images"),
        (batch({"file": "img/0.png", "detections": [detection(0, 0, 0, 1)]}), "no-images"),
        (batch({"file": "img/9.png", "detections": [detection(*LEFT)]}), "no-images"),
        ({"annotations": [{"img_id": "img/0.png", "bbox": [[0, 0, 1, 1]], "category": [], "confidence": [1]}]}, "bad-boxes"),
        (coco({"image_id": "x9", "category_id": 1, "bbox": [0, 0, 9, 9]}), "unknown-image"),
        (coco({"image_id": "x0", "category_id": 9, "bbox": [0, 0, 9, 9]}), "unknown-category"),
        (coco({"image_id": "x0", "category_id": 1, "bbox": [0, 0, 9]}), "bad-box"),
        (coco({"image_id": "x0", "category_id": 1, "bbox": [0, 0, 9, 9], "score": 7}), "bad-box"),
        (coco({"image_id": "x0", "category_id": 1, "bbox": [500, 0, 9, 9]}), "no-images"),
        (coco(images=[{"id": 1, "file_name": "img/0.png"}, {"id": 1, "file_name": "img/1.png"}]), "bad-boxes"),
        (coco(images=[{"id": 1}]), "bad-boxes"),
        (coco(categories=[{"id": 1}]), "bad-boxes"),
        (coco(annotations={"x": 1}), "bad-boxes"),
        (coco(annotations=[7]), "unknown-image"),
    ],
)  # fmt: skip
def test_bad_files(photos: Path, content: Any, code: str) -> None:
    with raises(DataError, code):
        read_boxes(write(photos, content))


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 100_000, b"\xff\xfe\x00", b'{"images": [}'])
def test_files_that_are_no_json(photos: Path, content: bytes) -> None:
    (photos / "x.json").write_bytes(content)
    with raises(DataError, "unreadable"):
        read_boxes(photos / "x.json")


def test_boxes_of_other_data(photos: Path) -> None:
    (photos / "t.csv").write_text("file,species\nimg/0.png,fox\nimg/1.png,\n")
    other = write(photos, batch({"file": "elsewhere/7.png", "detections": [detection(*LEFT)]}))
    with raises(DataError, "no-boxes"):
        open_data(photos / "t.csv", boxes=other)
    np.savez(photos / "x.npz", features=np.eye(2), labels=["a", ""])
    with raises(DataError, "no-files"):
        open_data(photos / "x.npz", boxes=other)
    with raises(DataError, "unreadable"):
        open_data(photos / "t.csv", boxes=photos / "gone.json")
    empty = write(photos, batch({"file": "img/0.png", "detections": []}))
    with raises(DataError, "no-images"):
        open_data(photos / "t.csv", boxes=empty)


def test_boxes_outside_of_the_image_are_skipped(photos: Path) -> None:
    pixels = [{"category": "animal", "confidence": 0.9, "bbox": box} for box in ([10, 10, 40, 40], [90, 40, 300, 300], [200, 0, 300, 40], [0, 0, 1, 1])]  # fmt: skip
    collection = open_data(write(photos, [{"file": "img/0.png", "detections": pixels}]), box_margin=0)
    items = collection.catalog.items
    assert items.open(1).size == (10, 10)  # only the part inside
    with raises(BrokenImage, "box-outside"):
        items.open(2)
    with raises(BrokenImage, "image-too-small"):
        items.open(3)
    assert {item.code for item in inspect_collection(collection).skipped} == {"box-outside", "image-too-small"}
    fractions = batch({"file": "img/0.png", "detections": [detection(*LEFT), detection(1.2, 0, 0.1, 0.1)]})
    found = open_data(write(photos, fractions))
    assert [(item.name, item.code) for item in found.skipped] == [("img/0.png#2", "box-outside")]


SIDES = st.floats(-200, 400, allow_nan=False)


@settings(max_examples=200, deadline=None)
@given(
    box=st.tuples(SIDES, SIDES, SIDES, SIDES),
    size=st.tuples(st.integers(1, 300), st.integers(1, 300)),
    margin=st.floats(0, 10),
)
def test_crops_lie_in_the_image_and_contain_the_box(
    box: tuple[float, ...], size: tuple[int, int], margin: float
) -> None:
    found = crop_corners(box, size, margin)
    inside = [(max(box[i], 0), min(box[i + 2], size[i])) for i in (0, 1)]
    if any(high <= low for low, high in inside):
        assert found is None
        return
    assert found is not None
    for i, (low, high) in enumerate(inside):
        assert 0 <= found[i] <= low
        assert high <= found[i + 2] <= size[i]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.sampled_from(["img/0.png", "x0", "1", "animal", ""]),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(["images", "annotations", "categories", "detections", "file", "file_name", "img_id", "id", "image_id", "category_id", "bbox", "conf"]),
        inner,
        max_size=6,
    ),
    max_leaves=25,
)  # fmt: skip


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=VALUES)
def test_any_json_gives_a_collection_or_a_clear_error(photos: Path, content: Any) -> None:
    try:
        collection = read_boxes(write(photos, content))
    except NewkindError as error:
        assert error.code not in ("data", "error")  # noqa: PT017
        return
    assert len(collection.catalog) > 0


def test_boxes_that_cannot_be_used_are_counted(photos: Path) -> None:
    """The error says why none is left, and which option may help."""
    (photos / "t.csv").write_text("file,species\nimg/0.png,fox\nimg/1.png,\n")
    boxes = write(photos, batch({"file": "img/0.png", "detections": [detection(*LEFT), detection(2, 2, 0.1, 0.1)]}))
    with raises(DataError, "no-images") as caught:
        open_data(photos / "t.csv", boxes=boxes, min_box_confidence=0.99)
    assert "`min_box_confidence`" in caught.value.fix
    outside = write(photos, batch({"file": "img/0.png", "detections": [detection(2, 2, 0.1, 0.1)]}))
    with raises(DataError, "no-images") as caught:
        open_data(photos / "t.csv", boxes=outside)
    assert "1 box" in caught.value.what
