"""Damaged datasets: the error names the file, and the line where there is one."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from official_layouts import touch, write_aircraft, write_cars, write_cub, write_cub_lists, write_herbarium
from scipy.io import savemat

from error_codes import raises
from newkind.data.benchmarks import load_benchmark
from newkind.errors import DataError


@pytest.fixture(scope="module")
def cub_images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """CUB's training images, written once: making 200 folders per test takes longer than reading them."""
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
    """Replace a line (counted from 1) by `text`, or remove it."""
    lines = path.read_text().splitlines()
    lines[line - 1 : line] = [] if text is None else [text]
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("file", "line", "text"),
    [
        ("images.txt", 5, "5"),
        ("images.txt", 5, "4 001.Bird/a.jpg"),
        ("image_class_labels.txt", 2, "2 201"),
        pytest.param("image_class_labels.txt", 2, "2 " + "9" * 5000, id="long"),
        ("image_class_labels.txt", 2, "2 0"),
        ("image_class_labels.txt", 2, "2 ²"),
        ("train_test_split.txt", 3, "3 2"),
        ("classes.txt", 7, "8b 007.Bird"),
    ],
)
def test_a_malformed_line_is_named(cub: Path, file: str, line: int, text: str) -> None:
    edit(cub / "train_test_split.txt", 2, "2 1")  # image 2's class is only read if it is a training image
    edit(cub / file, line, text)
    with raises(DataError, "damaged-dataset") as caught:
        load_benchmark("cub", cub)
    assert caught.value.facts == {"path": str(cub / file), "line": line}


@pytest.mark.parametrize(
    ("file", "line", "code"),
    [
        ("image_class_labels.txt", 2, "damaged-dataset"),
        ("train_test_split.txt", 3, "damaged-dataset"),
        ("classes.txt", 200, "class-count"),
    ],
)
def test_a_missing_line_is_an_error(cub: Path, file: str, line: int, code: str) -> None:
    edit(cub / "train_test_split.txt", 2, "2 1")
    edit(cub / file, line, None)
    with raises(DataError, code) as caught:
        load_benchmark("cub", cub)
    assert caught.value.facts["path"] == str(cub / file)


@pytest.mark.parametrize(
    "name", ["../outside.jpg", "/etc/passwd", "/outside.jpg", "001.Bird_0/../../../outside.jpg", "new\x1b/a.jpg"]
)
def test_a_list_that_names_a_file_elsewhere_is_refused(cub: Path, name: str) -> None:
    touch(cub, ["outside.jpg"])
    edit(cub / "images.txt", 9, f"9 {name}")
    edit(cub / "train_test_split.txt", 9, "9 1")
    with raises(DataError, "missing-images") as caught:
        load_benchmark("cub", cub)
    assert caught.value.facts["images"] == [name]
    assert "\x1b" not in str(caught.value)


def test_missing_pieces_are_named(tmp_path: Path) -> None:
    training = write_cub(tmp_path)
    (tmp_path / "images" / training[17]).unlink()
    (tmp_path / "images" / training[40]).unlink()
    with raises(DataError, "missing-images") as caught:
        load_benchmark("cub", tmp_path)
    assert caught.value.facts["images"] == [training[17], training[40]]
    shutil.rmtree(tmp_path / "images")
    with raises(DataError, "damaged-dataset") as caught:
        load_benchmark("cub", tmp_path)
    assert caught.value.facts["path"] == str(tmp_path / "images")
    (tmp_path / "image_class_labels.txt").unlink()
    with raises(DataError, "damaged-dataset") as caught:
        load_benchmark("cub", tmp_path)
    assert caught.value.facts["path"] == str(tmp_path / "image_class_labels.txt")
    (tmp_path / "classes.txt").write_bytes(b"1 \xff\n")
    with raises(DataError, "damaged-dataset") as caught:
        load_benchmark("cub", tmp_path)
    assert caught.value.facts["path"] == str(tmp_path / "classes.txt")


def test_a_list_that_is_a_pipe_is_refused(cub: Path) -> None:
    (cub / "classes.txt").unlink()
    os.mkfifo(cub / "classes.txt")
    with raises(DataError, "damaged-dataset"):
        load_benchmark("cub", cub)


def test_an_image_that_is_listed_twice_is_refused(cub: Path) -> None:
    rows = (cub / "images.txt").read_text().splitlines()
    for number in (1, 2):
        edit(cub / "images.txt", number, f"{number} {rows[0].split()[1]}")
        edit(cub / "train_test_split.txt", number, f"{number} 1")
    with raises(DataError, "listed-twice"):
        load_benchmark("cub", cub)


def test_a_class_without_images_is_named(cub: Path) -> None:
    rows = (cub / "image_class_labels.txt").read_text().splitlines()
    (cub / "image_class_labels.txt").write_text(
        "\n".join(r.split()[0] + " 1" if r.endswith(" 200") else r for r in rows)
    )
    with raises(DataError, "empty-class") as caught:
        load_benchmark("cub", cub)
    assert caught.value.facts["classes"] == ["200.Bird_199"]


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
        with raises(DataError, "damaged-dataset"):
            load_benchmark("stanford_cars", tmp_path)
    savemat(annotations, {"annotations": np.arange(3)})
    with raises(DataError, "damaged-dataset"):
        load_benchmark("stanford_cars", tmp_path)
    savemat(annotations, {"other": np.arange(3)})
    with raises(DataError, "damaged-dataset"):
        load_benchmark("stanford_cars", tmp_path)
    annotations.write_bytes(good)
    (tmp_path / "cars_train" / "00003.jpg").unlink()
    with raises(DataError, "missing-images") as caught:
        load_benchmark("stanford_cars", tmp_path)
    assert caught.value.facts["images"] == ["00003.jpg"]
    savemat(tmp_path / "devkit" / "cars_meta.mat", {"class_names": np.array(["one", "two"], dtype=object)})
    with raises(DataError, "class-count"):
        load_benchmark("stanford_cars", tmp_path)
    (tmp_path / "devkit" / "cars_meta.mat").unlink()
    with raises(DataError, "damaged-dataset") as caught:
        load_benchmark("stanford_cars", tmp_path)
    assert caught.value.facts["path"] == str(tmp_path / "devkit" / "cars_meta.mat")


def test_broken_aircraft(tmp_path: Path) -> None:
    write_aircraft(tmp_path)
    list_file = tmp_path / "data" / "images_variant_trainval.txt"
    first = list_file.read_text().splitlines()[0].split()[0]
    (tmp_path / "data" / "images" / f"{first}.jpg").unlink()
    with raises(DataError, "missing-images") as caught:
        load_benchmark("fgvc_aircraft", tmp_path)
    assert caught.value.facts["images"] == [f"{first}.jpg"]
    edit(list_file, 1, None)
    with raises(DataError, "class-count"):
        load_benchmark("fgvc_aircraft", tmp_path)


def test_broken_folders(tmp_path: Path) -> None:
    write_herbarium(tmp_path)
    (tmp_path / "small-train" / "5" / "0.jpg").unlink()
    with raises(DataError, "empty-class"):
        load_benchmark("herbarium_19", tmp_path)
    (tmp_path / "small-train" / "5").rmdir()
    with raises(DataError, "class-count"):
        load_benchmark("herbarium_19", tmp_path)
    (tmp_path / "train").mkdir()
    with raises(DataError, "class-count") as caught:
        load_benchmark("imagenet_100", tmp_path)
    assert (caught.value.facts["found"], caught.value.facts["expected"]) == (0, 1000)
