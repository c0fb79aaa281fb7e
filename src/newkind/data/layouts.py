"""The official layouts of published datasets on disk: which training images there are, and of which class.

The order of the images decides which of them the published runs labelled, so it is the layout's own.
Directories are listed, files are never touched one by one: ImageNet has 1.3 million.
"""

from __future__ import annotations

import os
import re
import reprlib
import struct
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from newkind.data.catalog import FileImages, Images
from newkind.data.names import Names, printable
from newkind.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = [
    "SYNSET",
    "Listing",
    "class_folders",
    "expect_classes",
    "read_aircraft",
    "read_cars",
    "read_class_folders",
    "read_cub",
]

SYNSET = re.compile(r"n\d{8}")
SUFFIXES = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")
"""What torchvision's ImageFolder takes for an image: the order, and so the labelled subset, was made with it."""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """A dataset's training images in its own order."""

    images: Images
    class_ids: NDArray[np.int64]
    """(N,), an index into `class_names`."""
    class_names: tuple[str, ...]
    """In the dataset's official order."""


class Row(NamedTuple):
    """A line 'key value' of a list file."""

    line: int
    key: str
    value: str


class Listed(NamedTuple):
    """An image that a list file names, and where it does so."""

    place: str
    name: str


def read_cub(folder: Path, *, n_classes: int) -> Listing:
    """CUB-200-2011: images.txt, image_class_labels.txt, train_test_split.txt and classes.txt, joined by image id."""
    class_names = _cub_class_names(folder / "classes.txt", n_classes)
    class_rows, split_rows = _by_key(folder / "image_class_labels.txt"), _by_key(folder / "train_test_split.txt")
    listed, class_ids = [], []
    for row in _by_key(folder / "images.txt").values():
        split = _joined(split_rows, row, folder / "train_test_split.txt")
        if split.value not in ("0", "1"):
            raise DataError(
                f"{folder / 'train_test_split.txt'}, line {split.line}: expected 0 or 1, got {split.value!r}."
            )
        if split.value == "1":
            of_class = _joined(class_rows, row, folder / "image_class_labels.txt")
            place = f"{folder / 'image_class_labels.txt'}, line {of_class.line}"
            class_ids.append(_class_number(of_class.value, n_classes, place) - 1)
            listed.append(Listed(f"{folder / 'images.txt'}, line {row.line}", row.value))
    _require_files(folder / "images", listed)
    return _listing(folder / "images", (image.name for image in listed), class_ids, class_names)


def read_cars(folder: Path, *, n_classes: int) -> Listing:
    """Stanford Cars: devkit/cars_train_annos.mat and cars_meta.mat, images in cars_train."""
    annotations_file, meta_file = folder / "devkit" / "cars_train_annos.mat", folder / "devkit" / "cars_meta.mat"
    class_names = tuple(str(name) for name in _matlab(meta_file, "class_names"))
    expect_classes(meta_file, len(class_names), n_classes)
    annotations = _matlab(annotations_file, "annotations")
    if not {"class", "fname"} <= set(annotations.dtype.names or ()):
        raise DataError(f"{annotations_file}: 'annotations' has no fields 'class' and 'fname'.")
    listed, class_ids = [], []
    for number, (of_class, name) in enumerate(zip(annotations["class"], annotations["fname"], strict=True), start=1):
        place = f"{annotations_file}, annotation {number}"
        class_ids.append(_class_number(of_class, n_classes, place) - 1)
        listed.append(Listed(place, str(name)))
    _require_files(folder / "cars_train", listed)
    return _listing(folder / "cars_train", (image.name for image in listed), class_ids, class_names)


def read_aircraft(folder: Path, *, n_classes: int) -> Listing:
    """FGVC-Aircraft: data/images_variant_trainval.txt; classes are the variants' names, sorted."""
    list_file, image_folder = folder / "data" / "images_variant_trainval.txt", folder / "data" / "images"
    rows = _by_key(list_file).values()
    class_names = tuple(sorted({row.value for row in rows}))
    expect_classes(list_file, len(class_names), n_classes)
    class_id_of = {name: class_id for class_id, name in enumerate(class_names)}
    listed = [Listed(f"{list_file}, line {row.line}", f"{row.key}.jpg") for row in rows]
    _require_files(image_folder, listed)
    return _listing(
        image_folder, (image.name for image in listed), [class_id_of[row.value] for row in rows], class_names
    )


def read_class_folders(
    folder: Path, *, n_classes: int, keep: Iterable[int] | None = None, pattern: re.Pattern[str] | None = None
) -> Listing:
    """One subfolder a class, in the order of torchvision's ImageFolder: sorted folders, sorted files in them.

    `keep`: the class ids whose images are wanted; all by default. `pattern`: what a class's folder is called.
    """
    class_names = tuple(class_folders(folder, pattern))
    expect_classes(folder, len(class_names), n_classes)
    wanted = sorted(keep) if keep is not None else range(n_classes)
    files = {class_names[i]: _image_files(folder / class_names[i]) for i in wanted}
    class_ids = np.repeat(np.array(wanted, dtype=np.int64), [len(names) for names in files.values()])
    return _listing(folder, (f"{c}/{name}" for c, names in files.items() for name in names), class_ids, class_names)


def class_folders(folder: Path, pattern: re.Pattern[str] | None = None) -> list[str]:
    """The names of the visible subfolders (that match `pattern`), sorted as strings."""
    with _scan(folder) as entries:
        found = (entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir())
        return sorted(name for name in found if pattern is None or pattern.fullmatch(name))


def expect_classes(place: Path, found: int, expected: int) -> None:
    if found != expected:
        raise DataError(
            f"{place}: {found:,} classes, expected {expected:,}.", fix="Unpack the dataset again: it is not complete."
        )


def _listing(
    root: Path, names: Iterable[str], class_ids: Sequence[int] | NDArray[np.int64], classes: tuple[str, ...]
) -> Listing:
    images = FileImages(root, Names(names))
    return Listing(images=images, class_ids=np.asarray(class_ids, dtype=np.int64), class_names=classes)


@contextmanager
def _scan(folder: Path) -> Iterator[Iterator[os.DirEntry[str]]]:
    try:
        with os.scandir(folder) as entries:
            yield entries
    except OSError as error:
        raise DataError(
            f"{folder}: this folder cannot be listed ({error.strerror}).", fix="Unpack the dataset again."
        ) from None


def _image_files(folder: Path) -> list[str]:
    with _scan(folder) as entries:
        names = (entry.name for entry in entries)
        return sorted(name for name in names if name.lower().endswith(SUFFIXES) and not name.startswith("."))


def _require_files(root: Path, listed: Sequence[Listed]) -> None:
    """Raises DataError unless each listed name is there, once, directly in `root` or in a direct subfolder of it."""
    contents = {"": _entries(root)}
    seen: set[str] = set()
    missing = []
    for image in listed:
        parent, slash, file = image.name.rpartition("/")
        # A parent is looked up among the entries of `root`, so "..", "a/b" and absolute paths are never followed.
        if parent not in contents and parent in contents[""]:
            contents[parent] = _entries(root / parent)
        if (slash and not parent) or file not in contents.get(parent, ()):
            missing.append(image)
        if image.name in seen:
            raise DataError(
                f"{image.place}: {printable(image.name)} is listed twice.", fix="Take the official list file."
            )
        seen.add(image.name)
    if missing:
        more = f" {len(missing) - 1:,} more are missing." if len(missing) > 1 else ""
        raise DataError(
            f"{missing[0].place}: the image {printable(missing[0].name)} is not in {root}.{more}",
            fix="Unpack the dataset again.",
        )


def _entries(folder: Path) -> frozenset[str]:
    with _scan(folder) as entries:
        return frozenset(entry.name for entry in entries)


def _by_key(path: Path) -> dict[str, Row]:
    """The rows of a list file in its order, by their first field. Lines without two fields and repeated keys are errors."""
    try:
        if path.exists() and not path.is_file():  # reading a pipe would wait for ever
            raise DataError(f"{path} is not a regular file.", fix="Unpack the dataset again.")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror}).", fix="Unpack the dataset again.") from None
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: byte {error.start} is not UTF-8 text.", fix="Unpack the dataset again.") from None
    rows: dict[str, Row] = {}
    for line, content in enumerate(text.split("\n"), start=1):
        fields = content.split(maxsplit=1)
        if not fields:
            continue
        if len(fields) != 2:
            raise DataError(f"{path}, line {line}: expected two fields, got {content.strip()!r}.")
        if fields[0] in rows:
            raise DataError(f"{path}, line {line}: {fields[0]!r} is listed already in line {rows[fields[0]].line}.")
        rows[fields[0]] = Row(line, fields[0], fields[1].rstrip())
    return rows


def _joined(rows: dict[str, Row], image: Row, path: Path) -> Row:
    if image.key not in rows:
        raise DataError(f"{path}: no line for image {image.key!r} ({printable(image.value)}), which images.txt lists.")
    return rows[image.key]


def _cub_class_names(path: Path, n_classes: int) -> tuple[str, ...]:
    rows = _by_key(path).values()
    expect_classes(path, len(rows), n_classes)
    for number, row in enumerate(rows, start=1):
        if row.key != str(number):
            raise DataError(f"{path}, line {row.line}: expected class number {number}, got {row.key!r}.")
    return tuple(row.value for row in rows)


def _class_number(value: object, n_classes: int, place: str) -> int:
    """A 1-based class number."""
    text = str(value)
    # The length comes first: Python refuses to convert more than 4,300 digits.
    if not (len(text) <= 9 and text.isascii() and text.isdigit() and 1 <= int(text) <= n_classes):
        raise DataError(f"{place}: expected a class number from 1 to {n_classes}, got {reprlib.repr(text)}.")
    return int(text)


def _matlab(path: Path, variable: str) -> NDArray[Any]:
    """A variable of a MATLAB file, one-dimensional."""
    from scipy.io import loadmat  # slow to import, and only one dataset needs it
    from scipy.io.matlab import MatReadError

    if not path.is_file():
        raise DataError(f"{path} is missing.", fix="Unpack the dataset's devkit.")
    try:
        content = loadmat(path, squeeze_me=True, variable_names=[variable])
    except (
        MatReadError,
        ArithmeticError,
        AttributeError,
        NameError,
        OSError,
        ValueError,
        TypeError,
        LookupError,
        NotImplementedError,
        MemoryError,
        zlib.error,
        struct.error,
    ) as error:
        raise DataError(
            f"{path} cannot be read as a MATLAB file ({error}).", fix="Unpack the dataset's devkit again."
        ) from None
    if variable not in content:
        raise DataError(f"{path}: it has no variable '{variable}'.", fix="Unpack the dataset's devkit again.")
    return np.atleast_1d(content[variable])
