"""Collections whose items are boxes: from a .json file alone, or from a .json file and other data with the labels."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind.data.box_files import Box, BoxedImage, load_json
from newkind.data.boxes import BoxImages
from newkind.data.catalog import UNLABELLED, Catalog, Collection, Skipped, Truth
from newkind.data.cells import group_name
from newkind.data.coco import read_coco
from newkind.data.columns import find_columns, metadata_columns
from newkind.data.groups import encode_groups
from newkind.data.items import EncodedImages, FileImages, Images
from newkind.data.labels import Labels, combine_truth, encode_labels, encode_names
from newkind.data.megadetector import is_megadetector, read_megadetector
from newkind.data.names import Names, printable
from newkind.data.tables import FolderListing
from newkind.data.wording import count
from newkind.errors import DataError
from newkind.reading import ReadingConfig, check_used

__all__ = ["read_boxes", "with_boxes"]

ANIMAL = "animal"
BOX_OPTIONS = ("box_category", "min_box_confidence", "box_margin")


@dataclass(frozen=True)
class _Chosen:
    """Boxes to use: the index of each one's image, the box, and what was left out."""

    image: list[int]
    boxes: list[Box]
    skipped: list[Skipped]
    notes: tuple[str, ...]


def read_boxes(path: str | os.PathLike[str], **options: Any) -> Collection:
    """Read a .json file of MegaDetector or COCO (Camera Traps included).

    Each box becomes an item named `image#box`. In a COCO file without boxes, whole images are the items. Categories of COCO
    are labels; those of a detector are not, so that its items are all unlabelled: to label them, open a folder or a table
    with the option `boxes`.

    Parameters
    ----------
    path : path-like
        The .json file. File names are relative to its folder, or to `image_folder`.
    **options : Any
        `image_folder`, `group_column` (a key of COCO's images, such as `seq_id`), `box_category`, `min_box_confidence` and
        `box_margin`, as in `open_data`.

    Returns
    -------
    Collection
        Images that do not exist, have no box, or cannot be used, and boxes outside of their image, are in `skipped`.

    Raises
    ------
    DataError
        If the file cannot be read (`unreadable`), is of another layout (`bad-boxes`), has values that are not a box
        (`bad-box`), or leaves no item (`no-images`).

    Examples
    --------
    >>> import json, tempfile
    >>> from PIL import Image
    >>> folder = Path(tempfile.mkdtemp())
    >>> Image.new("RGB", (64, 64)).save(folder / "1.png")
    >>> found = {"images": [{"file": "1.png", "detections": [{"category": "1", "conf": 0.9, "bbox": [0, 0, 0.5, 0.5]}]}]}
    >>> _ = (folder / "found.json").write_text(json.dumps(found))
    >>> collection = read_boxes(folder / "found.json")
    >>> list(collection.catalog.items.names), collection.catalog.items.open(0).size
    (['1.png#1'], (39, 39))
    """
    path, reading = Path(path), ReadingConfig(**options)
    check_used(reading, ("image_folder", "group_column", *BOX_OPTIONS), "a file with boxes")
    images, is_detector = _read(path)
    root = reading.image_folder or path.parent
    usable, skipped = _usable(images, FolderListing(root))
    source = FileImages(root, Names(image.file for image in usable))
    if any(image.boxes for image in images):
        chosen = _choose([image.boxes for image in usable], source.names, reading, path)
        labels = [None if is_detector else box.category for box in chosen.boxes]
        rows = [{**usable[i].metadata, **_about(box)} for i, box in zip(chosen.image, chosen.boxes, strict=True)]
        found = _collection(_box_images(source, chosen, reading), labels, rows, path, reading)
        skipped, notes = skipped + chosen.skipped, chosen.notes
    else:
        found = _collection(source, [_only(i) for i in usable], [dict(i.metadata) for i in usable], path, reading)
        notes = ()
    if not len(found.catalog):
        raise _nothing_left(path, root, skipped)
    return replace(found, skipped=tuple(skipped), notes=notes)


def _collection(
    items: Images,
    labels: Sequence[str | None],
    rows: Sequence[Mapping[str, str]],
    path: Path,
    reading: ReadingConfig,
) -> Collection:
    """Collection of items with labels and metadata, one of whose columns may be the groups."""
    given, metadata = encode_labels(labels), _columns(rows)
    groups, column = None, ""
    if reading.group_column is not None and rows:
        column = find_columns(path, tuple(metadata), reading, needed=(), roles=("group",)).group_name
        groups = encode_groups([group_name(text) for text in metadata[column]], given)
    return Collection(
        catalog=Catalog(items=items, labels=given.indices, class_names=given.class_names, groups=groups),
        origin=str(path),
        location=os.path.abspath(path),
        reading=reading.given(),
        metadata=metadata,
        group_column=column,
    )


def _nothing_left(path: Path, root: Path, skipped: list[Skipped]) -> DataError:
    """Error for a file without a usable image or box."""
    what = f"{path} leaves no image to use"
    if skipped:
        first = f"{printable(skipped[0].name)} ({skipped[0].reason})"
        what += f": {count(len(skipped), 'item')} skipped, such as {first}"
    fix = f"File names must be relative to {root}; name another folder with `image_folder`."
    return DataError(f"{what}.", fix=fix, code="no-images", path=str(path), n_skipped=len(skipped))


def with_boxes(collection: Collection, reading: ReadingConfig) -> Collection:
    """Collection in which each image is replaced by its boxes, which have its label, truth, group and metadata.

    Parameters
    ----------
    collection : Collection
        Image files.
    reading : ReadingConfig
        Its `boxes` is a .json file of MegaDetector or COCO, whose file names are those of the collection.

    Returns
    -------
    Collection
        Images without a box are in `skipped`.

    Raises
    ------
    DataError
        As for `read_boxes`, or if the collection has no image files (`no-files`) or none of the file's (`no-boxes`).
    """
    path, source, catalog = reading.boxes, collection.catalog.items, collection.catalog
    if path is None or not isinstance(source, EncodedImages):
        raise DataError(f"{collection.origin} has no image files to find boxes in.", code="no-files")
    images, _ = _read(path)
    own = frozenset(source.names)
    listed = {image.file if image.file in own else _below(image.file, source): image for image in images}
    found = [listed.get(name) for name in source.names]
    if not any(found):
        listing = f"lists {printable(images[0].file)}, but" if images else "lists"
        raise DataError(
            f"{path} {listing} none of the data's {count(len(source), 'image')}, such as {source.names[0]}.",
            fix="File names must start from the folder of the data.",
            code="no-boxes",
            path=str(path),
        )
    lost = [
        Skipped(name, image.problem if image else f"not listed in {path.name}", "no-box")
        for name, image in zip(source.names, found, strict=True)
        if image is None or image.problem
    ]
    chosen = _choose([image.boxes if image else [] for image in found], source.names, reading, path)
    at = np.array(chosen.image, dtype=np.int64)
    if not len(at):
        raise _no_boxes(path, chosen)
    lost_names = {item.name for item in lost}
    given, notes = _used_classes(Labels(catalog.labels[at], catalog.class_names))
    return replace(
        collection,
        catalog=Catalog(
            items=_box_images(source, chosen, reading),
            labels=given.indices,
            class_names=given.class_names,
            groups=None if catalog.groups is None else catalog.groups[at],
        ),
        truth=None if collection.truth is None else _truth_of(collection.truth, at, given),
        skipped=(*collection.skipped, *lost, *(item for item in chosen.skipped if item.name not in lost_names)),
        reading=reading.given(),
        notes=(*collection.notes, *chosen.notes, *notes),
        metadata=_joined(collection.metadata, chosen),
    )


def _no_boxes(path: Path, chosen: _Chosen) -> DataError:
    """Error for a file of whose boxes none can be used in the images of the data."""
    n_outside = sum(item.code == "box-outside" for item in chosen.skipped)
    outside = [f"{count(n_outside, 'box is', 'boxes are')} empty or outside of the image."] if n_outside else []
    return DataError(
        " ".join([f"{path} has no box to use in the images of the data.", *outside, *chosen.notes]),
        fix="Lower `min_box_confidence`, or choose another `box_category`." if chosen.notes else "",
        code="no-images",
        path=str(path),
    )


def _used_classes(given: Labels) -> tuple[Labels, tuple[str, ...]]:
    """Labels without the classes that no item has, in the same order; and a note about these classes."""
    used = np.unique(given.indices[given.indices >= 0])
    number = np.full(len(given.class_names) + 1, UNLABELLED, dtype=np.int32)  # -1 is the last one
    number[used] = np.arange(len(used))
    unused = ", ".join(printable(name) for i, name in enumerate(given.class_names) if i not in used)
    notes = (f"No labelled image of these classes has a box: {unused}.",) if unused else ()
    return Labels(number[given.indices], tuple(given.class_names[i] for i in used)), notes


def _truth_of(truth: Truth, at: NDArray[np.int64], given: Labels) -> Truth:
    """Truth of the boxes of some images."""
    names = [truth.class_names[i] if i >= 0 else None for i in truth.labels[at]]
    return combine_truth(encode_names(names, first=given.class_names), given)


def _joined(metadata: Mapping[str, Sequence[str]], chosen: _Chosen) -> dict[str, Names]:
    """Metadata of the images of boxes, and of the boxes."""
    carried = {name: Names(column[i] for i in chosen.image) for name, column in metadata.items()}
    about = _columns([_about(box) for box in chosen.boxes])
    return carried | dict(zip(metadata_columns(list(about), tuple(carried)), about.values(), strict=True))


def _read(path: Path) -> tuple[list[BoxedImage], bool]:
    """Images of a file, and whether their boxes come from a detector, whose categories are not labels."""
    content = load_json(path)
    if is_megadetector(content):
        return read_megadetector(path, content), True
    return read_coco(path, content), False


def _below(name: str, source: EncodedImages) -> str:
    """Name relative to the folder of the images, if it is an absolute one below it."""
    if isinstance(source, FileImages) and os.path.isabs(name):
        relative = os.path.relpath(name, source.root.absolute())
        return relative if not relative.startswith("..") else name
    return name


def _usable(images: Sequence[BoxedImage], listing: FolderListing) -> tuple[list[BoxedImage], list[Skipped]]:
    """Images that exist, each once, and the others with the reasons."""
    found: dict[str, BoxedImage] = {}
    skipped: list[Skipped] = []
    for image in images:
        if image.file in found:
            skipped.append(Skipped(image.file, "listed twice", "duplicate"))
        elif image.problem:
            skipped.append(Skipped(image.file, image.problem, "no-box"))
        elif problem := listing.problem(image.file):
            skipped.append(problem)
        elif len(set(image.classes)) > 1 and not image.boxes:
            classes = ", ".join(image.classes[:3])
            skipped.append(Skipped(image.file, f"several classes without boxes ({classes})", "several-classes"))
        else:
            found[image.file] = image
    return list(found.values()), skipped


def _choose(boxes: list[list[Box]], names: Sequence[str], reading: ReadingConfig, path: Path) -> _Chosen:
    """Boxes of the chosen category and confidence; images without one, and boxes outside of their image, are skipped."""
    categories = Counter(box.category for found in boxes for box in found if box.confidence is not None)
    wanted = reading.box_category or (ANIMAL if ANIMAL in categories else "all")
    if reading.box_category not in (None, "all", *categories):
        raise DataError(
            f"{path} has no category '{printable(wanted)}'; its categories are "
            f"{', '.join(map(printable, sorted(categories))) or '(none)'}.",
            fix="Use one of these as `box_category`, or all.",
            code="missing-category",
            path=str(path),
        )
    result = _Chosen([], [], [], ())
    n_other = n_low = 0
    for i, found in enumerate(boxes):
        n_before = len(result.boxes)
        for box in found:
            if box.confidence is not None and wanted not in ("all", box.category):
                n_other += 1
            elif box.confidence is not None and box.confidence < reading.min_box_confidence:
                n_low += 1
            elif box.is_empty:
                name = f"{names[i]}#{box.number}"
                result.skipped.append(Skipped(name, "the box is empty or outside of the image", "box-outside"))
            else:
                result.image.append(i)
                result.boxes.append(box)
        if len(result.boxes) == n_before:
            result.skipped.append(Skipped(names[i], f"no box in {path.name}", "no-box"))
    notes = []
    if n_other:
        notes.append(
            f"{count(n_other, 'box', 'boxes')} of other categories than {wanted} left out; see `box_category`."
        )
    if n_low:
        notes.append(f"{count(n_low, 'box', 'boxes')} below the confidence {reading.min_box_confidence:g} left out.")
    return replace(result, notes=tuple(notes))


def _box_images(source: EncodedImages, chosen: _Chosen, reading: ReadingConfig) -> BoxImages:
    pairs = list(zip(chosen.image, chosen.boxes, strict=True))
    return BoxImages(
        source,
        Names(f"{source.names[i]}#{box.number}" for i, box in pairs),
        np.array(chosen.image, dtype=np.int64),
        np.array([box.corners for box in chosen.boxes], dtype=np.float64).reshape(-1, 4),
        _flags(box.is_relative for box in chosen.boxes),
        reading.box_margin,
    )


def _flags(values: Any) -> NDArray[np.bool_]:
    return np.array(list(values), dtype=np.bool_)


def _about(box: Box) -> dict[str, str]:
    """Metadata of a box: left, top, width and height as they are in the file's unit, confidence and category."""
    left, top, right, bottom = box.corners
    numbers = (left, top, right - left, bottom - top)
    found = {
        "box": " ".join(f"{value:.6g}" for value in numbers),
        "box_unit": "fraction" if box.is_relative else "pixel",
        "box_confidence": "" if box.confidence is None else f"{box.confidence:g}",
        "box_category": box.category,
    }
    return found | dict(box.metadata)


def _only(image: BoxedImage) -> str | None:
    """Class of a whole image, if it has one."""
    return image.classes[0] if image.classes else None


def _columns(rows: Sequence[Mapping[str, str]]) -> dict[str, Names]:
    """Columns of rows, "" where a row has no such key."""
    keys = dict.fromkeys(key for row in rows for key in row)
    return {key: Names(row.get(key, "") for row in rows) for key in keys}
