"""Folders of images with a table of metadata in them, or in splits, as Hugging Face's datasets have them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from newkind.data.catalog import Catalog, Collection, Skipped
from newkind.data.cells import group_name
from newkind.data.decoding import has_image_suffix
from newkind.data.folder_walk import FolderWalk, has_images_below
from newkind.data.folders import UNLABELLED_FOLDERS, read_folder, walk_folder
from newkind.data.groups import encode_groups
from newkind.data.items import FileImages
from newkind.data.labels import Labels, combine_truth, encode_names, encode_truth
from newkind.data.names import Names, printable
from newkind.data.table_rows import Row, Table, open_table
from newkind.data.tables import METADATA_FILES, FolderListing, read_table
from newkind.errors import DataError
from newkind.reading import ReadingConfig, check_used

__all__ = ["read_image_folder"]

SPLITS = frozenset({"train", "training", "test", "testing", "validation", "valid", "val", "dev", "eval", "evaluation"})


def read_image_folder(root: Path, reading: ReadingConfig) -> Collection:
    """Collection of a folder: with class folders, with a table of metadata, or with one subfolder per split."""
    splits = _splits(root)
    if not splits:
        return _read_part(root, reading)
    parts = {
        name: _read_part(root / name, reading) if _holds_classes(root / name) else walk_folder(root / name)
        for name in splits
    }
    return _joined(root, parts | {"": walk_folder(root, left_out=splits)}, reading)


def _splits(root: Path) -> list[str]:
    """Names of the split folders; empty unless all subfolders with labelled images are splits, and one of them holds classes.

    A class may be called `train`: its folder contains images, not folders or a table.
    """
    if _metadata_file(root) is not None:
        return []
    walk = FolderWalk(root)
    folders = [entry.name for entry in walk.entries(root) if walk.is_folder(entry)]
    names = [name for name in folders if name.lower() in SPLITS]
    if not any(_holds_classes(root / name) for name in names):
        return []
    others = [name for name in folders if name.lower() not in SPLITS | UNLABELLED_FOLDERS]
    return [] if any(has_images_below(root / name) for name in others) else names


def _holds_classes(folder: Path) -> bool:
    """Whether a folder has a table of metadata, or subfolders but no images."""
    if _metadata_file(folder) is not None:
        return True
    walk = FolderWalk(folder)
    entries = walk.entries(str(folder))
    has_images = any(has_image_suffix(entry.name) for entry in entries)
    return not has_images and any(walk.is_folder(entry) for entry in entries)


def _metadata_file(folder: Path) -> Path | None:
    return next((folder / name for name in METADATA_FILES if os.path.isfile(folder / name)), None)


def _read_part(folder: Path, reading: ReadingConfig) -> Collection:
    """Collection of one folder; where a table has no labels, its columns are joined to those of class folders."""
    path = _metadata_file(folder)
    if path is None:
        check_used(reading, (), "a folder without a table")
        return read_folder(folder)
    with open_table(path, reading, needed=()) as table:
        if table.columns.label is not None or not _has_folders(folder):
            return read_table(path, **reading.given())
        check_used(reading, ("file_column", "truth_column", "group_column"), "a folder with class folders and a table")
        return _with_metadata(read_folder(folder), path, table)


def _has_folders(folder: Path) -> bool:
    walk = FolderWalk(folder)
    return any(walk.is_folder(entry) for entry in walk.entries(str(folder)))


def _with_metadata(found: Collection, path: Path, table: Table) -> Collection:
    """Collection with the columns of a table; images that it does not list have empty cells."""
    if table.columns.file is None:
        raise DataError(
            f"{path} has no column with file names.", fix="Choose it with `file_column`.", code="missing-column",
            path=str(path),
        )  # fmt: skip
    rows = {row.file: row for row in table.rows}
    at, names = table.columns, list(found.catalog.items.names)
    empty = Row(0, "", "", None if at.truth is None else "", "", ("",) * len(at.names))
    chosen = [rows.get(name, empty) for name in names]
    listing, known = FolderListing(path.parent), set(names)
    missing = (listing.problem(row.file, f" (line {row.line})") for row in rows.values() if row.file not in known)
    catalog = found.catalog
    given = Labels(catalog.labels, catalog.class_names)
    if at.group is not None:
        catalog = replace(catalog, groups=encode_groups([row.group for row in chosen], given))
    return replace(
        found,
        catalog=catalog,
        truth=None if at.truth is None else encode_truth((row.truth for row in chosen), given),
        skipped=found.skipped + tuple(problem for problem in missing if problem is not None),
        notes=(*table.notes(), f"Labels are the names of folders; {path.name} has no column of labels."),
        metadata={name: Names(row.metadata[i] for row in chosen) for i, name in enumerate(at.names)},
        group_column=at.group_name,
    )


def _joined(root: Path, parts: Mapping[str, Collection], reading: ReadingConfig) -> Collection:
    """One collection of all splits, whose names are metadata; the part "" is beside them."""
    names: list[str] = []
    labels: list[str | None] = []
    truths: list[str | None] = []
    skipped: list[Skipped] = []
    ignored: dict[str, int] = {}
    metadata: dict[str, list[str]] = {"split": []}
    notes = [f"The folders {', '.join(filter(None, parts))} are splits of one dataset."]
    notes += [note for part in parts.values() for note in part.notes]
    for split, part in parts.items():
        catalog, truth, prefix = part.catalog, part.truth, f"{split}/" if split else ""
        for name in part.metadata:
            metadata.setdefault(name, [""] * len(names))
        names += [prefix + name if not os.path.isabs(name) else name for name in catalog.items.names]
        labels += [None if i < 0 else catalog.class_names[i] for i in catalog.labels]
        truths += [None if truth is None or i < 0 else truth.class_names[i] for i in _truth_labels(part)]
        for name, texts in metadata.items():
            texts += part.metadata.get(name, [split if name == "split" else ""] * len(catalog))
        skipped += [Skipped(prefix + item.name, item.reason, item.code) for item in part.skipped]
        if split and not len(catalog):
            skipped.append(Skipped(split, "folder without readable images", "empty-folder"))
        elif split and not catalog.is_labelled.any():
            notes.append(f"The images of {printable(split)} are unlabelled.")
        ignored = {kind: ignored.get(kind, 0) + part.ignored.get(kind, 0) for kind in {*ignored, *part.ignored}}
    given = encode_names(labels)
    groups, column = None, next((part.group_column for part in parts.values() if part.group_column), "")
    if column:
        groups = encode_groups([group_name(text) for text in metadata[column]], given)
    has_truth = any(part.truth is not None for part in parts.values())
    return Collection(
        catalog=Catalog(
            items=FileImages(root, Names(names)), labels=given.indices, class_names=given.class_names, groups=groups
        ),
        truth=combine_truth(encode_names(truths, first=given.class_names), given) if has_truth else None,
        skipped=tuple(skipped),
        ignored=ignored,
        origin=str(root),
        location=os.path.abspath(root),
        reading=reading.given(),
        notes=tuple(dict.fromkeys(notes)),
        metadata={name: Names(texts) for name, texts in metadata.items()},
        group_column=column,
    )


def _truth_labels(part: Collection) -> np.ndarray:
    return np.full(len(part.catalog), -1) if part.truth is None else part.truth.labels
