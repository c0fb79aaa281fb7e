"""Writes the paper's datasets in their official layouts, with empty files for images, and checks what is read of them."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.io import savemat

from newkind.data import BENCHMARKS, Collection, class_split


class Counts(NamedTuple):
    """A row of the paper's table."""

    labelled: str
    unlabelled: str
    old_classes: int
    classes: int


def touch(root: Path, names: Iterable[str]) -> None:
    """Empty files; all but the first are links to it, which is several times faster than making each."""
    first = ""
    folders = set()
    for name in names:
        path = f"{root}/{name}"
        folder = path.rpartition("/")[0]
        if folder not in folders:
            os.makedirs(folder, exist_ok=True)
            folders.add(folder)
        if first:
            os.link(first, path)
        else:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
            first = path


def ids_of(n_images: int, n_classes: int) -> list[int]:
    """Every class at least once, in no order."""
    ids: list[int] = np.random.default_rng(3).permutation(np.arange(n_images) % n_classes).tolist()
    return ids


def write_cub_lists(root: Path, n_train: int = 400) -> list[str]:
    """CUB's list files: `n_train` training images and 200 test images among them, in no order of class.

    Gives the training images' names in their order.
    """
    root.mkdir(parents=True, exist_ok=True)
    class_names = [f"{c + 1:03d}.Bird_{c}" for c in range(200)]
    ids = ids_of(n_train + 200, 200)
    is_test = set({c: i for i, c in enumerate(ids)}.values())  # the last image of each class
    names = [f"{class_names[c]}/Bird_{c}_{(i * 7919) % 10007}_{i}.jpg" for i, c in enumerate(ids)]
    (root / "classes.txt").write_text("".join(f"{c + 1} {name}\n" for c, name in enumerate(class_names)))
    (root / "images.txt").write_text("".join(f"{i + 1} {name}\n" for i, name in enumerate(names)))
    (root / "image_class_labels.txt").write_text("".join(f"{i + 1} {c + 1}\n" for i, c in enumerate(ids)))
    (root / "train_test_split.txt").write_text("".join(f"{i + 1} {int(i not in is_test)}\n" for i in range(len(ids))))
    return [name for i, name in enumerate(names) if i not in is_test]


def write_cub(root: Path, n_train: int = 400) -> list[str]:
    training = write_cub_lists(root, n_train)
    touch(root / "images", training)
    return training


def write_cars(root: Path, n_train: int = 196) -> list[str]:
    ids = ids_of(n_train, 196)
    names = [f"{i + 1:05d}.jpg" for i in range(n_train)]
    annotations = np.zeros(
        (1, n_train), dtype=[(f, object) for f in ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2", "class", "fname")]
    )
    for i, (c, name) in enumerate(zip(ids, names, strict=True)):
        annotations[0, i] = (1, 1, 9, 9, c + 1, name)
    (root / "devkit").mkdir(parents=True)
    savemat(root / "devkit" / "cars_train_annos.mat", {"annotations": annotations})
    class_names = np.array([[f"Make Model {c} 2012" for c in range(196)]], dtype=object)
    savemat(root / "devkit" / "cars_meta.mat", {"class_names": class_names})
    touch(root / "cars_train", names)
    return [f"{class_names[0, c]}|{name}" for c, name in zip(ids, names, strict=True)]


def write_aircraft(root: Path, n_train: int = 100) -> list[str]:
    """The variants' names hold spaces, slashes and mixed case, as the real ones do."""
    variants = [f"{'BCDEFabcd'[c % 9]}/A-{c * 37 % 100} Mark {c}" for c in range(100)]
    rows = [(f"{(i * 7919) % 100003:07d}", variants[c]) for i, c in enumerate(ids_of(n_train, 100))]
    (root / "data").mkdir(parents=True)
    (root / "data" / "images_variant_trainval.txt").write_text("".join(f"{key} {variant}\n" for key, variant in rows))
    touch(root / "data" / "images", (f"{key}.jpg" for key, _ in rows))
    return [f"{variant}|{key}.jpg" for key, variant in rows]


def write_herbarium(root: Path, counts: Sequence[int] = (1,) * 683) -> None:
    """Folders 0 to 682; `counts` are the images of each class in the order of the folders sorted as text."""
    for name, count in zip(sorted(map(str, range(683))), counts, strict=True):
        touch(root / "small-train", (f"{name}/{i}.jpg" for i in range(count)))


def write_imagenet(root: Path) -> None:
    """A thousand synsets with one or two images each."""
    for c in range(1000):
        synset = f"n{1000 + (c * 7919) % 1000:08d}"
        touch(root / "train", (f"{synset}/{synset}_{i}.JPEG" for i in (10, 9)[: 1 + c % 2]))


def string2(text: str) -> bytes:
    """A short Python 2 string, as pickle's protocol 2 has it."""
    return b"U" + struct.pack("<B", len(text)) + text.encode()


def list2(items: Iterable[bytes]) -> bytes:
    return b"](" + b"".join(items) + b"e"


def integer2(value: int) -> bytes:
    return b"K" + struct.pack("<B", value)


def array_head2(rows: int) -> bytes:
    """What Python 2 and its NumPy write before the bytes of a uint8 array (rows, 3072)."""
    return (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(K\x00tU\x01btR"
        + b"(K\x01(J" + struct.pack("<i", rows) + b"M\x00\x0ct"
        + b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        + b"\x89T" + struct.pack("<i", rows * 3072)
    )  # fmt: skip


def write_batch2(path: Path, labels_key: str, labels: Sequence[int], pixels: bytes | None = None) -> None:
    """A batch as the official file has it: a Python 2 pickle. Without `pixels` they are a hole that fills no disk."""
    with path.open("wb") as file:
        file.write(b"\x80\x02}(" + string2(labels_key) + list2(map(integer2, labels)))
        file.write(string2("data") + array_head2(len(labels)))
        if pixels is None:
            file.seek(len(labels) * 3072, os.SEEK_CUR)
        else:
            file.write(pixels)
        file.write(b"tbu.")


def write_cifar(root: Path, n_classes: int, labels: Sequence[int]) -> None:
    root.mkdir(parents=True, exist_ok=True)
    if n_classes == 10:
        for number, part in enumerate(np.array_split(labels, 5), start=1):
            write_batch2(root / f"data_batch_{number}", "labels", part.tolist())
    else:
        write_batch2(root / "train", "fine_labels", labels)
    meta, key = ("batches.meta", "label_names") if n_classes == 10 else ("meta", "fine_label_names")
    names = list2(string2(f"thing {c}") for c in range(n_classes))
    (root / meta).write_bytes(b"\x80\x02}(" + string2(key) + names + b"u.")


def write_all(root: Path) -> None:
    """Every dataset, as small as its layout allows."""
    folders = {name: root / benchmark.folders[0] for name, benchmark in BENCHMARKS.items()}
    write_cub(folders["cub"])
    write_cars(folders["stanford_cars"])
    write_aircraft(folders["fgvc_aircraft"])
    write_herbarium(folders["herbarium_19"])
    write_imagenet(folders["imagenet_1k"])
    write_cifar(folders["cifar10"], 10, ids_of(10, 10))
    write_cifar(folders["cifar100"], 100, ids_of(100, 100))


def thousands(n: int) -> str:
    return f"{n / 1000:.1f}K"


def check(collection: Collection, name: str, counts: Counts | None = None) -> None:
    """Classes, order and labelled images are the published ones, by a plain recomputation."""
    catalog, truth, split = collection.catalog, collection.truth, class_split(name)
    assert truth is not None
    assert catalog.class_names == truth.class_names[: truth.n_old]
    assert (len(truth.class_names), truth.n_old) == (BENCHMARKS[name].n_classes, BENCHMARKS[name].n_old)
    assert (len(split.classes), len(split.old)) == (BENCHMARKS[name].n_classes, BENCHMARKS[name].n_old)
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    candidates = [i for i, label in enumerate(truth.labels.tolist()) if label < truth.n_old]
    drawn = np.random.choice(range(len(candidates)), size=int(0.5 * len(candidates)), replace=False)  # noqa: NPY002
    np.random.set_state(state)  # noqa: NPY002
    expected = np.full(len(catalog), -1)
    for position in drawn:
        expected[candidates[position]] = truth.labels[candidates[position]]
    np.testing.assert_array_equal(catalog.labels, expected)
    if counts is not None:
        is_labelled = catalog.is_labelled
        found = (thousands(is_labelled.sum()), thousands((~is_labelled).sum()))
        assert found == (counts.labelled, counts.unlabelled)
        assert len(np.unique(catalog.labels[is_labelled])) == counts.old_classes
        assert len(np.unique(truth.labels[~is_labelled])) == counts.classes
        assert collection.notes == ()


def true_classes(collection: Collection) -> list[str]:
    assert collection.truth is not None
    return [collection.truth.class_names[label] for label in collection.truth.labels]
