"""Collections from folders with one subfolder per known class."""

from __future__ import annotations

import os
from collections.abc import Container
from pathlib import Path

import numpy as np

from newkind.data.catalog import Catalog, Collection
from newkind.data.decoding import IMAGE_SUFFIXES
from newkind.data.folder_walk import FolderWalk
from newkind.data.image_files import no_images
from newkind.data.items import FileImages
from newkind.data.names import Names, printable

__all__ = ["UNLABELLED_FOLDERS", "read_folder", "walk_folder"]

UNLABELLED_FOLDERS = frozenset({"unlabelled", "unlabeled", "unknown", "_"})


def read_folder(root: str | os.PathLike[str]) -> Collection:
    """Read a folder in which each subfolder is a known class.

    Images directly in the folder, and in subfolders called `unlabelled`, `unlabeled`, `unknown` or `_`, are unlabelled.
    Subfolders are searched to any depth.

    Parameters
    ----------
    root : path-like
        The folder.

    Returns
    -------
    Collection
        Image files in sorted order. Image files that cannot be used are in `skipped`, other files are counted in
        `ignored`.

    Raises
    ------
    DataError
        If the folder cannot be read (`unreadable`) or has no image (`no-images`).

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> root = Path(tempfile.mkdtemp())
    >>> for name in ("bee/1.png", "wasp/1.png", "unlabelled/1.png"):
    ...     (root / name).parent.mkdir()
    ...     Image.new("RGB", (8, 8)).save(root / name)
    >>> collection = read_folder(root)
    >>> list(collection.catalog.items.names), collection.catalog.labels.tolist()
    (['bee/1.png', 'unlabelled/1.png', 'wasp/1.png'], [0, -1, 1])
    """
    found = walk_folder(Path(root))
    if not len(found.catalog):
        fix = f"Expected one subfolder per known class with {', '.join(sorted(IMAGE_SUFFIXES))} files in it."
        raise no_images(f"{printable(str(root))} has no image", found.skipped, found.ignored, fix)
    return found


def walk_folder(root: Path, left_out: Container[str] = ()) -> Collection:
    """Collection of a folder as `read_folder` reads it, without the subfolders `left_out`; it may have no image."""
    walk = FolderWalk(root)
    names, labels, classes = _labelled_images(walk, root, left_out)
    return Collection(
        catalog=Catalog(
            items=FileImages(root, Names(names)), labels=np.array(labels, dtype=np.int32), class_names=tuple(classes)
        ),
        skipped=walk.skipped,
        ignored=dict(walk.ignored),
        origin=str(root),
        location=os.path.abspath(root),
    )


def _labelled_images(walk: FolderWalk, root: Path, left_out: Container[str]) -> tuple[list[str], list[int], list[str]]:
    """Names and labels (-1 for unlabelled) of the images below a folder, and the names of the classes."""
    names: list[str] = []
    labels: list[int] = []
    classes: list[str] = []
    for entry in walk.entries(root):
        if walk.is_folder(entry):
            if entry.name in left_out:
                continue
            is_unlabelled = entry.name.lower() in UNLABELLED_FOLDERS
            found = list(walk.images(entry.path))
            if is_unlabelled or found:
                labels += [-1 if is_unlabelled else len(classes)] * len(found)
                names += found
                classes += [] if is_unlabelled else [entry.name]
            else:
                walk.skip(entry.path, "folder without readable images", "empty-folder")
        elif walk.is_image(entry):
            names.append(entry.name)
            labels.append(-1)
    return names, labels, classes
