"""Exports that are folders of images: one folder per category, Hugging Face's and torchvision's image folder, FiftyOne."""

from __future__ import annotations

from collections.abc import Sequence, Set
from pathlib import Path

from newkind.atomic import make_folder, new_folder, write_json, write_text
from newkind.errors import ConfigError
from newkind.export.contents import ExportContents
from newkind.export.options import ExportOptions
from newkind.export.placing import item_file_name, place_images, write_image
from newkind.export.tables import item_attributes, items_csv, unique_columns
from newkind.pipeline.sorting import FreeNames, folder_name, sorted_targets
from newkind.progress import progress_bar
from newkind.runs.assignment import csv_line

__all__ = ["file_names", "place_items", "write_fiftyone", "write_folders", "write_imagefolder"]

NO_CATEGORY = "unassigned"


def write_folders(contents: ExportContents, out: Path, options: ExportOptions) -> None:
    """Write one folder per category, folders `unsure` and `junk`, and items.csv."""
    lines = [item.line for item in contents.items]
    with new_folder(out) as folder:
        targets = sorted_targets(lines, file_names(contents), folder)
        placed = place_items(contents, targets, options, folder)
        write_text(folder / "items.csv", items_csv(contents, files=placed))


def write_imagefolder(contents: ExportContents, out: Path, options: ExportOptions) -> None:
    """Write train/CATEGORY/IMAGE and train/metadata.csv; images without a category go to a folder beside `train`."""
    with new_folder(out) as folder:
        free: dict[Path, FreeNames] = {}
        folders, names = dict[str, Path](), FreeNames()
        targets = []
        for item, name in zip(contents.items, file_names(contents), strict=True):
            category = item.line.category
            if category and category not in folders:
                folders[category] = folder / "train" / names.take(folder_name(category))
            place = folders[category] if category else folder / NO_CATEGORY
            targets.append(place / free.setdefault(place, FreeNames()).take_file(name))
        place_items(contents, targets, options, folder)
        for part in ("train", NO_CATEGORY):
            table = _hugging_face_table(contents, targets, folder / part)
            if table:
                write_text(folder / part / "metadata.csv", table)


def _hugging_face_table(contents: ExportContents, targets: Sequence[Path], folder: Path) -> str:
    """Content of metadata.csv for the images below a folder; empty if there are none."""
    own = ["file_name", "label", "file", "category_id", "status", "reviewed", "confidence", "second"]
    own += ["second_confidence", "novelty", "outlier"]
    rows = []
    for item, target in zip(contents.items, targets, strict=True):
        if target.is_relative_to(folder):
            values = item_attributes(item) | {
                "file_name": target.relative_to(folder).as_posix(),
                "label": item.line.category,
            }
            rows.append([*(values[name] for name in own), *item.metadata.values()])
    header = [*own, *unique_columns(contents.columns, own)]
    return "".join(csv_line(row) for row in [header, *rows]) if rows else ""


def write_fiftyone(contents: ExportContents, out: Path, options: ExportOptions) -> None:
    """Write FiftyOne's FiftyOneImageClassificationDataset: data/, labels.json, and items.csv with all values."""
    with new_folder(out) as folder:
        free, stems = FreeNames(), FreeNames()
        targets = []
        for name in file_names(contents):  # a label is found by the name without suffix, which must be unique
            path = Path(free.take_file(name))
            targets.append(folder / "data" / f"{stems.take(path.stem)}{path.suffix}")
        placed = place_items(contents, targets, options, folder)
        classes = [state.name for state in contents.answer.categories]
        labels = {}
        for item, target in zip(contents.items, targets, strict=True):
            values = item_attributes(item)
            attributes: dict[str, str | float] = {n: values[n] for n in ("file", "category_id", "status", "reviewed")}
            attributes |= {} if item.line.novelty is None else {"novelty": item.line.novelty}
            columns = unique_columns(contents.columns, (*values, "label", "confidence"))
            attributes |= dict(zip(columns, item.metadata.values(), strict=True))
            found = {"label": item.line.category, "confidence": item.line.confidence, "attributes": attributes}
            labels[target.stem] = found if item.line.category else None
        write_json(folder / "labels.json", {"classes": classes, "labels": labels})
        write_text(folder / "items.csv", items_csv(contents, files=placed))


def file_names(contents: ExportContents) -> list[str]:
    """Name of the file that each item becomes, without folders; several may be equal."""
    return [item_file_name(row, item.line.file, contents.images) for row, item in enumerate(contents.items)]


def place_items(
    contents: ExportContents,
    targets: Sequence[Path],
    options: ExportOptions,
    folder: Path,
    *,
    as_png: Set[int] = frozenset(),
) -> list[str]:
    """Put the images of all items into a folder, those of some rows as PNG; returns their names relative to it.

    Raises
    ------
    ConfigError
        With the code `missing-mode` if the options do not say how.
    """
    if options.mode is None:
        raise ConfigError(
            "This format contains the images.",
            fix="Set `mode` to copy, or to symlink for links to the images.",
            code="missing-mode",
            setting="mode",
        )
    for target in targets:
        if not target.parent.is_dir():
            make_folder(target.parent)
    rows = [row for row in range(len(targets)) if row not in as_png]
    files = [contents.items[row].line.file for row in rows]
    with progress_bar("Exporting", len(targets)) as advance:
        own = [targets[row] for row in rows]
        place_images(contents.run, files, own, options.mode, data=options.data, advance=advance)
        for row in sorted(as_png):
            write_image(contents.images, row, targets[row], advance, as_png=True)
    return [target.relative_to(folder).as_posix() for target in targets]
