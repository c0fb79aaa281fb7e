"""Folders as Hugging Face's datasets have them: splits, and tables of metadata beside class folders."""

import os
from pathlib import Path

import pytest

from error_codes import raises
from newkind.data import open_data
from newkind.errors import DataError


def test_splits_with_class_folders(tmp_path: Path, make_image) -> None:
    for i, name in enumerate(["train/oak/1.jpg", "train/ash/2.jpg", "train/unlabelled/3.jpg", "test/oak/1.jpg"]):
        make_image(tmp_path / name, seed=i)
    collection = open_data(tmp_path)
    labels = dict(zip(collection.catalog.items.names, collection.catalog.labels.tolist(), strict=True))
    assert collection.catalog.class_names == ("ash", "oak")
    assert labels == {"test/oak/1.jpg": 1, "train/ash/2.jpg": 0, "train/oak/1.jpg": 1, "train/unlabelled/3.jpg": -1}
    assert list(collection.metadata["split"]) == ["test", "train", "train", "train"]
    assert collection.catalog.items.open(0).size == (24, 16)
    assert any("train" in note for note in collection.notes)


@pytest.mark.parametrize("table", ["metadata.csv", "metadata.jsonl", "metadata.parquet"])
def test_splits_with_tables(tmp_path: Path, make_image, table: str) -> None:
    import pandas as pd

    for split, species in (("train", ["oak", "ash"]), ("validation", ["oak", ""])):
        for i in range(2):
            make_image(tmp_path / split / f"{i}.jpg", seed=i)
        frame = pd.DataFrame(
            {"file_name": ["0.jpg", "1.jpg"], "species": species, "burst": ["1", "1" if split == "validation" else "2"]}
        )
        path = tmp_path / split / table
        if table.endswith("csv"):
            frame.to_csv(path, index=False)
        elif table.endswith("jsonl"):
            frame.to_json(path, orient="records", lines=True)
        else:
            frame.to_parquet(path)
    collection = open_data(tmp_path, group_column="burst")
    assert list(collection.catalog.items.names) == [
        "train/0.jpg",
        "train/1.jpg",
        "validation/0.jpg",
        "validation/1.jpg",
    ]
    assert collection.catalog.labels.tolist() == [1, 0, 1, -1]
    assert collection.catalog.groups is not None
    assert collection.catalog.groups.tolist() == [0, 1, 0, 0]
    assert list(collection.metadata) == ["split", "burst"]


def test_a_table_without_labels_beside_class_folders(tmp_path: Path, make_image) -> None:
    for i, name in enumerate(["oak/1.jpg", "ash/2.jpg", "unlabelled/3.jpg", "unlabelled/4.jpg"]):
        make_image(tmp_path / name, seed=i)
    (tmp_path / "metadata.csv").write_text("file_name,site,truth\noak/1.jpg,A,\nunlabelled/3.jpg,B,elm\ngone.jpg,C,\n")
    collection = open_data(tmp_path)
    assert collection.catalog.class_names == ("ash", "oak")
    assert list(collection.catalog.items.names) == ["ash/2.jpg", "oak/1.jpg", "unlabelled/3.jpg", "unlabelled/4.jpg"]
    assert list(collection.metadata["site"]) == ["", "A", "B", ""]
    assert collection.truth is not None
    assert collection.truth.class_names == ("ash", "oak", "elm")
    assert [(item.name, item.code) for item in collection.skipped] == [("gone.jpg", "missing-file")]


def labels_in(root: Path) -> dict[str, str]:
    """Class of each image, "" for unlabelled."""
    catalog = open_data(root).catalog
    names = (*catalog.class_names, "")
    return {name: names[label] for name, label in zip(catalog.items.names, catalog.labels.tolist(), strict=True)}


@pytest.mark.parametrize(
    "others",
    [
        ["val/cat/1.jpg", "val/dog/1.jpg", "unlabelled/1.jpg", "unlabelled/deep/2.jpg"],
        ["1.jpg", "2.jpg"],
        ["test/1.jpg", "test/2.jpg"],
        ["test/cat/1.jpg", "test/2.jpg", "Unknown/1.jpg", "1.jpg"],
    ],
)
def test_images_beside_splits_are_unlabelled(tmp_path: Path, make_image, others: list[str]) -> None:
    names = ["train/cat/1.jpg", "train/dog/1.jpg", *others]
    for i, name in enumerate(names):
        make_image(tmp_path / name, seed=i)
    (tmp_path / "images.tar").touch()
    (tmp_path / "2.avif").touch()
    assert labels_in(tmp_path) == {name: next((k for k in ("cat", "dog") if k in name), "") for name in names}
    collection = open_data(tmp_path)
    splits = dict(zip(collection.catalog.items.names, collection.metadata["split"], strict=True))
    assert splits == {name: name.split("/")[0] if name.startswith(("t", "v")) else "" for name in names}
    assert collection.ignored == {".tar": 1}
    assert [(item.name, item.code) for item in collection.skipped] == [("2.avif", "unsupported-format")]
    assert collection.catalog.items.open(len(names) - 1).size == (24, 16)


def test_folders_without_images_beside_splits_are_no_classes(tmp_path: Path, make_image) -> None:
    names = ["train/cat/1.jpg", "train/dog/1.jpg", "test/cat/1.jpg"]
    for i, name in enumerate(names):
        make_image(tmp_path / name, seed=i)
    (tmp_path / "annotations").mkdir()
    (tmp_path / "annotations" / "train.json").touch()
    assert labels_in(tmp_path) == {name: name.split("/")[1] for name in names}
    collection = open_data(tmp_path)
    assert collection.ignored == {".json": 1}
    assert [(item.name, item.code) for item in collection.skipped] == [("annotations", "empty-folder")]
    make_image(tmp_path / "annotations" / "1.jpg")
    assert set(labels_in(tmp_path).values()) == {"annotations", "test", "train"}


def test_an_unreadable_folder_beside_splits_is_skipped(tmp_path: Path, make_image, monkeypatch) -> None:
    make_image(tmp_path / "train" / "cat" / "1.jpg")
    (tmp_path / "private").mkdir()
    scandir = os.scandir

    def refuse(folder):
        if os.path.basename(folder) == "private":
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    assert labels_in(tmp_path) == {"train/cat/1.jpg": "cat"}
    assert ("private", "unreadable") in [(item.name, item.code) for item in open_data(tmp_path).skipped]


@pytest.mark.parametrize("name", ["none", "NA", "null", "nan", "-1"])
def test_names_of_class_folders_in_splits_stay_as_they_are(tmp_path: Path, make_image, name: str) -> None:
    for i, folder in enumerate([name, "defect", "unlabelled"]):
        make_image(tmp_path / "train" / folder / "1.jpg", seed=i)
    wanted = {f"{name}/1.jpg": name, "defect/1.jpg": "defect", "unlabelled/1.jpg": ""}
    assert labels_in(tmp_path / "train") == wanted
    assert labels_in(tmp_path) == {f"train/{file}": label for file, label in wanted.items()}


def test_classes_may_be_called_as_splits(tmp_path: Path, make_image) -> None:
    make_image(tmp_path / "train" / "1.jpg")
    make_image(tmp_path / "test" / "1.jpg", seed=1)
    assert open_data(tmp_path).catalog.class_names == ("test", "train")


def test_bad_folders(tmp_path: Path, make_image) -> None:
    make_image(tmp_path / "train" / "oak" / "1.jpg")
    (tmp_path / "test").mkdir()
    collection = open_data(tmp_path)
    assert collection.catalog.class_names == ("oak",)
    assert [(item.name, item.code) for item in collection.skipped] == [("test", "empty-folder")]  # which is no split
    (tmp_path / "train" / "metadata.csv").write_text("site,date\nA,B\n")
    (tmp_path / "test").rmdir()
    with raises(DataError, "missing-column"):
        open_data(tmp_path)
