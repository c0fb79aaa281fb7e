"""Files with arrays: what is read, and what is refused."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from error_codes import raises
from newkind.data import from_arrays, open_data
from newkind.errors import DataError


def test_images_in_a_file(tmp_path: Path) -> None:
    images = np.arange(4 * 64, dtype=np.uint8).reshape(4, 8, 8)
    collection = from_arrays(images, [1, 0, -1, -1], truth=[1, 0, 2, 2])
    np.savez(tmp_path / "x.npz", images=images, labels=[1, 0, -1, -1], truth=[1, 0, 2, 2])
    again = open_data(tmp_path / "x.npz")
    assert np.array_equal(again.catalog.labels, collection.catalog.labels)
    assert again.catalog.class_names == collection.catalog.class_names
    assert again.truth is not None
    assert again.location == str(tmp_path / "x.npz")


def test_npz_with_pickled_objects_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", features=np.array([{"a": 1}], dtype=object), labels=[0])
    with raises(DataError, "unreadable"):
        open_data(tmp_path / "x.npz")
    np.savez(tmp_path / "y.npz", something=[1])
    with raises(DataError, "missing-array") as caught:
        open_data(tmp_path / "y.npz")
    assert caught.value.facts["arrays"] == ["something"]
    (tmp_path / "z.npz").write_bytes(b"PK not really")
    with raises(DataError, "unreadable"):
        open_data(tmp_path / "z.npz")


@pytest.mark.parametrize("shape", [(), (1, 2)])
@pytest.mark.parametrize("key", ["labels", "truth", "names", "class_names"])
def test_npz_with_lists_of_another_shape(tmp_path: Path, key: str, shape: tuple[int, ...]) -> None:
    whole = {"features": np.eye(2), "labels": [0, 1], "truth": [0, 1], "names": ["a", "b"], "class_names": ["x", "y"]}
    np.savez(tmp_path / "whole.npz", **whole)
    assert len(open_data(tmp_path / "whole.npz").catalog) == 2
    np.savez(tmp_path / "x.npz", **(whole | {key: np.zeros(shape)}))
    with raises(DataError, "array-shape") as caught:
        open_data(tmp_path / "x.npz")
    assert (caught.value.facts["array"], caught.value.facts["shape"]) == (key, shape)


@pytest.mark.parametrize("value", [{"images": np.uint8(3)}, {"features": np.float32(3)}])
def test_npz_with_a_single_number(tmp_path: Path, value: dict[str, np.generic]) -> None:
    np.savez(tmp_path / "x.npz", labels=[0], **value)
    with raises(DataError, "array-shape"):
        open_data(tmp_path / "x.npz")


def damaged_npz() -> dict[str, bytes]:
    def npz(**kind: int) -> bytearray:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", **kind) as archive:
            member = io.BytesIO()
            np.save(member, np.arange(1000))
            archive.writestr("labels.npy", member.getvalue())
            archive.writestr("features.npy", member.getvalue())
        return bytearray(buffer.getvalue())

    compressed, encrypted, method, plain = npz(compression=zipfile.ZIP_DEFLATED), npz(), npz(), io.BytesIO()
    compressed[200:260] = b"\xff" * 60
    directory = encrypted.find(b"PK\1\2")
    encrypted[6] |= 1
    encrypted[directory + 8] |= 1
    method[8] = method[directory + 10] = 99
    np.save(plain, np.arange(9))
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000, 1000000000), }".ljust(117) + b"\n"
    huge = io.BytesIO()
    with zipfile.ZipFile(huge, "w") as archive:
        archive.writestr("labels.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
        archive.writestr("features.npy", b"")
    open_end = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + b"{'descr': '<f8', 'shape': (".ljust(117) + b"\n"
    unfinished = io.BytesIO()  # NumPy parses headers with Python's tokenizer, which has errors of its own
    with zipfile.ZipFile(unfinished, "w") as archive:
        archive.writestr("labels.npy", open_end)
        archive.writestr("features.npy", b"")
    return {
        "header": unfinished.getvalue(),
        "compressed": bytes(compressed),
        "encrypted": bytes(encrypted),
        "method": bytes(method),
        "huge": huge.getvalue(),
        "plain": plain.getvalue(),
    }


@pytest.mark.parametrize("content", damaged_npz().values(), ids=list(damaged_npz()))
def test_damaged_npz(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.npz").write_bytes(content)
    with raises(DataError, "unreadable"):
        open_data(tmp_path / "x.npz")


def test_a_member_that_is_not_an_array(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("labels", "no array")
        archive.writestr("features", "no array")
    with raises(DataError, "not-an-array"):
        open_data(tmp_path / "x.npz")


def test_members_that_nobody_asked_for_are_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, features=np.eye(4), labels=["a", "b", "", ""])
    bomb = io.BytesIO()
    np.lib.format.write_array_header_1_0(bomb, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.npy", bomb.getvalue())  # 8 TB, which np.load would allocate
        archive.writestr("object.npy", b"not an array at all")
    assert len(open_data(path).catalog) == 4


def test_names_of_a_file_without_labels_are_listed_in_short(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **{f"array{i}": [1] for i in range(500)})
    with raises(DataError, "missing-array") as caught:
        open_data(tmp_path / "x.npz")
    assert len(str(caught.value)) < 800
    assert "`" not in str(caught.value)  # names of arrays, not of parameters, which become options on the command line
