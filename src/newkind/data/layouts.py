"""Official layouts of published datasets on disk: the training images and their classes.

The order of the images decides which of them have labels in the published runs, so the order of the layout is kept.
Folders are listed, and no file is accessed on its own: ImageNet has 1.3 million.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from newkind.data.items import FileImages, Images
from newkind.data.list_files import Listed, check_files, class_number, damaged, incomplete, read_rows, row_of, scan
from newkind.data.matlab import read_matlab
from newkind.data.names import Names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = [
    "SYNSET",
    "Listing",
    "check_class_count",
    "class_folders",
    "read_aircraft",
    "read_cars",
    "read_class_folders",
    "read_cub",
]

SYNSET = re.compile(r"n\d{8}")
SUFFIXES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
"""Image suffixes of torchvision's ImageFolder, with which the published order, and so the labelled subset, was made."""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Training images of a dataset in its own order.

    Parameters
    ----------
    images : Images, length n_images
        The images.
    class_ids : ndarray of int64, shape (n_images,)
        Index into `class_names`.
    class_names : tuple of str
        Names of the classes in the official order.
    """

    images: Images
    class_ids: NDArray[np.int64]
    class_names: tuple[str, ...]


def read_cub(folder: Path, *, n_classes: int) -> Listing:
    """CUB-200-2011: images.txt, image_class_labels.txt, train_test_split.txt and classes.txt, joined by image id."""
    labels_file, split_file = folder / "image_class_labels.txt", folder / "train_test_split.txt"
    class_names = _cub_class_names(folder / "classes.txt", n_classes)
    class_rows, split_rows = read_rows(labels_file), read_rows(split_file)
    listed, class_ids = [], []
    for row in read_rows(folder / "images.txt").values():
        split = row_of(split_rows, row, split_file)
        if split.value not in ("0", "1"):
            raise damaged(f"expected 0 or 1, got {split.value!r}.", path=split_file, line=split.line)
        if split.value == "1":
            of_class = row_of(class_rows, row, labels_file)
            class_ids.append(class_number(of_class.value, n_classes, path=labels_file, line=of_class.line) - 1)
            listed.append(Listed(f"{folder / 'images.txt'}, line {row.line}", row.value))
    return _listing(folder / "images", listed, class_ids, class_names)


def read_cars(folder: Path, *, n_classes: int) -> Listing:
    """Stanford Cars: devkit/cars_train_annos.mat and devkit/cars_meta.mat, images in cars_train."""
    annotations_file, meta_file = folder / "devkit" / "cars_train_annos.mat", folder / "devkit" / "cars_meta.mat"
    class_names = tuple(str(name) for name in read_matlab(meta_file, "class_names"))
    check_class_count(meta_file, len(class_names), n_classes)
    annotations = read_matlab(annotations_file, "annotations")
    if not all(isinstance(found, dict) and {"class", "fname"} <= found.keys() for found in annotations):
        raise damaged("'annotations' has no fields 'class' and 'fname'.", path=annotations_file)
    listed, class_ids = [], []
    for number, found in enumerate(annotations, start=1):
        class_ids.append(class_number(found["class"], n_classes, path=annotations_file, line=number) - 1)
        listed.append(Listed(f"{annotations_file}, annotation {number}", str(found["fname"])))
    return _listing(folder / "cars_train", listed, class_ids, class_names)


def read_aircraft(folder: Path, *, n_classes: int) -> Listing:
    """FGVC-Aircraft: data/images_variant_trainval.txt; the classes are the names of the variants, sorted."""
    list_file = folder / "data" / "images_variant_trainval.txt"
    rows = read_rows(list_file).values()
    class_names = tuple(sorted({row.value for row in rows}))
    check_class_count(list_file, len(class_names), n_classes)
    class_id_of = {name: class_id for class_id, name in enumerate(class_names)}
    listed = [Listed(f"{list_file}, line {row.line}", f"{row.key}.jpg") for row in rows]
    return _listing(folder / "data" / "images", listed, [class_id_of[row.value] for row in rows], class_names)


def read_class_folders(
    folder: Path, *, n_classes: int, keep: Iterable[int] | None = None, pattern: re.Pattern[str] | None = None
) -> Listing:
    """One subfolder per class, in the order of torchvision's ImageFolder: sorted folders, sorted files in them.

    `keep`: ids of the classes whose images are read, by default all. `pattern`: names of class folders, by default any.
    """
    class_names = tuple(class_folders(folder, pattern))
    check_class_count(folder, len(class_names), n_classes)
    wanted = sorted(keep) if keep is not None else range(n_classes)
    files = {class_names[i]: _image_files(folder / class_names[i]) for i in wanted}
    return Listing(
        images=FileImages(folder, Names(f"{name}/{file}" for name, found in files.items() for file in found)),
        class_ids=np.repeat(np.array(wanted, dtype=np.int64), [len(found) for found in files.values()]),
        class_names=class_names,
    )


def class_folders(folder: Path, pattern: re.Pattern[str] | None = None) -> list[str]:
    """Names of the visible subfolders (that match `pattern`), sorted as strings."""
    with scan(folder) as entries:
        found = (entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir())
        return sorted(name for name in found if pattern is None or pattern.fullmatch(name))


def check_class_count(place: Path, found: int, expected: int) -> None:
    """Raise DataError unless a file or folder has the expected number of classes."""
    if found != expected:
        what = f"{found:,} classes, expected {expected:,}."
        raise incomplete(what, path=place, code="class-count", found=found, expected=expected)


def _listing(root: Path, listed: Sequence[Listed], class_ids: Sequence[int], class_names: tuple[str, ...]) -> Listing:
    """Listing of image files that a list names; DataError unless they all exist."""
    check_files(root, listed)
    return Listing(
        images=FileImages(root, Names(image.name for image in listed)),
        class_ids=np.asarray(class_ids, dtype=np.int64),
        class_names=class_names,
    )


def _image_files(folder: Path) -> list[str]:
    """Names of the visible image files in a folder, sorted."""
    with scan(folder) as entries:
        names = (entry.name for entry in entries)
        return sorted(name for name in names if name.lower().endswith(SUFFIXES) and not name.startswith("."))


def _cub_class_names(path: Path, n_classes: int) -> tuple[str, ...]:
    """Class names of CUB, whose lines are numbered from 1."""
    rows = read_rows(path).values()
    check_class_count(path, len(rows), n_classes)
    for number, row in enumerate(rows, start=1):
        if row.key != str(number):
            raise damaged(f"expected class number {number}, got {row.key!r}.", path=path, line=row.line)
    return tuple(row.value for row in rows)
