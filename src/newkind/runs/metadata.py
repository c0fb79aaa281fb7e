"""Metadata of a run: the columns of its data that are neither files nor labels nor true classes.

`metadata.csv` in the run folder has one row per image, with `file` and these columns. It is written once by `discover`;
`assignments.csv` repeats the columns after its own.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from newkind.data.catalog import Collection
from newkind.data.cells import group_name
from newkind.data.groups import number_groups
from newkind.errors import RunError
from newkind.runs.assignment import COLUMNS, csv_line
from newkind.runs.run import Run

__all__ = [
    "RunMetadata",
    "column_names",
    "group_column",
    "metadata_csv",
    "metadata_from",
    "read_groups",
    "read_metadata",
]

MAX_CELL = 10**7


@dataclass(frozen=True)
class RunMetadata:
    """Metadata of images by file.

    Parameters
    ----------
    columns : tuple of str, default=()
        Names of the columns, unique and different from those of assignments.csv.
    rows : mapping of str to tuple of str, default={}
        One text per column, by file.
    """

    columns: tuple[str, ...] = ()
    rows: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, file: str) -> tuple[str, ...]:
        """Texts of one file; empty ones for a file without metadata."""
        return self.rows.get(file, ("",) * len(self.columns))


def metadata_from(files: Sequence[str], metadata: Mapping[str, Sequence[str]]) -> RunMetadata:
    """Metadata of the files of a collection; a column named as one of assignments.csv gets the prefix `data_`.

    Examples
    --------
    >>> found = metadata_from(["1.jpg", "2.jpg"], {"site": ["A", "B"], "status": ["ok", "ok"]})
    >>> found.columns, found.of("2.jpg")
    (('site', 'data_status'), ('B', 'ok'))
    """
    columns = column_names(list(metadata))
    rows = zip(*metadata.values(), strict=True) if metadata else ((),) * len(files)
    return RunMetadata(columns, dict(zip(files, rows, strict=True)) if columns else {})


def column_names(names: Sequence[str]) -> tuple[str, ...]:
    """Names of the columns in the files of a run: unique, and different from those of assignments.csv."""
    columns: list[str] = []
    for name in names:
        unique = name
        while unique in COLUMNS or unique in columns:
            unique = f"data_{unique}"
        columns.append(unique)
    return tuple(columns)


def group_column(collection: Collection) -> str | None:
    """Name of the column of metadata.csv with the groups; None without groups."""
    names, column = list(collection.metadata), collection.group_column
    return column_names(names)[names.index(column)] if column in names else None


def metadata_csv(files: Sequence[str], metadata: RunMetadata) -> str:
    """Content of metadata.csv for these files."""
    rows = ([file, *metadata.of(file)] for file in files)
    return "".join(csv_line(row) for row in [["file", *metadata.columns], *rows])


def read_metadata(run: Run) -> RunMetadata:
    """Metadata of a run, without columns if it has none.

    Raises
    ------
    RunError
        If metadata.csv cannot be read (`unreadable`).
    """
    path = run.metadata_file
    limit = csv.field_size_limit(MAX_CELL)  # a cell of the data may be longer than Python's default allows
    try:
        with open(path, newline="", encoding="utf-8", errors="surrogateescape") as file:
            reader = csv.reader(file, strict=True)
            header = next(reader, [])
            rows = {cells[0]: tuple(cells[1:]) for cells in reader}
    except FileNotFoundError:
        return RunMetadata()
    except (OSError, ValueError, IndexError, csv.Error) as error:
        raise RunError(f"{path} cannot be read ({error}).", code="unreadable", file=path) from None
    finally:
        csv.field_size_limit(limit)
    if header[:1] != ["file"] or any(len(cells) != len(header) - 1 for cells in rows.values()):
        raise RunError(f"{path} is damaged: rows and columns do not fit.", code="unreadable", file=path)
    return RunMetadata(tuple(header[1:]), rows)


def read_groups(run: Run, files: Sequence[str]) -> NDArray[np.int64] | None:
    """Groups (n,) of files, whose images share a category, -1 for none; None for a run without groups."""
    column = run.config().get("group_column")
    metadata = read_metadata(run)
    if column not in metadata.columns:
        return None
    at = metadata.columns.index(column)
    return number_groups([group_name(metadata.of(file)[at]) for file in files])
