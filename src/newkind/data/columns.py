"""Which columns of a table name the files, labels, true classes and groups; all others are metadata."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from newkind.data.names import printable
from newkind.errors import DataError
from newkind.reading import ReadingConfig

__all__ = ["Columns", "find_columns", "metadata_columns"]

CANONICAL = {"file": ("file_name", "file"), "label": ("label",), "truth": ("truth",)}
"""Names that are used without a message."""
SYNONYMS = {
    "file": [
        "filename",
        "filepath",
        "file_path",
        "path",
        "image",
        "image_path",
        "image_file",
        "image_filename",
        "image_name",
        "imagename",
        "img",
        "img_path",
        "img_name",
        "picture",
        "photo",
        "media_path",
        "relative_file",
    ],
    "label": [
        "labels",
        "class",
        "class_name",
        "category",
        "category_name",
        "species",
        "species_name",
        "scientific_name",
        "scientificname",
        "common_name",
        "taxon",
        "taxon_name",
        "target",
        "annotation",
        "tag",
        "object_annotation_category",
    ],
    "truth": ["ground_truth", "groundtruth", "true_label", "true_class", "gold", "gold_label"],
}
"""Names that are used with a message, if a table has exactly one of them."""
RANKS = frozenset({"kingdom", "phylum", "order", "family"})
"""Beside a column of these names, `class` is a taxonomic rank and not the label."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Positions of columns in a header; None for a column that the table does not have.

    Parameters
    ----------
    file, label, truth, group : int, optional
        Files, labels, true classes and groups.
    folder : int, optional
        Folder of each file, in tables that have it in a column of its own (`RelativePath` of Timelapse).
    others : tuple of int
        All other columns, which are metadata; the column of the groups is one of them.
    names : tuple of str
        Names of these columns, unique.
    notes : tuple of str
        What was detected, in sentences.
    """

    file: int | None
    label: int | None
    truth: int | None
    group: int | None
    folder: int | None
    others: tuple[int, ...]
    names: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def group_name(self) -> str:
        """Name of the metadata column of the groups; empty if there is none."""
        return "" if self.group is None else self.names[self.others.index(self.group)]


def find_columns(
    path: Path, header: tuple[str, ...], reading: ReadingConfig, *, needed: tuple[str, ...], roles: tuple[str, ...]
) -> Columns:
    """Find the columns of a table by the options, or by their names.

    Parameters
    ----------
    path : Path
        The table, for errors.
    header : tuple of str
        Names of its columns.
    reading : ReadingConfig
        Columns that the user has named.
    needed : tuple of str
        Columns that must exist: "file", "label", "truth".
    roles : tuple of str
        Columns to find: some of "file", "label", "truth" and "group".

    Returns
    -------
    Columns

    Raises
    ------
    DataError
        With the code `missing-column` or `ambiguous-column`.
    """
    notes: list[str] = []
    found = {
        role: _find(path, header, role, getattr(reading, f"{role}_column"), notes) if role in roles else None
        for role in ("file", "label", "truth", "group")
    }
    missing = [role for role in needed if found[role] is None]
    if missing:
        expected = " and ".join(CANONICAL[role][0] for role in needed)
        if not header:
            raise DataError(
                f"{path} is empty.",
                fix=f"The first line has the names of the columns, such as {expected}; each image has a line of its own.",
                code="missing-column",
                path=str(path),
                columns=[],
            )
        raise DataError(
            f"{path} has the columns {', '.join(map(printable, header))}; expected {expected}.",
            fix="Name the columns with "
            + " and ".join(f"`{role}_column`" for role in missing)
            + ". Leave the label of an unlabelled image empty.",
            code="missing-column",
            path=str(path),
            columns=[name.lower() for name in header],
        )
    folder = None
    if found["file"] is not None and _plain(header[found["file"]]) == "file" and reading.file_column is None:
        folder = next((i for i, name in enumerate(header) if _plain(name) in ("relativepath", "relative_path")), None)
    used = {found["file"], found["label"], found["truth"]}
    others = tuple(i for i in range(len(header)) if i not in used)
    names = metadata_columns([header[i] or f"column_{i + 1}" for i in others])
    return Columns(**found, folder=folder, others=others, names=names, notes=tuple(notes))


def metadata_columns(names: list[str], taken: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Unique names of metadata columns: a repeated name gets a number.

    Examples
    --------
    >>> metadata_columns(["site", "date", "site"])
    ('site', 'date', 'site_2')
    """
    found: list[str] = []
    for name in names:
        unique, number = name, 2
        while unique in found or unique in taken:
            unique, number = f"{name}_{number}", number + 1
        found.append(unique)
    return tuple(found)


def _find(path: Path, header: tuple[str, ...], role: str, asked: str | None, notes: list[str]) -> int | None:
    """Position of the column of a role; None if there is none and none was asked for."""
    if asked is not None:
        return _asked(path, header, role, asked)
    plain = [_plain(name) for name in header]
    for name in CANONICAL.get(role, ()):
        if name in plain:
            return _only(path, header, role, [i for i, other in enumerate(plain) if other == name])
    known = set(SYNONYMS.get(role, ()))
    if role == "label" and RANKS & set(plain):
        known.discard("class")
    at = [i for i, name in enumerate(plain) if name in known]
    if not at:
        return None
    position = _only(path, header, role, at)
    what = {"file": "file names", "label": "labels", "truth": "true classes"}[role]
    notes.append(f"The column '{printable(header[position])}' is used for {what}; `{role}_column` chooses another.")
    return position


def _asked(path: Path, header: tuple[str, ...], role: str, asked: str) -> int:
    """Position of the column that the user has named: exactly so, or else without regard to case."""
    exact = [i for i, name in enumerate(header) if name == asked.strip()]
    at = exact or [i for i, name in enumerate(header) if name.lower() == asked.strip().lower()]
    if at:
        return _only(path, header, role, at)
    raise DataError(
        f"{path} has no column '{printable(asked)}'; its columns are {', '.join(map(printable, header)) or '(none)'}.",
        fix=f"Use one of these as `{role}_column`.",
        code="missing-column",
        path=str(path),
        columns=[name.lower() for name in header],
    )


def _only(path: Path, header: tuple[str, ...], role: str, at: list[int]) -> int:
    """The only position in a list; DataError if there are several."""
    if len(at) == 1:
        return at[0]
    names = [printable(header[i]) for i in at]
    raise DataError(
        f"{path} has several columns that may be the {role}: {', '.join(names)}.",
        fix=f"Choose one with `{role}_column`." if len(set(names)) == len(names) else "Give each column its own name.",
        code="ambiguous-column",
        path=str(path),
        columns=names,
    )


def _plain(name: str) -> str:
    """Name of a column in lower case, with underscores instead of spaces and hyphens."""
    return "_".join(name.lower().replace("-", " ").split())
