"""WebDataset archives: samples, labels, metadata; broken and malicious archives."""

import contextlib
import io
import json
import tarfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from error_codes import raises
from newkind.data import inspect_collection, open_data, read_tars
from newkind.data.opening import has_many_items
from newkind.errors import BrokenImage, DataError, NewkindError


def picture(seed: int = 0) -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (12, 8), (seed % 256, 0, 0)).save(content, "PNG")
    return content.getvalue()


def write_tar(path: Path, members: dict[str, bytes], **how: str) -> Path:
    with tarfile.open(path, how.get("mode", "w")) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


SAMPLES = {
    "a/1.png": picture(1),
    "a/1.cls": b"3",
    "a/1.json": json.dumps({"site": "A", "burst": 7, "box": [1, 2]}).encode(),
    "a/2.png": picture(2),
    "a/2.json": json.dumps({"site": "B", "burst": 7}).encode(),
    "b.1.png": picture(3),
    "b.1.cls": b"NA\n",
    "notes.txt": b"not a sample",
    "a/._2.png": b"junk of macOS",
}


def test_samples(tmp_path: Path) -> None:
    collection = open_data(write_tar(tmp_path / "x.tar", SAMPLES), group_column="burst")
    catalog = collection.catalog
    assert list(catalog.items.names) == ["a/1.png", "a/2.png", "b.1.png"]
    assert catalog.class_names == ("3",)
    assert catalog.labels.tolist() == [0, -1, -1]
    assert catalog.groups is not None
    assert catalog.groups.tolist() == [0, 0, -1]
    assert list(collection.metadata["site"]) == ["A", "B", ""]
    assert collection.metadata["box"][0] == "[1, 2]"
    assert catalog.items.open(1).getpixel((0, 0)) == (2, 0, 0)
    assert catalog.items.content(2) == picture(3)
    inspection = inspect_collection(collection)
    assert inspection.formats == {"PNG": 3}
    assert not inspection.duplicates


def test_labels_in_json(tmp_path: Path) -> None:
    members = {f"{i}.{kind}": content for i, name in enumerate(["bee", "wasp", None]) for kind, content in (
        ("jpg", picture(i)), ("json", json.dumps({"species": name, "truth": name or "fly"}).encode()))}  # fmt: skip
    collection = read_tars([write_tar(tmp_path / "x.tar", members)])
    assert collection.catalog.class_names == ("bee", "wasp")
    assert collection.truth is not None
    assert collection.truth.class_names == ("bee", "wasp", "fly")
    assert any("species" in note for note in collection.notes)


def test_shards(tmp_path: Path) -> None:
    for i in range(3):
        write_tar(tmp_path / f"s-{i:03d}.tar", {"1.png": picture(i), "1.cls": b"bee"})
    names = ["s-000/1.png", "s-001/1.png", "s-002/1.png"]
    assert list(open_data(tmp_path).catalog.items.names) == names
    some = open_data(f"{tmp_path}/s-{{001..002}}.tar")
    assert list(some.catalog.items.names) == names[1:]
    assert list(open_data(some.location, **some.reading).catalog.items.names) == names[1:]
    for i in range(2):
        (tmp_path / f"day{i}").mkdir()
        write_tar(tmp_path / f"day{i}" / "x.tar", {"1.png": picture(i)})
    days = open_data(f"{tmp_path}/day{{0..1}}/x.tar")
    assert list(days.catalog.items.names) == ["day0/x.tar/1.png", "day1/x.tar/1.png"]


@pytest.mark.parametrize("beside", ["oak/1.png", "1.png", "1.avif"])
def test_an_archive_beside_images_is_not_the_data(tmp_path: Path, make_image, beside: str) -> None:
    write_tar(tmp_path / "backup.tar", {"9.png": picture()})
    (tmp_path / beside).parent.mkdir(exist_ok=True)
    if beside.endswith("avif"):
        (tmp_path / beside).touch()
        assert not has_many_items(tmp_path)
        with raises(DataError, "no-images"):
            open_data(tmp_path)
        return
    make_image(tmp_path / beside)
    assert not has_many_items(tmp_path)
    collection = open_data(tmp_path)
    assert list(collection.catalog.items.names) == [beside]
    assert collection.ignored == {".tar": 1}


def test_what_is_beside_archives_is_listed(tmp_path: Path) -> None:
    write_tar(tmp_path / "x.tar", {"1.png": picture()})
    for name in ("index.txt", "train.parquet", ".cache"):
        (tmp_path / name).touch()
    assert has_many_items(tmp_path)
    collection = open_data(tmp_path)
    assert list(collection.catalog.items.names) == ["1.png"]
    assert collection.ignored == {".txt": 1, ".parquet": 1, "hidden": 1}


def test_folders_without_images_beside_archives_change_nothing(tmp_path: Path) -> None:
    write_tar(tmp_path / "x.tar", {"1.png": picture()})
    (tmp_path / "logs" / "empty").mkdir(parents=True)
    (tmp_path / "logs" / "job.log").touch()
    assert has_many_items(tmp_path)
    collection = open_data(tmp_path)
    assert list(collection.catalog.items.names) == ["1.png"]
    assert collection.ignored == {".log": 1}
    assert not collection.skipped


def test_an_archive_that_was_changed_after_it_was_opened(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "x.tar", SAMPLES)
    items = open_data(path).catalog.items
    path.write_bytes(path.read_bytes()[:700])
    with raises(BrokenImage, "unreadable"):
        items.open(2)
    path.unlink()
    with raises(BrokenImage, "unreadable"):
        items.content(0)


@pytest.mark.parametrize(
    "name", ["/etc/1.png", "../1.png", "a/../../1.png", "C:/1.png", "..\\1.png", "\\\\host\\1.png"]
)
def test_names_that_lead_out_of_the_archive(tmp_path: Path, name: str) -> None:
    with raises(DataError, "unsafe-name"):
        read_tars([write_tar(tmp_path / "x.tar", SAMPLES | {name: picture()})])


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE])
def test_members_that_are_no_files_are_left_out(tmp_path: Path, kind: bytes) -> None:
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo("0.png")
        member.type, member.linkname = kind, "/etc/passwd"
        archive.addfile(member)
        real = tarfile.TarInfo("1.png")
        real.size = len(picture())
        archive.addfile(real, io.BytesIO(picture()))
    assert list(read_tars([path]).catalog.items.names) == ["1.png"]


def test_broken_archives(tmp_path: Path) -> None:
    whole = write_tar(tmp_path / "whole.tar", SAMPLES).read_bytes()
    for number, content in enumerate([b"", b"x" * 2000, whole[:1600], whole[:900]]):
        path = tmp_path / f"broken{number}.tar"
        path.write_bytes(content)
        with pytest.raises(DataError) as caught:
            read_tars([path])
        assert caught.value.code in ("unreadable", "no-images")
    with raises(DataError, "unreadable"):
        read_tars([write_tar(tmp_path / "packed.tar", SAMPLES, mode="w:gz")])
    with raises(DataError, "no-images"):
        read_tars([write_tar(tmp_path / "text.tar", {"1.txt": b"x"})])
    with raises(DataError, "not-a-label"):
        read_tars([write_tar(tmp_path / "bad.tar", {"1.png": picture(), "1.json": b'{"label": [1]}'})])
    with raises(DataError, "group-conflict"):
        labels = {
            f"{i}.{kind}": c
            for i in (1, 2)
            for kind, c in (("png", picture()), ("cls", b"%d" % i), ("json", b'{"g": 1}'))
        }
        read_tars([write_tar(tmp_path / "groups.tar", labels)], group_column="g")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 6000), change=st.binary(min_size=1, max_size=40), cut=st.integers(0, 9000))
def test_a_damaged_archive_gives_a_collection_or_a_clear_error(
    tmp_path: Path, at: int, change: bytes, cut: int
) -> None:
    content = write_tar(tmp_path / "whole.tar", SAMPLES).read_bytes()
    path = tmp_path / "damaged.tar"
    path.write_bytes((content[:at] + change + content[at + len(change) :])[: cut or None])
    try:
        items = read_tars([path]).catalog.items
    except NewkindError as error:
        assert error.code in ("unreadable", "unsafe-name", "no-images", "not-a-label")  # noqa: PT017
        return
    for i in range(len(items)):
        with contextlib.suppress(BrokenImage):
            items.open(i)


@pytest.mark.parametrize("cut", [True, False], ids=["cut off", "overwritten"])
def test_a_damaged_header_is_not_the_end(tmp_path: Path, cut: bool) -> None:
    """Members after it would be lost without a word."""
    path = write_tar(tmp_path / "x.tar", {f"{i}.png": picture(i) for i in range(3)})
    content, place = bytearray(path.read_bytes()), 2 * 512  # an image of one block, then the second header
    if cut:
        del content[place + 100 :]
    else:
        content[place : place + 200] = b"x" * 200
    path.write_bytes(content)
    with raises(DataError, "unreadable"):
        open_data(path)


def test_an_archive_without_the_mark_at_its_end(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "x.tar", {f"{i}.png": picture(i) for i in range(3)})
    path.write_bytes(path.read_bytes()[: 6 * 512])
    assert len(open_data(path).catalog) == 3


def test_archives_that_are_missing(tmp_path: Path) -> None:
    write_tar(tmp_path / "s-0.tar", SAMPLES)
    with raises(DataError, "missing-file"):
        open_data(f"{tmp_path}/s-{{0..2}}.tar")
