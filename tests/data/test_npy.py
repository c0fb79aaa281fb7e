"""Features and images in .npy files, with labels in another file."""

from pathlib import Path

import numpy as np
import pytest

from error_codes import raises
from newkind.data import ArrayImages, Features, open_data, read_npy
from newkind.errors import DataError


@pytest.fixture
def features(tmp_path: Path) -> Path:
    path = tmp_path / "features.npy"
    np.save(path, np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32))
    return path


def test_labels_in_a_text_file(features: Path) -> None:
    labels = features.with_name("labels.txt")
    labels.write_text("oak\n\nbeech\nNA\n")
    collection = open_data(features, labels=str(labels))
    assert isinstance(collection.catalog.items, Features)
    assert collection.catalog.labels.tolist() == [1, -1, 0, -1]
    again = open_data(collection.location, **collection.reading)
    assert again.catalog.labels.tolist() == [1, -1, 0, -1]


def test_labels_in_an_array(features: Path) -> None:
    labels = features.with_name("labels.npy")
    np.save(labels, np.array([0, 5, -1, 0]))
    assert read_npy(features, labels=labels).catalog.class_names == ("0", "5")


def test_labels_in_a_table(features: Path) -> None:
    labels = features.with_name("rows.csv")
    labels.write_text("path,species,truth,burst,site\n1.jpg,oak,,1,A\n2.jpg,,oak,1,B\n3.jpg,ash,,2,A\n4.jpg,,elm,2,A\n")
    collection = read_npy(features, labels=labels, group_column="burst")
    assert list(collection.catalog.items.names) == ["1.jpg", "2.jpg", "3.jpg", "4.jpg"]
    assert collection.catalog.groups is not None
    assert collection.catalog.groups.tolist() == [0, 0, 1, 1]
    assert collection.truth is not None
    assert collection.truth.class_names == ("ash", "oak", "elm")
    assert list(collection.metadata) == ["burst", "site"]


def test_images(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((2, 8, 8, 3), dtype=np.uint8))
    (tmp_path / "y.txt").write_text("a\n\n")
    assert isinstance(read_npy(tmp_path / "x.npy", labels=tmp_path / "y.txt").catalog.items, ArrayImages)


def test_bad_files(features: Path) -> None:
    folder = features.parent
    with raises(DataError, "missing-labels"):
        open_data(features)
    (folder / "short.txt").write_text("a\n")
    (folder / "rows.csv").write_text("path,colour\n1,2\n3,4\n5,6\n7,8\n")
    np.save(folder / "square.npy", np.zeros((2, 2)))
    np.save(folder / "objects.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.save(folder / "number.npy", np.float32(1))
    np.save(folder / "nan.npy", np.full((4, 2), np.nan))
    (folder / "broken.npy").write_bytes(features.read_bytes()[:-9])
    (folder / "text.npy").write_text("hello")
    np.savez(folder / "archive.npz", x=np.zeros(3))
    (folder / "archive.npz").rename(folder / "archive.npy")
    (folder / "labels.txt").write_text("a\n\nb\n\n")
    for labels, code in {
        "short.txt": "label-count",
        "rows.csv": "missing-column",
        "square.npy": "array-shape",
        "objects.npy": "unreadable",
        "gone.txt": "unreadable",
        "gone.csv": "unreadable",
    }.items():
        with raises(DataError, code):
            read_npy(features, labels=folder / labels)
    for name, code in {
        "objects.npy": "unreadable",
        "broken.npy": "unreadable",
        "text.npy": "unreadable",
        "archive.npy": "unreadable",
        "number.npy": "array-shape",
        "nan.npy": "not-finite",
        "square.npy": "label-count",
    }.items():
        with raises(DataError, code):
            read_npy(folder / name, labels=folder / "labels.txt")
