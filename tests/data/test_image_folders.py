"""Folders as Hugging Face's datasets have them: splits, and tables of metadata beside class folders."""

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


def test_classes_may_be_called_as_splits(tmp_path: Path, make_image) -> None:
    make_image(tmp_path / "train" / "1.jpg")
    make_image(tmp_path / "test" / "1.jpg", seed=1)
    assert open_data(tmp_path).catalog.class_names == ("test", "train")


def test_bad_folders(tmp_path: Path, make_image) -> None:
    make_image(tmp_path / "train" / "oak" / "1.jpg")
    (tmp_path / "test").mkdir()
    assert open_data(tmp_path).catalog.class_names == ("train",)  # an empty folder is no split
    (tmp_path / "train" / "metadata.csv").write_text("site,date\nA,B\n")
    (tmp_path / "test").rmdir()
    with raises(DataError, "missing-column"):
        open_data(tmp_path)
