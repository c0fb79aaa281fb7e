"""Folders, arrays, features and torchvision datasets to a Collection. Tables are in `tables.py`."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind.data.catalog import ArrayImages, Catalog, Collection, DatasetImages, Features, FileImages, Images, Skipped
from newkind.data.decoding import IMAGE_SUFFIXES
from newkind.data.labels import encode_labels, encode_truth, label_name
from newkind.data.names import Names, printable
from newkind.errors import DataError

__all__ = ["from_arrays", "from_features", "from_torchvision", "read_folder", "read_npz"]

UNLABELLED_FOLDERS = frozenset({"unlabelled", "unlabeled", "unknown", "_"})
LISTS = ("labels", "truth", "names", "class_names")
SYSTEM_FILES = frozenset({"thumbs.db", "desktop.ini", "icon\r"})


def read_folder(root: Path) -> Collection:
    """Each subfolder is a known class; loose files and `unlabelled`, `unlabeled`, `unknown`, `_` hold the rest."""
    walk = _Walk(root=root)
    names: list[str] = []
    label_of: list[int] = []
    classes: list[str] = []
    for entry in walk.entries(root):
        if walk.is_folder(entry):
            rest = entry.name.lower() in UNLABELLED_FOLDERS
            found = list(walk.images(entry.path))
            if rest or found:
                label_of += [-1 if rest else len(classes)] * len(found)
                names += found
                classes += [] if rest else [entry.name]
            else:
                walk.leave_out(entry.path, "a folder without an image")
        elif walk.is_image(entry):
            names.append(entry.name)
            label_of.append(-1)
    if not names:
        raise DataError(
            f"{printable(str(root))} holds no image.",
            fix=f"Expected one subfolder a known class, with {', '.join(sorted(IMAGE_SUFFIXES))} files in them.",
        )
    return Collection(
        catalog=Catalog(
            items=FileImages(root, Names(names)), labels=np.array(label_of, dtype=np.int32), class_names=tuple(classes)
        ),
        skipped=tuple(Skipped(name, reason) for name, reason in walk.left_out.items()),
        origin=str(root),
        location=os.path.abspath(root),
    )


class _Walk:
    """Walks folders in sorted order, follows links but not in circles, and remembers what it left out."""

    def __init__(self, root: Path) -> None:
        self.prefix = len(os.path.join(root, ""))
        self.above: set[tuple[int, int]] = set()
        real = Path(os.path.realpath(root))
        for folder in (real, *real.parents):
            with suppress(OSError):
                self.above.add(_identity(folder))
        self.left_out: dict[str, str] = {}

    def leave_out(self, path: str, reason: str) -> None:
        self.left_out.setdefault(path[self.prefix :], reason)

    def entries(self, folder: str | Path) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as found:
                return sorted((e for e in found if not _is_hidden(e.name)), key=lambda e: e.name)
        except OSError as error:
            if len(str(folder)) < self.prefix:
                raise DataError(f"The folder {printable(str(folder))} cannot be read ({error.strerror}).") from None
            self.leave_out(str(folder), f"a folder that cannot be read ({error.strerror})")
            return []

    def is_folder(self, entry: os.DirEntry[str]) -> bool:
        try:
            return entry.is_dir()
        except OSError:
            return False

    def is_image(self, entry: os.DirEntry[str]) -> bool:
        """Whether to take this file; otherwise it is left out, with the reason."""
        suffix = os.path.splitext(entry.name)[1].lower()
        try:
            if not entry.is_file():
                reason = "not a regular file" if os.path.exists(entry.path) else "a broken link"
            elif suffix in IMAGE_SUFFIXES:
                return True
            else:
                reason = f"not an image file ({suffix or 'no suffix'})"
        except OSError as error:
            reason = f"cannot be read ({error.strerror})"
        self.leave_out(entry.path, reason)
        return False

    def images(self, folder: str) -> Iterator[str]:
        """Paths, relative to the root, of all images below `folder`; each real folder is read once."""
        seen: set[tuple[int, int]] = set()
        pending = [folder]
        while pending:
            path = pending.pop()
            if not self.is_new(path, seen):
                continue
            below = []
            for entry in self.entries(path):
                if self.is_folder(entry):
                    below.append(entry.path)
                elif self.is_image(entry):
                    yield entry.path[self.prefix :]
            pending += reversed(below)

    def is_new(self, folder: str, seen: set[tuple[int, int]]) -> bool:
        """Whether to read this folder, which is then `seen`; otherwise it is left out, with the reason."""
        try:
            identity = _identity(folder)
        except OSError as error:
            self.leave_out(folder, f"a folder that cannot be read ({error.strerror})")
            return False
        if identity in self.above:
            self.leave_out(folder, "a link that leads back to a folder above it")
        elif identity in seen:
            self.leave_out(folder, "a folder that was read already under another name")
        else:
            seen.add(identity)
            return True
        return False


def _identity(folder: str | Path) -> tuple[int, int]:
    status = os.stat(folder)
    return status.st_dev, status.st_ino


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "__MACOSX")) or name.lower() in SYSTEM_FILES


def from_arrays(
    images: NDArray[np.uint8],
    labels: Iterable[Any],
    *,
    truth: Iterable[Any] | None = None,
    class_names: Sequence[str] = (),
    names: Sequence[str] | None = None,
    origin: str = "arrays",
) -> Collection:
    """uint8 images (N, H, W[, C]) in memory or memory-mapped. `class_names` gives names to the labels 0, 1, ..."""
    return _in_memory(ArrayImages(images, _names_of(images, names)), labels, truth, class_names, origin)


def from_features(
    features: NDArray[np.floating[Any]],
    labels: Iterable[Any],
    *,
    truth: Iterable[Any] | None = None,
    class_names: Sequence[str] = (),
    names: Sequence[str] | None = None,
    origin: str = "features",
) -> Collection:
    """Ready features (N, d) of any modality."""
    return _in_memory(Features(features, _names_of(features, names)), labels, truth, class_names, origin)


def from_torchvision(dataset: Any, *, is_labelled: NDArray[np.bool_] | None = None) -> Collection:
    """A torchvision classification dataset: its targets are the truth, and the labels where `is_labelled`.

    Without `is_labelled` every item counts as labelled. Images must come untransformed.
    """
    targets = next((getattr(dataset, a) for a in ("targets", "labels", "_labels") if hasattr(dataset, a)), None)
    if targets is None:
        raise DataError(f"{type(dataset).__name__} has no targets.", fix="Use from_arrays with labels of your own.")
    truth = np.asarray(targets, dtype=np.int64)
    mask = np.ones(len(truth), dtype=bool) if is_labelled is None else np.asarray(is_labelled, dtype=bool)
    if mask.shape != truth.shape:
        raise DataError(f"The dataset has {len(truth)} items but is_labelled has shape {mask.shape}.")
    samples = getattr(dataset, "samples", None)
    pixels = getattr(dataset, "data", None)
    items: Images
    if isinstance(samples, list) and samples and isinstance(samples[0][0], str):
        root = Path(os.path.commonpath([os.path.dirname(path) for path, _ in samples]))
        items = FileImages(root, Names(os.path.relpath(path, root) for path, _ in samples))
    elif pixels is not None and np.asarray(pixels).dtype == np.uint8 and np.asarray(pixels).shape[-1] != len(truth):
        items = ArrayImages(np.asarray(pixels), _names_of(truth, None))
    else:
        items = DatasetImages(dataset, _names_of(truth, None))
    names = tuple(getattr(dataset, "classes", ()))
    return _in_memory(items, np.where(mask, truth, -1), truth, names, type(dataset).__name__)


def read_npz(path: Path) -> Collection:
    """An .npz with `images` or `features`, `labels`, and optionally `truth`, `class_names`, `names`. No pickle."""
    held = _arrays_in(path)
    kinds = [key for key in ("images", "features") if key in held]
    if len(kinds) != 1 or "labels" not in held:
        names = ", ".join(map(printable, sorted(held)))
        raise DataError(f"{path} holds {names or 'nothing'}; expected 'labels' and one of 'images', 'features'.")
    for key, array in held.items():
        if key in LISTS and array.ndim != 1:
            raise DataError(f"{path}: '{key}' has the shape {array.shape}; expected one dimension.")
        if key in kinds and array.ndim == 0:
            raise DataError(f"{path}: '{key}' is a single number; expected an array with one row an item.")
    build = from_arrays if kinds == ["images"] else from_features
    return build(
        held[kinds[0]],
        held["labels"].tolist(),
        truth=held["truth"].tolist() if "truth" in held else None,
        class_names=[str(name) for name in held.get("class_names", ())],
        names=[str(name) for name in held["names"]] if "names" in held else None,
        origin=str(path),
    )


def _arrays_in(path: Path) -> dict[str, NDArray[Any]]:
    try:
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError("it holds one array without a name: save it with np.savez")
        with archive:
            held = {key: archive[key] for key in archive.files}
    except (OSError, ValueError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(f"{path} cannot be read as an .npz file without pickled objects ({error}).") from None
    for key, array in held.items():
        if not isinstance(array, np.ndarray):
            raise DataError(f"{path}: '{printable(key)}' is not an array.", fix="Save it with np.savez.")
    return held


def _in_memory(
    items: Images | Features,
    labels: Iterable[Any],
    truth: Iterable[Any] | None,
    class_names: Sequence[str],
    origin: str,
) -> Collection:
    given = encode_labels(_named(label, class_names) for label in labels)
    if len(given.indices) != len(items):
        raise DataError(f"{len(items)} items but {len(given.indices)} labels; expected one label an item.")
    return Collection(
        catalog=Catalog(items=items, labels=given.indices, class_names=given.class_names),
        truth=None if truth is None else encode_truth((_named(label, class_names) for label in truth), given),
        origin=origin,
    )


def _named(label: Any, class_names: Sequence[str]) -> str | None:
    """The class name, or None for unlabelled; of a number, the name that it stands for, where names were given."""
    name = label_name(label)
    if name is None or isinstance(label, str) or not class_names:
        return name
    if int(name) >= len(class_names):
        raise DataError(f"The label {name} has no name: {len(class_names)} class names were given.")
    return class_names[int(name)]


def _names_of(rows: Any, names: Sequence[str] | None) -> Sequence[str]:
    if names is None:
        width = len(str(max(len(rows) - 1, 0)))
        return Names(f"{i:0{width}d}" for i in range(len(rows)))
    if len(names) != len(rows) or len(set(names)) != len(rows):
        raise DataError(f"{len(rows)} items need as many different names; got {len(set(names))}.")
    return Names(names)
