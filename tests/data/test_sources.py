import io
import os
import re
import socket
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits
from torchvision.datasets import FakeData, ImageFolder

from newkind.data import ArrayImages, FileImages, from_arrays, from_features, from_torchvision, open_data, read_folder
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


def test_what_a_folder_leaves_out_has_a_name_and_a_reason(pile: Path) -> None:
    (pile / "empty").mkdir()
    (pile / "apple" / "notes.txt").write_text("x")
    (pile / ".DS_Store").write_text("x")
    (pile / "pear" / "gone.jpg").symlink_to(pile / "nowhere.jpg")
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
    assert {item.name: item.reason for item in collection.skipped} == {
        "empty": "a folder without an image",
        "apple/notes.txt": "not an image file (.txt)",
        "pear/gone.jpg": "a broken link",
        "pear/self.jpg": "cannot be read (Too many levels of symbolic links)",
        "pear/loop": "a folder that was read already under another name",
        "pear/top": "a link that leads back to a folder above it",
        "here": "a link that leads back to a folder above it",
        "above": "a link that leads back to a folder above it",
        "zero.jpg": "not a regular file",
        "apple/pipe.jpg": "not a regular file",
        "s.jpg": "not a regular file",
    }
    assert len(collection.catalog) == 9


def test_a_link_to_another_folder_is_followed(pile: Path, tmp_path: Path, make_image) -> None:
    make_image(tmp_path / "elsewhere" / "1.jpg")
    (pile / "quince").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert read_folder(pile).catalog.class_names == ("apple", "pear", "quince")


def test_folders_that_link_to_each_other_are_read_once_a_class(tmp_path: Path, make_image) -> None:
    n = 9  # as a tree of links: 9! paths
    for i in range(n):
        make_image(tmp_path / f"c{i}" / "x.png", seed=i)
        for j in set(range(n)) - {i}:
            (tmp_path / f"c{i}" / f"l{j}").symlink_to(f"../c{j}")
    assert read_folder(tmp_path).catalog.counts().tolist() == [n] * n


def test_a_folder_too_deep_to_be_named_is_left_out(pile: Path, monkeypatch) -> None:
    monkeypatch.chdir(pile / "apple")
    for _ in range(20):
        os.mkdir("d" * 250)
        os.chdir("d" * 250)
    collection = read_folder(pile)
    assert len(collection.catalog) == 9
    assert [item.reason for item in collection.skipped] == ["a folder that cannot be read (File name too long)"]


def test_an_unreadable_folder_is_left_out_once(pile: Path, monkeypatch) -> None:
    scandir = os.scandir

    def refuse(folder: str | Path) -> Iterator[os.DirEntry[str]]:  # taking rights away does not stop root
        if os.path.basename(folder) == "pear":
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    assert [(item.name, item.reason) for item in read_folder(pile).skipped] == [
        ("pear", "a folder that cannot be read (Permission denied)")
    ]


def test_what_became_a_pipe_is_refused_when_it_is_read(pile: Path) -> None:
    items = read_folder(pile).catalog.items
    (pile / items.names[0]).unlink()
    os.mkfifo(pile / items.names[0])
    with pytest.raises(BrokenImage, match="not a regular file"):
        items.content(0)


def test_file_names_that_are_not_utf8(pile: Path) -> None:
    os.rename(os.fsencode(pile / "apple" / "0.jpg"), os.path.join(os.fsencode(pile), b"apple", b"caf\xe9.jpg"))
    items = read_folder(pile).catalog.items
    assert isinstance(items, FileImages)
    index = next(i for i, name in enumerate(items.names) if "caf" in name)
    assert items.open(index).size == (24, 16)


def test_no_image_at_all(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="holds no image"):
        read_folder(tmp_path)
    with pytest.raises(DataError, match="does not exist"):
        open_data(tmp_path / "nowhere")
    (tmp_path / "x.docx").write_text("x")
    with pytest.raises(DataError, match="not known here"):
        open_data(tmp_path / "x.docx")
    os.mkfifo(tmp_path / "x.csv")
    with pytest.raises(DataError, match="not a regular file"):
        open_data(tmp_path / "x.csv")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "is empty"),
        pytest.param("x" * 300, r"cannot be opened \(File name too long", id="long"),
        ("a\0b", r"a\\x00b does not exist"),
        ("~nosuch/x", "does not exist"),
        ("/dev/zero", "not a regular file"),
    ],
)
def test_names_of_no_data(name: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        open_data(name)


def test_the_home_folder_is_found(pile: Path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(pile.parent))
    assert len(open_data("~/pile").catalog) == 9


def test_image_arrays(tmp_path: Path) -> None:
    digits = load_digits()
    images = (digits.images[:20] * 15).astype(np.uint8)
    labels = np.where(digits.target[:20] < 5, digits.target[:20], -1)
    collection = from_arrays(images, labels, truth=digits.target[:20])
    assert collection.catalog.class_names == tuple("01234")
    assert collection.truth is not None
    assert collection.truth.labels.tolist() == digits.target[:20].tolist()
    assert np.array_equal(np.asarray(collection.catalog.items.open(3))[..., 0], images[3])
    np.savez(tmp_path / "digits.npz", images=images, labels=labels, truth=digits.target[:20])
    again = open_data(tmp_path / "digits.npz")
    assert np.array_equal(again.catalog.labels, collection.catalog.labels)
    assert again.catalog.class_names == collection.catalog.class_names


def test_class_names_for_numeric_labels() -> None:
    collection = from_features(np.eye(4), [2, -1, 0, -1], truth=[2, 1, 0, 1], class_names=["ant", "bee", "cat"])
    assert collection.catalog.class_names == ("ant", "cat")
    assert collection.truth is not None
    assert collection.truth.class_names == ("ant", "cat", "bee")
    assert collection.truth.labels.tolist() == [1, 2, 0, 2]


@pytest.mark.parametrize("bad", [0.5, np.inf, -2, 3, [0], 1j])
def test_numbers_that_name_no_class(bad: object) -> None:
    with pytest.raises(DataError, match="label"):
        from_features(np.eye(2), [0, bad], class_names=["ant", "bee", "cat"])


@pytest.mark.parametrize("shape", [(2, 0, 8), (2, 8, 0, 3), (2, 3, 8, 3)])
def test_images_without_pixels(shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match="at least 4 x 4 pixels"):
        from_arrays(np.zeros(shape, np.uint8), [0, 1])


@pytest.mark.parametrize(
    "pixels", [np.zeros((4, 3, 8, 8), np.uint8), np.zeros((4, 8, 8), np.float32), np.zeros((8, 8), np.uint8)]
)
def test_arrays_of_another_shape_or_type(pixels: np.ndarray) -> None:
    with pytest.raises(DataError, match="Image arrays are uint8"):
        from_arrays(pixels, [-1] * len(pixels))


def test_bad_features_and_lengths() -> None:
    features = np.ones((5, 3))
    with pytest.raises(DataError, match="5 items but 4 labels"):
        from_features(features, [0] * 4)
    with pytest.raises(DataError, match=r"\(5, 0\)"):
        from_features(features[:, :0], [0] * 5)
    features[3, 1] = np.nan
    with pytest.raises(DataError, match="row 3"):
        from_features(features, [0] * 5)
    with pytest.raises(DataError, match="different names"):
        from_features(np.ones((2, 3)), [0, 1], names=["a", "a"])


def test_npz_with_pickled_objects_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", features=np.array([{"a": 1}], dtype=object), labels=[0])
    with pytest.raises(DataError, match="pickle"):
        open_data(tmp_path / "x.npz")
    np.savez(tmp_path / "y.npz", something=[1])
    with pytest.raises(DataError, match="holds something"):
        open_data(tmp_path / "y.npz")
    (tmp_path / "z.npz").write_bytes(b"PK not really")
    with pytest.raises(DataError, match="cannot be read"):
        open_data(tmp_path / "z.npz")


@pytest.mark.parametrize("shape", [(), (1, 2)])
@pytest.mark.parametrize("key", ["labels", "truth", "names", "class_names"])
def test_npz_with_lists_of_another_shape(tmp_path: Path, key: str, shape: tuple[int, ...]) -> None:
    whole = {"features": np.eye(2), "labels": [0, 1], "truth": [0, 1], "names": ["a", "b"], "class_names": ["x", "y"]}
    np.savez(tmp_path / "whole.npz", **whole)
    assert len(open_data(tmp_path / "whole.npz").catalog) == 2
    np.savez(tmp_path / "x.npz", **(whole | {key: np.zeros(shape)}))
    with pytest.raises(DataError, match=rf"x\.npz: '{key}' has the shape {re.escape(str(shape))}"):
        open_data(tmp_path / "x.npz")


@pytest.mark.parametrize("value", [{"images": np.uint8(3)}, {"features": np.float32(3)}])
def test_npz_with_a_single_number(tmp_path: Path, value: dict[str, np.generic]) -> None:
    np.savez(tmp_path / "x.npz", labels=[0], **value)
    with pytest.raises(DataError, match="is a single number"):
        open_data(tmp_path / "x.npz")


def damaged_npz() -> dict[str, bytes]:
    def npz(**kind: int) -> bytearray:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", **kind) as archive:
            member = io.BytesIO()
            np.save(member, np.arange(1000))
            archive.writestr("labels.npy", member.getvalue())
        return bytearray(buffer.getvalue())

    compressed, encrypted, method, plain = npz(compression=zipfile.ZIP_DEFLATED), npz(), npz(), io.BytesIO()
    compressed[200:260] = b"\xff" * 60
    directory = encrypted.find(b"PK\1\2")
    encrypted[6] |= 1
    encrypted[directory + 8] |= 1
    method[8] = method[directory + 10] = 99
    np.save(plain, np.arange(9))
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000, 1000000000), }".ljust(117) + b"\n"
    huge, raw = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(huge, "w") as archive:
        archive.writestr("labels.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with zipfile.ZipFile(raw, "w") as archive:
        archive.writestr("labels", "no array")
    return {
        "decompressing": bytes(compressed),
        "encrypted": bytes(encrypted),
        "not supported": bytes(method),
        "allocate": huge.getvalue(),
        "without a name": plain.getvalue(),
        "is not an array": raw.getvalue(),
    }


@pytest.mark.parametrize(("reason", "content"), damaged_npz().items(), ids=list(damaged_npz()))
def test_damaged_npz(tmp_path: Path, reason: str, content: bytes) -> None:
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(DataError, match=reason):
        open_data(tmp_path / "x.npz")


def test_torchvision_datasets(pile: Path) -> None:
    folder = from_torchvision(ImageFolder(pile), is_labelled=np.arange(8) < 3)
    assert isinstance(folder.catalog.items, FileImages)
    assert folder.catalog.class_names == ("apple",)
    assert folder.truth is not None
    assert folder.truth.class_names == ("apple", "pear", "unlabelled")
    assert folder.catalog.items.open(0).size == (24, 16)

    class InMemory:
        data = np.zeros((6, 8, 8, 3), np.uint8)
        targets = (0, 1, 2, 0, 1, 2)
        classes = ("a", "b", "c")

    assert isinstance(from_torchvision(InMemory()).catalog.items, ArrayImages)


def test_torchvision_dataset_that_only_yields_images() -> None:
    fake = FakeData(size=4, image_size=(3, 12, 10), num_classes=2)
    fake.targets = [0, 1, 0, 1]
    items = from_torchvision(fake).catalog.items
    assert items.open(2).size == (10, 12)
    assert isinstance(items.open(2), Image.Image)
    assert items.content(1) != items.content(2)
    with pytest.raises(DataError, match="no targets"):
        from_torchvision(FakeData(size=4))
