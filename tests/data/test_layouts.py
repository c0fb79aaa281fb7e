"""Broken datasets: the message names the file, and the line where there is one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from official_layouts import touch, write_aircraft, write_cars, write_cub, write_cub_lists, write_herbarium
from scipy.io import savemat

from newkind.data.benchmarks import load_benchmark
from newkind.errors import DataError


@pytest.fixture(scope="module")
def cub_images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """CUB's training images, written once: making 200 folders for every broken line takes longer than reading it."""
    root = tmp_path_factory.mktemp("cub")
    write_cub(root)
    touch(root, ["outside.jpg", "images/outside.jpg"])
    yield root / "images"
    shutil.rmtree(root)


@pytest.fixture
def cub(tmp_path: Path, cub_images: Path) -> Path:
    """A CUB whose list files may be changed."""
    write_cub_lists(tmp_path)
    (tmp_path / "images").symlink_to(cub_images, target_is_directory=True)
    return tmp_path


def edit(path: Path, line: int, text: str | None) -> None:
    """Puts `text` in place of a line (1-based), or takes the line out."""
    lines = path.read_text().splitlines()
    lines[line - 1 : line] = [] if text is None else [text]
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("file", "line", "text", "message"),
    [
        ("images.txt", 5, "5", r"images\.txt, line 5: expected two fields, got '5'"),
        ("images.txt", 5, "4 001.Bird/a.jpg", r"images\.txt, line 5: '4' is listed already in line 4"),
        (
            "image_class_labels.txt",
            2,
            "2 201",
            r"image_class_labels\.txt, line 2: expected a class number from 1 to 200, got '201'",
        ),
        pytest.param(
            *("image_class_labels.txt", 2, "2 " + "9" * 5000, r"image_class_labels\.txt, line 2: .* got '999"),
            id="long",
        ),
        ("image_class_labels.txt", 2, "2 0", r"image_class_labels\.txt, line 2: .* got '0'"),
        ("image_class_labels.txt", 2, "2 ²", r"image_class_labels\.txt, line 2: .* got '²'"),
        ("image_class_labels.txt", 2, None, r"image_class_labels\.txt: no line for image '2'"),
        ("train_test_split.txt", 3, "3 2", r"train_test_split\.txt, line 3: expected 0 or 1, got '2'"),
        ("train_test_split.txt", 3, None, r"train_test_split\.txt: no line for image '3'"),
        ("classes.txt", 200, None, r"classes\.txt: 199 classes, expected 200"),
        ("classes.txt", 7, "8b 007.Bird", r"classes\.txt, line 7: expected class number 7, got '8b'"),
    ],
)
def test_a_malformed_line_is_named(cub: Path, file: str, line: int, text: str | None, message: str) -> None:
    edit(cub / "train_test_split.txt", 2, "2 1")  # image 2's class is only read if it is a training image
    edit(cub / file, line, text)
    with pytest.raises(DataError, match=message):
        load_benchmark("cub", cub)


@pytest.mark.parametrize(
    "name", ["../outside.jpg", "/etc/passwd", "/outside.jpg", "001.Bird_0/../../../outside.jpg", "new\x1b/a.jpg"]
)
def test_a_list_that_names_a_file_elsewhere_is_refused(cub: Path, name: str) -> None:
    touch(cub, ["outside.jpg"])
    edit(cub / "images.txt", 9, f"9 {name}")
    edit(cub / "train_test_split.txt", 9, "9 1")
    with pytest.raises(DataError, match=r"images\.txt, line 9: the image .* is not in") as caught:
        load_benchmark("cub", cub)
    assert "\x1b" not in str(caught.value)


def test_missing_pieces_are_named(tmp_path: Path) -> None:
    training = write_cub(tmp_path)
    (tmp_path / "images" / training[17]).unlink()
    (tmp_path / "images" / training[40]).unlink()
    with pytest.raises(
        DataError, match=rf"images\.txt, line \d+: the image {training[17]} is not in .* 1 more are missing"
    ):
        load_benchmark("cub", tmp_path)
    shutil.rmtree(tmp_path / "images")
    with pytest.raises(DataError, match=r"images: this folder cannot be listed \(No such file"):
        load_benchmark("cub", tmp_path)
    (tmp_path / "image_class_labels.txt").unlink()
    with pytest.raises(DataError, match=r"image_class_labels\.txt cannot be read \(No such file"):
        load_benchmark("cub", tmp_path)
    (tmp_path / "classes.txt").write_bytes(b"1 \xff\n")
    with pytest.raises(DataError, match=r"classes\.txt: byte 2 is not UTF-8"):
        load_benchmark("cub", tmp_path)


def test_a_list_that_is_a_pipe_is_refused(cub: Path) -> None:
    (cub / "classes.txt").unlink()
    os.mkfifo(cub / "classes.txt")
    with pytest.raises(DataError, match=r"classes\.txt is not a regular file"):
        load_benchmark("cub", cub)


def test_an_image_that_is_listed_twice_is_refused(cub: Path) -> None:
    rows = (cub / "images.txt").read_text().splitlines()
    for number in (1, 2):
        edit(cub / "images.txt", number, f"{number} {rows[0].split()[1]}")
        edit(cub / "train_test_split.txt", number, f"{number} 1")
    with pytest.raises(DataError, match=r"images\.txt, line 2: .* is listed twice"):
        load_benchmark("cub", cub)


def test_a_class_without_images_is_named(cub: Path) -> None:
    rows = (cub / "image_class_labels.txt").read_text().splitlines()
    (cub / "image_class_labels.txt").write_text(
        "\n".join(r.split()[0] + " 1" if r.endswith(" 200") else r for r in rows)
    )
    with pytest.raises(DataError, match=r"1 of 200 classes have no training image, '200\.Bird_199' for one"):
        load_benchmark("cub", cub)


def test_windows_line_ends_and_blank_lines_are_read(cub: Path) -> None:
    training = write_cub_lists(cub)
    for file in ("images.txt", "classes.txt", "train_test_split.txt", "image_class_labels.txt"):
        text = (cub / file).read_text()
        (cub / file).write_bytes((text + "\n").replace("\n", "\r\n").encode())
    assert list(load_benchmark("cub", cub).catalog.items.names) == training


def test_broken_cars(tmp_path: Path) -> None:
    write_cars(tmp_path)
    annotations = tmp_path / "devkit" / "cars_train_annos.mat"
    good = annotations.read_bytes()
    for cut in (0, 50, 128, 200, len(good) // 2):
        annotations.write_bytes(good[:cut])
        with pytest.raises(DataError, match=r"cars_train_annos\.mat"):
            load_benchmark("stanford_cars", tmp_path)
    savemat(annotations, {"annotations": np.arange(3)})
    with pytest.raises(DataError, match=r"cars_train_annos\.mat: 'annotations' has no fields"):
        load_benchmark("stanford_cars", tmp_path)
    savemat(annotations, {"other": np.arange(3)})
    with pytest.raises(DataError, match=r"cars_train_annos\.mat: it has no variable 'annotations'"):
        load_benchmark("stanford_cars", tmp_path)
    annotations.write_bytes(good)
    (tmp_path / "cars_train" / "00003.jpg").unlink()
    with pytest.raises(DataError, match=r"cars_train_annos\.mat, annotation 3: the image 00003.jpg is not in"):
        load_benchmark("stanford_cars", tmp_path)
    savemat(tmp_path / "devkit" / "cars_meta.mat", {"class_names": np.array(["one", "two"], dtype=object)})
    with pytest.raises(DataError, match=r"cars_meta\.mat: 2 classes, expected 196"):
        load_benchmark("stanford_cars", tmp_path)
    (tmp_path / "devkit" / "cars_meta.mat").unlink()
    with pytest.raises(DataError, match=r"cars_meta\.mat is missing"):
        load_benchmark("stanford_cars", tmp_path)


def test_broken_aircraft(tmp_path: Path) -> None:
    write_aircraft(tmp_path)
    list_file = tmp_path / "data" / "images_variant_trainval.txt"
    first = list_file.read_text().splitlines()[0].split()[0]
    (tmp_path / "data" / "images" / f"{first}.jpg").unlink()
    with pytest.raises(DataError, match=rf"images_variant_trainval\.txt, line 1: the image {first}\.jpg is not in"):
        load_benchmark("fgvc_aircraft", tmp_path)
    edit(list_file, 1, None)
    with pytest.raises(DataError, match=r"images_variant_trainval\.txt: 99 classes, expected 100"):
        load_benchmark("fgvc_aircraft", tmp_path)


def test_broken_folders(tmp_path: Path) -> None:
    write_herbarium(tmp_path)
    (tmp_path / "small-train" / "5" / "0.jpg").unlink()
    with pytest.raises(DataError, match="1 of 683 classes have no training image, '5' for one"):
        load_benchmark("herbarium_19", tmp_path)
    (tmp_path / "small-train" / "5").rmdir()
    with pytest.raises(DataError, match="small-train: 682 classes, expected 683"):
        load_benchmark("herbarium_19", tmp_path)
    (tmp_path / "train").mkdir()
    with pytest.raises(DataError, match=r"train: 0 classes, expected 1,000"):
        load_benchmark("imagenet_100", tmp_path)
