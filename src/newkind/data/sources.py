"""Folders, arrays, features and torchvision datasets to a Collection. Tables are in `tables.py`."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind.data.catalog import ArrayImages, Catalog, Collection, DatasetImages, Features, FileImages, Images, SetAside
from newkind.data.decoding import IMAGE_SUFFIXES
from newkind.data.labels import encode_labels, encode_truth
from newkind.data.names import Names, printable
from newkind.errors import DataError

__all__ = ["from_arrays", "from_features", "from_torchvision", "read_folder", "read_npz"]

UNLABELLED_FOLDERS = frozenset({"unlabelled", "unlabeled", "unknown", "_"})
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
        set_aside=tuple(walk.set_aside),
        origin=str(root),
    )


class _Walk:
    """Walks folders in sorted order, follows links but not in circles, and remembers what it left out."""

    def __init__(self, root: Path) -> None:
        self.prefix = len(os.path.join(root, ""))
        self.set_aside: list[SetAside] = []

    def leave_out(self, path: str, reason: str) -> None:
        self.set_aside.append(SetAside(path[self.prefix :], reason))

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
            if suffix in IMAGE_SUFFIXES and entry.is_file():
                return True
            reason = "a broken link" if entry.is_symlink() else f"not an image file ({suffix or 'no suffix'})"
        except OSError as error:
            reason = f"cannot be read ({error.strerror})"
        self.leave_out(entry.path, reason)
        return False

    def images(self, folder: str) -> Iterator[str]:
        """Paths, relative to the root, of all images below `folder`."""
        pending: list[tuple[str, tuple[tuple[int, int], ...]]] = [(folder, (_identity(folder),))]
        while pending:
            path, ancestors = pending.pop()
            below = []
            for entry in self.entries(path):
                if self.is_folder(entry):
                    identity = _identity(entry.path)
                    if identity in ancestors:
                        self.leave_out(entry.path, "a link that leads back to a folder above it")
                    else:
                        below.append((entry.path, (*ancestors, identity)))
                elif self.is_image(entry):
                    yield entry.path[self.prefix :]
            pending += reversed(below)


def _identity(folder: str) -> tuple[int, int]:
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
    try:
        with np.load(path, allow_pickle=False) as archive:
            held = {key: archive[key] for key in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise DataError(f"{path} cannot be read as an .npz file without pickled objects ({error}).") from None
    kinds = [key for key in ("images", "features") if key in held]
    if len(kinds) != 1 or "labels" not in held:
        raise DataError(
            f"{path} holds {', '.join(sorted(held)) or 'nothing'}; expected 'labels' and one of 'images', 'features'."
        )
    build = from_arrays if kinds == ["images"] else from_features
    return build(
        held[kinds[0]],
        held["labels"].tolist(),
        truth=held["truth"].tolist() if "truth" in held else None,
        class_names=[str(name) for name in held.get("class_names", ())],
        names=[str(name) for name in held["names"]] if "names" in held else None,
        origin=str(path),
    )


def _in_memory(
    items: Images | Features,
    labels: Iterable[Any],
    truth: Iterable[Any] | None,
    class_names: Sequence[str],
    origin: str,
) -> Collection:
    given = encode_labels(_named(labels, class_names))
    if len(given.indices) != len(items):
        raise DataError(f"{len(items)} items but {len(given.indices)} labels; expected one label an item.")
    return Collection(
        catalog=Catalog(items=items, labels=given.indices, class_names=given.class_names),
        truth=None if truth is None else encode_truth(_named(truth, class_names), given),
        origin=origin,
    )


def _named(labels: Iterable[Any], class_names: Sequence[str]) -> Iterable[Any]:
    """Integer labels by the names they stand for, where names were given."""
    if not class_names:
        return labels
    try:
        return [
            label if isinstance(label, str) else class_names[int(label)] if label >= 0 else None for label in labels
        ]
    except IndexError:
        raise DataError(f"A label is larger than the {len(class_names)} class names that were given.") from None


def _names_of(rows: Any, names: Sequence[str] | None) -> Sequence[str]:
    if names is None:
        width = len(str(max(len(rows) - 1, 0)))
        return Names(f"{i:0{width}d}" for i in range(len(rows)))
    if len(names) != len(rows) or len(set(names)) != len(rows):
        raise DataError(f"{len(rows)} items need as many different names; got {len(set(names))}.")
    return Names(names)
