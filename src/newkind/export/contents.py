"""What an export contains: one item per image of a run, as the current answer has it, with its metadata."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from newkind.export.item_images import ItemImages, open_images
from newkind.runs.answer import APPROVED, JUNK, LABELLED, Answer
from newkind.runs.assignment import Assignment
from newkind.runs.current_answer import current_answer
from newkind.runs.metadata import read_metadata
from newkind.runs.run import Run

__all__ = ["ExportContents", "ExportItem", "read_contents"]

REVIEWED = (LABELLED, APPROVED, JUNK)
"""Statuses that a person gave."""


@dataclass(frozen=True)
class ExportItem:
    """An image, or a box in one, with its category and its metadata.

    Parameters
    ----------
    line : Assignment
        Its line of the current answer.
    category_id : str
        Id of its category; empty for none.
    is_named : bool
        Whether the name of its category is that of a class of the labelled images, or was given by a person.
    metadata : dict of str to str
        Further columns of the data.
    """

    line: Assignment
    category_id: str
    is_named: bool
    metadata: dict[str, str]

    @property
    def is_reviewed(self) -> bool:
        """Whether a person labelled or confirmed it, or marked it as junk."""
        return self.line.status in REVIEWED


@dataclass(frozen=True, eq=False)
class ExportContents:
    """Items of a run.

    Parameters
    ----------
    run : Run
        The run.
    answer : Answer
        Its current answer.
    items : list of ExportItem
        All items, in the order of assignments.csv.
    columns : tuple of str
        Names of the metadata columns.
    data : Path, optional
        Folder that contains the images now.
    """

    run: Run
    answer: Answer
    items: list[ExportItem]
    columns: tuple[str, ...]
    data: Path | None = None

    @cached_property
    def images(self) -> ItemImages:
        """The images, found when they are first needed; RunError if they are not there."""
        return open_images(self.run, [item.line.file for item in self.items], self.data)


def read_contents(run: Run, data: Path | None = None) -> ExportContents:
    """Contents of a finished run.

    Raises
    ------
    RunError
        As from `current_answer` and `read_metadata`.
    """
    answer, metadata = current_answer(run), read_metadata(run)
    items = [
        _item(answer, row, line, dict(zip(metadata.columns, metadata.of(line.file), strict=True)))
        for row, line in enumerate(answer.assignments())
    ]
    return ExportContents(run, answer, items, metadata.columns, data)


def _item(answer: Answer, row: int, line: Assignment, metadata: dict[str, str]) -> ExportItem:
    k = int(answer.category[row])
    state = answer.categories[k] if k >= 0 else None
    is_named = state is not None and (state.given or state.renamed)
    return ExportItem(line, "" if state is None else state.id, is_named, metadata)
