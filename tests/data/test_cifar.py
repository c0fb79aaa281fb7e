"""CIFAR's files are untrusted pickles: they are read without running any code of them."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from official_layouts import ids_of, write_batch2, write_cifar

from error_codes import raises
from newkind.data import ArrayImages
from newkind.data.benchmarks import load_benchmark
from newkind.errors import DataError


def test_cifar_pixels_are_in_the_right_place(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, size=(100, 3, 32, 32), dtype=np.uint8)
    write_cifar(tmp_path, 100, [0])
    write_batch2(tmp_path / "train", "fine_labels", range(100), pixels.tobytes())
    images = load_benchmark("cifar100", tmp_path).catalog.items
    assert isinstance(images, ArrayImages)
    np.testing.assert_array_equal(images.pixels, np.moveaxis(pixels, 1, 3))
    assert images.open(3).getpixel((5, 7)) == tuple(pixels[3, :, 7, 5].tolist())


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("order", ["C", "F"])
def test_cifar_written_by_python_3_is_read_too(tmp_path: Path, protocol: int, order: Any) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, size=(100, 3072), dtype=np.uint8)
    write_cifar(tmp_path, 100, [0])
    batch = {"data": np.asarray(pixels, order=order), "fine_labels": list(range(100)), "batch_label": "1 of 1"}
    (tmp_path / "train").write_bytes(pickle.dumps(batch, protocol=protocol))
    images = load_benchmark("cifar100", tmp_path).catalog.items
    assert isinstance(images, ArrayImages)
    np.testing.assert_array_equal(images.pixels, np.moveaxis(pixels.reshape(-1, 3, 32, 32), 1, 3))


class Runs:
    """Pickles to a call of `function`."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_that_runs_a_command_is_refused(tmp_path: Path, protocol: int) -> None:
    marker = tmp_path / "executed"
    write_cifar(tmp_path, 100, ids_of(100, 100))
    for evil in (Runs(os.system, f"touch {marker}"), Runs(eval, f"open({str(marker)!r}, 'w')"), Runs(marker.touch)):
        (tmp_path / "train").write_bytes(pickle.dumps({"data": evil, "fine_labels": []}, protocol=protocol))
        with raises(DataError, "damaged-dataset"):
            load_benchmark("cifar100", tmp_path)
    assert not marker.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"cos\nsystem\n(S'touch executed'\ntR.",
        b"cnumpy.core.multiarray\n_reconstruct.__init__.__globals__\n.",
        b"\x80\x04\x8c\x05numpy\x8c\x10ndarray.__init__\x93.",
        b"cnumpy\nndarray\n(K\x01tR.",
        b"cnumpy\ndtype\n(S'O'\ntR.",
        b"cnumpy.core.multiarray\n_reconstruct\n}S'__call__'\nK\x01sb.",
        b"c_codecs\nencode\n(N}S'__call__'\nK\x01stb.",
        b"c_codecs\nencode\n(S'x'\nS'zlib'\ntR.",
        b"P1\n.",
        b"\x82\x01.",
        b"",
        b"not a pickle",
        b"].",
        b"\x80\x02}(U\x04datacnumpy.core.multiarray\n_reconstruct\n)Rb.",
    ],
)
def test_other_pickles_are_refused(tmp_path: Path, content: bytes) -> None:
    write_cifar(tmp_path, 100, ids_of(100, 100))
    (tmp_path / "train").write_bytes(content)
    with raises(DataError, "damaged-dataset") as caught:
        load_benchmark("cifar100", tmp_path)
    assert caught.value.facts["path"] == str(tmp_path / "train")


def test_a_cifar_file_cut_short_is_refused(tmp_path: Path) -> None:
    write_cifar(tmp_path, 100, ids_of(100, 100))
    good = (tmp_path / "train").read_bytes()
    for cut in [*range(1, 500, 7), len(good) - 100, len(good) - 1]:
        (tmp_path / "train").write_bytes(good[:cut])
        with raises(DataError, "damaged-dataset"):
            load_benchmark("cifar100", tmp_path)


def a_batch(**parts: Any) -> bytes:
    pixels: NDArray[Any] = np.zeros((100, 3072), dtype=np.uint8)
    return pickle.dumps({"data": pixels, "fine_labels": list(range(100)), **parts}, protocol=2)


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ({"data": np.zeros((100, 3071), dtype=np.uint8)}, "damaged-dataset"),
        ({"data": np.zeros((100, 3072), dtype=np.float32)}, "damaged-dataset"),
        ({"data": [1, 2]}, "damaged-dataset"),
        ({"fine_labels": [0] * 99}, "damaged-dataset"),
        ({"fine_labels": [*range(99), 100]}, "damaged-dataset"),
        ({"fine_labels": [*range(99), "1"]}, "damaged-dataset"),
        ({"fine_labels": [0] * 100}, "empty-class"),
    ],
)
def test_a_cifar_file_with_wrong_contents_is_refused(tmp_path: Path, parts: dict[str, Any], code: str) -> None:
    write_cifar(tmp_path, 100, ids_of(100, 100))
    (tmp_path / "train").write_bytes(a_batch(**parts))
    with raises(DataError, code):
        load_benchmark("cifar100", tmp_path)


def test_cifar_with_missing_pieces(tmp_path: Path) -> None:
    write_cifar(tmp_path, 10, ids_of(10, 10))
    (tmp_path / "data_batch_4").unlink()
    with raises(DataError, "damaged-dataset") as caught:
        load_benchmark("cifar10", tmp_path)
    assert caught.value.facts["path"] == str(tmp_path / "data_batch_4")
    (tmp_path / "batches.meta").write_bytes(pickle.dumps({"label_names": ["a"] * 9}))
    with raises(DataError, "class-count"):
        load_benchmark("cifar10", tmp_path)
    (tmp_path / "batches.meta").write_bytes(pickle.dumps({"label_names": 9}))
    with raises(DataError, "damaged-dataset"):
        load_benchmark("cifar10", tmp_path)
