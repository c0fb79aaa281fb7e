"""What `predict` gets on the command line, as items: image files, folders and lists, or one table, file of boxes or archive."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind.data.boxed_data import BOX_OPTIONS, with_boxes
from newkind.data.catalog import UNLABELLED, Catalog, Collection, Skipped
from newkind.data.groups import number_groups
from newkind.data.image_files import ignored_files, list_files
from newkind.data.items import Features, FileImages, Images
from newkind.data.names import Names
from newkind.data.npy import load_items
from newkind.data.opening import has_many_items, open_data
from newkind.data.parquet_images import PARQUET, has_images
from newkind.data.table_rows import open_table
from newkind.data.tables import TABLE_SUFFIXES
from newkind.errors import DataError
from newkind.reading import ReadingConfig, check_used

__all__ = ["Inputs", "open_inputs", "read_inputs", "with_boxes_as_in"]

DATA_SUFFIXES = (*TABLE_SUFFIXES, ".json", ".tar", ".npy")
"""Files that are predicted alone."""


@dataclass(frozen=True)
class Inputs:
    """Items to predict.

    Parameters
    ----------
    items : Images or Features
        The items, in the order in which they were given.
    groups : ndarray of int64, shape (n,), optional
        Groups whose items share a category; -1 for none. Default: no groups.
    skipped : tuple of Skipped
        Images of a file of boxes or an archive that are not among the items, such as those without a box.
    notes : tuple of str
        What was detected in a table, in sentences.
    """

    items: Images | Features
    groups: NDArray[np.int64] | None = None
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()


def open_inputs(places: Sequence[Path], reading: ReadingConfig, *, missing_ok: bool = False) -> Inputs:
    """Items to predict.

    Parameters
    ----------
    places : sequence of Path
        Image files, folders, .txt files that list one image per line, or .npz files with features; or one table, .json file
        with boxes, .npy file, .tar file, .parquet file with images or folder of them, or folder that `newkind features` wrote. An image that is given twice is predicted
        twice.
    reading : ReadingConfig
        Columns of a table, and boxes. Labels and true classes are not used.
    missing_ok : bool, default=False
        Whether an image file that does not exist is passed on, so that it gets the status `unreadable`. Those that a table
        lists always are.

    Returns
    -------
    Inputs

    Raises
    ------
    DataError
        With the code `mixed-inputs` for several inputs of which one has to be predicted alone, or as from `open_data`.
    """
    if reading.boxes is not None:
        return _open_boxed(places, reading)
    if len(places) == 1:
        suffix = places[0].suffix.lower()
        if suffix in TABLE_SUFFIXES and not (suffix in PARQUET and has_images(places[0], reading)):
            return _open_rows(places[0], reading)
        if suffix == ".npy":
            check_used(reading, (), "an .npy file")
            values, make = load_items(places[0])
            return Inputs(make(values, [None] * len(values)).catalog.items)
        if has_many_items(places[0]) or (reading.given() and places[0].is_dir()):
            found = open_data(places[0], **reading.given())
            others = ignored_files(found.ignored)
            notes = (*found.notes, f"Ignored: {others}.") if others else tuple(found.notes)
            return Inputs(found.catalog.items, found.catalog.groups, found.skipped, notes)
    check_used(reading, (), "images without a table")
    if not missing_ok and (alone := [place for place in places if place.suffix.lower() in DATA_SUFFIXES]):
        raise DataError(
            f"{alone[0]} cannot be predicted together with other inputs.",
            fix="Predict it alone.",
            code="mixed-inputs",
            path=str(alone[0]),
        )
    return Inputs(_given_files(places, missing_ok=missing_ok))


def read_inputs(
    places: Sequence[Path], *, missing_ok: bool = False, of_run: Mapping[str, Any] | None = None
) -> Images | Features:
    """Items of `open_inputs` without options; boxes are cropped as in the run with these options for reading."""
    reading = with_boxes_as_in(of_run or {}, places, ReadingConfig())
    return open_inputs(places, reading, missing_ok=missing_ok).items


def with_boxes_as_in(
    of_run: Mapping[str, Any], places: Sequence[Path], reading: ReadingConfig, given: Container[str] = ()
) -> ReadingConfig:
    """Options with those for boxes of a run, except those that the user has given.

    The model knows boxes of that margin, category and confidence.

    Examples
    --------
    >>> with_boxes_as_in({"box_margin": 0.3}, [Path("found.json")], ReadingConfig()).box_margin
    0.3
    >>> with_boxes_as_in({"box_margin": 0.3}, [Path("a.jpg")], ReadingConfig()).box_margin
    0.1
    """
    if reading.boxes is None and not (len(places) == 1 and places[0].suffix.lower() == ".json"):
        return reading
    own = {name: of_run[name] for name in BOX_OPTIONS if name in of_run and name not in given}
    return replace(reading, **own)


def _open_boxed(places: Sequence[Path], reading: ReadingConfig) -> Inputs:
    """Boxes of a detector in images; its file names start from the folder of the images, if one is given."""
    others = {name: value for name, value in reading.given().items() if name not in ("boxes", *BOX_OPTIONS)}
    found = open_inputs(places, ReadingConfig(**others))
    items = found.items
    if len(places) == 1 and places[0].is_dir() and isinstance(items, FileImages):
        items = FileImages(places[0], Names(os.path.relpath(items.path(i), places[0]) for i in range(len(items))))
    labels = np.full(len(items), UNLABELLED, dtype=np.int32)
    catalog = Catalog(items=items, labels=labels, class_names=(), groups=found.groups)
    boxed = with_boxes(Collection(catalog=catalog, origin=str(places[0])), reading)
    notes = (*found.notes, *boxed.notes)
    return Inputs(boxed.catalog.items, boxed.catalog.groups, found.skipped + boxed.skipped, notes)


def _open_rows(path: Path, reading: ReadingConfig) -> Inputs:
    """One item per row of a table, also for files that do not exist."""
    check_used(reading, ("file_column", "group_column", "image_folder"), "a table to predict")
    with open_table(path, reading, needed=("file",), roles=("file", "group")) as table:
        rows = list(table.rows)
    if not rows:
        raise DataError(f"{path} lists no file.", code="empty-table", path=str(path))
    items = FileImages(reading.image_folder or path.parent, Names(row.file for row in rows))
    groups = None if table.columns.group is None else number_groups([row.group for row in rows])
    return Inputs(items, groups, notes=table.notes())


def _given_files(places: Sequence[Path], *, missing_ok: bool) -> Images | Features:
    """Image files, folders and lists, or .npz files with features."""
    arrays = [place.suffix.lower() == ".npz" for place in places]
    if any(arrays):
        if not all(arrays):
            raise DataError(
                "Images and .npz files cannot be predicted together.",
                fix="Predict them separately.",
                code="mixed-inputs",
            )
        return _join([_features(place) for place in places])
    return FileImages(Path(), Names(list_files(places, missing_ok=missing_ok)))


def _features(path: Path) -> Features:
    """Features of an .npz file."""
    items = open_data(path).catalog.items
    if not isinstance(items, Features):
        raise DataError(
            f"{path} contains images, not features.",
            fix="Predict image files, or an .npz file with `features`.",
            code="not-features",
            path=str(path),
        )
    return items


def _join(parts: list[Features]) -> Features:
    dims = {part.values.shape[1] for part in parts}
    if len(dims) > 1:
        raise DataError(f"The .npz files have features of different dimensions: {sorted(dims)}.", code="mixed-inputs")
    names = [name for part in parts for name in part.names]
    return parts[0] if len(parts) == 1 else Features(np.concatenate([part.values for part in parts]), names)
