"""Folders with one subfolder per known class."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from error_codes import raises
from newkind.data import FileImages, read_folder
from newkind.errors import BrokenImage, DataError


def test_folder(pile: Path) -> None:
    collection = read_folder(pile)
    catalog = collection.catalog
    assert catalog.class_names == ("apple", "pear")
    assert catalog.counts().tolist() == [3, 3]
    labels = dict(zip(catalog.items.names, catalog.labels.tolist(), strict=True))
    assert labels["apple/0.jpg"] == 0
    assert labels["pear/2.png"] == 1
    assert {name for name, label in labels.items() if label == -1} == {
        "loose.bmp",
        "unlabelled/u0.jpg",
        "unlabelled/deep/u1.webp",
    }
    assert collection.truth is None
    assert not collection.skipped


@pytest.mark.parametrize("name", ["unlabelled", "unlabeled", "Unknown", "_"])
def test_names_of_the_unlabelled_folder(tmp_path: Path, make_image, name: str) -> None:
    make_image(tmp_path / "a" / "1.jpg")
    make_image(tmp_path / name / "2.jpg")
    assert read_folder(tmp_path).catalog.labels.tolist().count(-1) == 1
    assert read_folder(tmp_path).catalog.class_names == ("a",)


def test_a_link_to_another_folder_is_followed(pile: Path, tmp_path: Path, make_image) -> None:
    make_image(tmp_path / "elsewhere" / "1.jpg")
    (pile / "quince").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert read_folder(pile).catalog.class_names == ("apple", "pear", "quince")


def test_folders_that_link_to_each_other_are_read_once_per_class(tmp_path: Path, make_image) -> None:
    n = 9  # as a tree of links: 9! paths
    for i in range(n):
        make_image(tmp_path / f"c{i}" / "x.png", seed=i)
        for j in set(range(n)) - {i}:
            (tmp_path / f"c{i}" / f"l{j}").symlink_to(f"../c{j}")
    assert read_folder(tmp_path).catalog.counts().tolist() == [n] * n


def test_a_folder_whose_path_is_too_long_is_skipped(pile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pile / "apple")
    for _ in range(20):
        os.mkdir("d" * 250)
        os.chdir("d" * 250)
    collection = read_folder(pile)
    assert len(collection.catalog) == 9
    assert [item.code for item in collection.skipped] == ["unreadable"]


def test_an_unreadable_folder_is_skipped_once(pile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scandir = os.scandir
    refused = {"pear"}

    def refuse(folder: str | Path) -> Iterator[os.DirEntry[str]]:  # removing permissions does not stop root
        if os.path.basename(folder) in refused:
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    assert [(item.name, item.code) for item in read_folder(pile).skipped] == [("pear", "unreadable")]
    refused.add("pile")
    with raises(DataError, "unreadable"):
        read_folder(pile)


def test_a_file_that_became_a_pipe_is_refused(pile: Path) -> None:
    items = read_folder(pile).catalog.items
    assert isinstance(items, FileImages)
    (pile / items.names[0]).unlink()
    with raises(BrokenImage, "unreadable"):
        items.content(0)
    os.mkfifo(pile / items.names[0])
    with raises(BrokenImage, "not-a-file") as caught:
        items.content(0)
    assert caught.value.facts["name"] == items.names[0]


def test_file_names_that_are_not_utf8(pile: Path) -> None:
    os.rename(os.fsencode(pile / "apple" / "0.jpg"), os.path.join(os.fsencode(pile), b"apple", b"caf\xe9.jpg"))
    items = read_folder(pile).catalog.items
    assert isinstance(items, FileImages)
    index = next(i for i, name in enumerate(items.names) if "caf" in name)
    assert items.open(index).size == (24, 16)
