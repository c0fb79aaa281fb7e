"""Images from other places added to a collection of image files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from newkind.data.catalog import UNLABELLED, Catalog, Collection
from newkind.data.cells import group_name
from newkind.data.groups import encode_groups
from newkind.data.image_files import find_images
from newkind.data.items import FileImages
from newkind.data.labels import Labels
from newkind.data.names import Names, printable
from newkind.data.opening import open_data
from newkind.data.tables import METADATA_FILES
from newkind.errors import DataError, NewkindError

__all__ = ["add_images", "file_images", "select_images"]


def add_images(collection: Collection, places: Sequence[str | os.PathLike[str]]) -> Collection:
    """Add the images of folders and tables to a collection.

    Parameters
    ----------
    collection : Collection
        Image files.
    places : sequence of str or path-like
        Folders, whose images at any depth are unlabelled, and tables (.csv, .tsv, .jsonl, or a folder with
        `metadata.csv` or `metadata.jsonl`), which may have labels.

    Returns
    -------
    Collection
        Names of added images are absolute paths. It has no truth. Columns and groups of added tables are used; tables are
        read with the columns that were named for the collection, if they have them.

    Raises
    ------
    DataError
        With the code `not-images` if something else than image files is given, `overlapping-folders` if a file is in two
        places, `group-conflict` if a group has two labels, or as from `open_data`.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> root = Path(tempfile.mkdtemp())
    >>> for name in ("old/bee/1.png", "old/wasp/1.png", "march/a/2.png"):
    ...     (root / name).parent.mkdir(parents=True)
    ...     Image.new("RGB", (8, 8)).save(root / name)
    >>> found = add_images(open_data(root / "old"), [root / "march"]).catalog
    >>> [Path(name).name for name in found.items.names], found.labels.tolist()
    (['1.png', '1.png', '2.png'], [0, 1, -1])
    """
    images = file_images(collection)
    names, classes = list(images.names), list(collection.catalog.class_names)
    labels = [collection.catalog.labels]
    skipped, metadata = list(collection.skipped), [(len(images), collection.metadata)]
    owner = dict.fromkeys(_paths(images), printable(str(images.root)))
    for place in places:
        found = _open(Path(place), collection.reading)
        own = file_images(found)
        _own_paths(owner, own, printable(str(place)))
        names += [os.path.abspath(own.path(i)) for i in range(len(own))]
        classes += [name for name in found.catalog.class_names if name not in classes]
        number = np.array([*map(classes.index, found.catalog.class_names), UNLABELLED], dtype=np.int32)
        labels.append(number[found.catalog.labels])  # -1 is the last one
        skipped += found.skipped
        metadata.append((len(own), found.metadata))
    given, columns = Labels(np.concatenate(labels), tuple(classes)), _joined(metadata)
    group = columns.get(collection.group_column)
    catalog = Catalog(
        items=FileImages(images.root, Names(names)),
        labels=given.indices,
        class_names=given.class_names,
        groups=None if group is None else encode_groups([group_name(text) for text in group], given),
    )
    return replace(collection, catalog=catalog, truth=None, skipped=tuple(skipped), benchmark="", metadata=columns)


def _own_paths(owner: dict[str, str], images: FileImages, place: str) -> None:
    """Note the place of each image file; two places of one file are an error."""
    for path in _paths(images):
        if path in owner:
            raise DataError(
                f"{printable(path)} is in {owner[path]} and in {place}.",
                fix="Name folders that do not overlap, each once.",
                code="overlapping-folders",
                file=path,
            )
    owner |= dict.fromkeys(_paths(images), place)


def _joined(parts: Sequence[tuple[int, Mapping[str, Sequence[str]]]]) -> dict[str, Names]:
    """Columns of several collections, given with the number of their items; items without a column have an empty text."""
    columns = dict.fromkeys(name for _, own in parts for name in own)
    return {name: Names(text for n, own in parts for text in own.get(name, ("",) * n)) for name in columns}


def select_images(collection: Collection, rows: Sequence[int]) -> Collection:
    """Collection of some of the image files of a collection, in this order."""
    images, catalog = file_images(collection), collection.catalog
    items, at = FileImages(images.root, Names(images.names[i] for i in rows)), np.array(rows, dtype=np.int64)
    groups = None if catalog.groups is None else catalog.groups[at]
    chosen = replace(catalog, items=items, labels=catalog.labels[at], groups=groups)
    metadata = {name: Names(texts[i] for i in rows) for name, texts in collection.metadata.items()}
    return replace(collection, catalog=chosen, truth=None, metadata=metadata)


def file_images(collection: Collection) -> FileImages:
    """Image files of a collection; DataError (`not-images`) if it has something else."""
    items = collection.catalog.items
    if not isinstance(items, FileImages):
        raise DataError(
            f"{printable(collection.origin) or 'The data'} does not consist of image files.",
            fix="Use a folder of images or a table of image files.",
            code="not-images",
        )
    return items


def _open(place: Path, reading: Mapping[str, Any]) -> Collection:
    """Images of a folder, all unlabelled, or of a table, whose columns are those of `reading` if it has them."""
    if not place.is_dir() or any((place / name).is_file() for name in METADATA_FILES):
        columns = {name: reading[name] for name in ("file_column", "label_column") if name in reading}
        try:
            return open_data(place, **columns)
        except NewkindError as error:
            if not columns or error.code not in ("missing-column", "unused-option"):
                raise
            there = error.facts.get("columns", ())
            return open_data(place, **{name: text for name, text in columns.items() if text.strip().lower() in there})
    found = find_images([place])
    catalog = Catalog(
        items=FileImages(Path(), Names(found.names)),
        labels=np.full(len(found.names), UNLABELLED, dtype=np.int32),
        class_names=(),
    )
    return Collection(catalog=catalog, skipped=found.skipped, origin=str(place))


def _paths(images: FileImages) -> list[str]:
    """Absolute paths of all images; links to folders on the way are followed."""
    folders: dict[str, str] = {}
    found = []
    for name in images.names:
        folder, file = os.path.split(os.path.join(images.root, name))
        if folder not in folders:
            folders[folder] = os.path.realpath(folder)
        found.append(os.path.join(folders[folder], file))
    return found
