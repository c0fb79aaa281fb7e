"""Every file below a folder is found, skipped with a reason, or counted as another type."""

import os
import socket
from pathlib import Path

import pytest

from error_codes import raises
from newkind.data.folders import read_folder
from newkind.data.image_files import find_images, list_files
from newkind.data.items import FileImages
from newkind.data.names import Names
from newkind.data.slices import ListParts
from newkind.data.tables import read_table
from newkind.errors import BrokenImage, DataError

UNSUPPORTED = ["a.avif", "b.AVIF", "c.jp2", "d.cr2", "e.NEF", "f.dng", "g.jxl"]


def codes(items) -> dict[str, str]:
    return {item.name: item.code for item in items}


def test_image_formats_that_cannot_be_read_are_skipped_with_a_reason(pile: Path) -> None:
    for name in UNSUPPORTED:
        (pile / "apple" / name).write_bytes(b"x")
    collection = read_folder(pile)
    assert codes(collection.skipped) == {f"apple/{name}": "unsupported-format" for name in UNSUPPORTED}
    assert "AVIF" in collection.skipped[0].reason
    assert len(collection.catalog) == 9


def test_other_types_are_only_counted(pile: Path) -> None:
    for name in ("notes.txt", "more.TXT", "README", ".DS_Store", "Thumbs.db", "._0.jpg"):
        (pile / "apple" / name).write_bytes(b"x")
    collection = read_folder(pile)
    assert not collection.skipped
    assert not collection.notes
    assert collection.ignored == {".txt": 2, "no suffix": 1, "hidden": 3}


def test_links_pipes_and_empty_folders_are_skipped(pile: Path) -> None:
    (pile / "empty").mkdir()
    (pile / "pear" / "gone.jpg").symlink_to(pile / "nowhere.jpg")
    (pile / "quince").symlink_to(pile / "nowhere", target_is_directory=True)
    (pile / "pear" / "self.jpg").symlink_to(pile / "pear" / "self.jpg")
    (pile / "pear" / "loop").symlink_to(pile / "pear", target_is_directory=True)
    (pile / "pear" / "top").symlink_to(pile, target_is_directory=True)
    (pile / "here").symlink_to(pile, target_is_directory=True)
    (pile / "above").symlink_to(pile.parent, target_is_directory=True)
    (pile / "zero.jpg").symlink_to("/dev/zero")
    os.mkfifo(pile / "apple" / "pipe.jpg")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(pile / "s.jpg"))  # relative: a socket's path is short
    collection = read_folder(pile)
    assert codes(collection.skipped) == {
        "empty": "empty-folder",
        "pear/gone.jpg": "broken-link",
        "quince": "broken-link",
        "pear/self.jpg": "unreadable",
        "pear/loop": "folder-repeated",
        "pear/top": "folder-above",
        "here": "folder-above",
        "above": "folder-above",
        "zero.jpg": "not-a-file",
        "apple/pipe.jpg": "not-a-file",
        "s.jpg": "not-a-file",
    }
    assert len(collection.catalog) == 9


def test_a_folder_without_readable_images_says_what_is_in_it(tmp_path: Path) -> None:
    with raises(DataError, "no-images"):
        read_folder(tmp_path)
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "1.avif").write_bytes(b"x")
    (tmp_path / "cat" / "1.xmp").write_bytes(b"x")
    with raises(DataError, "no-images") as caught:
        read_folder(tmp_path)
    assert caught.value.facts["n_skipped"] == 2  # the file and its folder
    assert caught.value.facts["ignored"] == {".xmp": 1}


def test_a_table_may_name_an_unsupported_format(tmp_path: Path, make_image) -> None:
    make_image(tmp_path / "1.jpg")
    (tmp_path / "2.avif").write_bytes(b"x")
    (tmp_path / "t.csv").write_text("file_name,label\n1.jpg,a\n2.avif,a\n")
    assert codes(read_table(tmp_path / "t.csv").skipped) == {"2.avif": "unsupported-format"}


def test_files_folders_and_lists_are_found_as_given(pile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pile)
    (pile / "list.txt").write_text("pear/0.png\n\n pear/9.png \npear/0.png\n")
    (pile / "unlabelled" / "x.avif").write_bytes(b"x")
    (pile / "unlabelled" / "notes.txt").write_text("x")
    found = find_images([Path("apple/1.jpg"), Path("unlabelled"), Path("list.txt"), Path("apple/1.jpg")])
    assert list(found.names) == [
        "apple/1.jpg",
        "unlabelled/deep/u1.webp",
        "unlabelled/u0.jpg",
        "pear/0.png",
        "pear/0.png",
        "apple/1.jpg",
    ]
    assert codes(found.skipped) == {"unlabelled/x.avif": "unsupported-format", "pear/9.png": "missing-file"}
    assert found.ignored == {".txt": 1}


def test_a_byte_order_mark_before_a_list(pile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pile)
    (pile / "list.txt").write_text("pear/0.png\n\npear/1.png\npear/2.png\n", encoding="utf-8-sig")
    wanted = ["pear/0.png", "pear/1.png", "pear/2.png"]
    assert list(find_images([Path("list.txt")]).names) == wanted
    assert list_files([Path("list.txt")]) == wanted
    marked = ListParts(Path("list.txt"), 2)
    assert [list(marked.part(i).names) for i in range(2)] == [wanted[:2], wanted[2:]]
    (pile / "plain.txt").write_text("\n".join(wanted))
    assert (len(marked), marked.digest) == (3, ListParts(Path("plain.txt"), 2).digest)
    (pile / "empty.txt").write_text("", encoding="utf-8-sig")
    with raises(DataError, "no-images"):
        ListParts(Path("empty.txt"), 2)


def test_a_whole_folder_is_searched_to_any_depth(pile: Path) -> None:
    assert sorted(find_images([pile]).names) == sorted(str(p) for p in pile.rglob("*") if p.is_file())


def test_files_given_by_name(tmp_path: Path, make_image) -> None:
    image = make_image(tmp_path / "1.png")
    no_suffix = image.rename(tmp_path / "upload")  # its content says what it is
    (tmp_path / "gone.jpg").symlink_to(tmp_path / "nowhere.jpg")
    (tmp_path / "2.avif").write_bytes(b"x")
    found = find_images([no_suffix, tmp_path / "gone.jpg", tmp_path / "2.avif"])
    assert list(found.names) == [str(no_suffix)]
    assert [item.code for item in found.skipped] == ["broken-link", "unsupported-format"]
    with raises(DataError, "missing-file"):
        find_images([no_suffix, tmp_path / "nowhere.jpg"])
    with raises(DataError, "no-images") as caught:
        find_images([tmp_path / "2.avif"])
    assert caught.value.facts["n_skipped"] == 1


@pytest.mark.parametrize("name", ["a\x00b.png", "\ud800.png", "x" * 5000])
def test_a_name_that_no_file_can_have_is_an_unreadable_image(tmp_path: Path, name: str) -> None:
    with raises(BrokenImage, "unreadable"):
        FileImages(tmp_path, Names([name])).content(0)
