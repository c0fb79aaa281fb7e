"""One category and one assignment of a run, and their text in assignments.csv and categories.json."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newkind.errors import RunError

if TYPE_CHECKING:
    from newkind.runs.metadata import RunMetadata

__all__ = [
    "COLUMNS",
    "Assignment",
    "Category",
    "assignments_csv",
    "category_from_json",
    "csv_line",
    "parse_assignments",
]

MAX_CELL = 131_072
"""Largest number of characters of a name or number; that of Python's csv."""
COLUMNS = ("file", "category", "status", "confidence", "second", "second_confidence", "novelty", "outlier")


@dataclass(frozen=True)
class Category:
    """A known class or a discovered category.

    Parameters
    ----------
    name : str
        Name of the known class, or new-01, new-02, ... by size; decisions may change it.
    status : {"known", "new"}
        Whether it is a known class.
    prototype : int
        Its index in the classifier, the first one if it has several; -1 if it has none.
    n_images : int
        Number of unlabelled images assigned to it; 0 for a category that is not in use.
    mean_confidence : float
        Mean confidence of these images.
    n_unsure : int, default=0
        Number of these images that are not confident enough.
    id : str, default=""
        Stable identifier: the first name. A rename keeps it.
    approved : bool, default=False
        Whether a person approved the category.
    prototypes : tuple of int, default=()
        All its indices in the classifier; several after a merge, none after a split, until the run is refitted.
    given : bool, optional
        Whether it was a class of the labelled images when the run was made. In a continued run, a category that a person named or
        approved before is known, but was not given. Default: whether it is known.
    """

    name: str
    status: str
    prototype: int
    n_images: int
    mean_confidence: float
    n_unsure: int = 0
    id: str = ""
    approved: bool = False
    prototypes: tuple[int, ...] = ()
    given: bool | None = None

    def __post_init__(self) -> None:
        if self.given is None:
            object.__setattr__(self, "given", self.status == "known")


@dataclass(frozen=True, slots=True)
class Assignment:
    """Category of one image; a line of assignments.csv.

    Parameters
    ----------
    file : str
        Name of the image.
    category : str
        Its category; empty for an image that cannot be read, is junk, or was rejected from its categories.
    status : {"labelled", "known", "new", "unsure", "unreadable", "approved", "junk"}
        Whether the category was given as a label, is a known class, is new, is less confident than asked for, or was
        confirmed by a person; whether the image cannot be read or belongs to no category.
    confidence : float
        Probability of the category; 1 if a person confirmed it.
    second : str
        Second most likely category; for a labelled image that the model would assign elsewhere, that category. Empty if
        decisions leave none.
    second_confidence : float
        Its probability.
    novelty : float, optional
        Probability of all new categories together; None where it was not computed.
    outlier : bool, optional
        Whether the image fits no category; None where the method has no rule for it.
    """

    file: str
    category: str
    status: str
    confidence: float
    second: str
    second_confidence: float
    novelty: float | None = None
    outlier: bool | None = None


def assignments_csv(lines: Sequence[Assignment], metadata: RunMetadata | None = None) -> str:
    """CSV text with the columns of COLUMNS, and after them those of the metadata."""
    more = () if metadata is None else metadata.columns
    rows = (
        [*(_text(getattr(line, name)) for name in COLUMNS), *(metadata.of(line.file) if metadata is not None else ())]
        for line in lines
    )
    return "".join(csv_line(row) for row in chain([[*COLUMNS, *more]], rows))


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return ("yes" if value else "no") if isinstance(value, bool) else f"{value:.4f}"


def csv_line(cells: Sequence[str]) -> str:
    """CSV line that ends with a newline; written with CRLF first, so that a carriage return inside a name is quoted."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(cells)
    return text.getvalue().removesuffix("\r\n") + "\n"


def parse_assignments(path: Path) -> list[Assignment]:
    """Lines of an assignments.csv. Runs of earlier versions have neither `novelty` nor `outlier`."""
    try:
        with open(path, newline="", encoding="utf-8", errors="surrogateescape") as file:
            return [
                Assignment(
                    row["file"],
                    row["category"],
                    row["status"],
                    float(row["confidence"]),
                    row["second"],
                    float(row["second_confidence"]),
                    float(row["novelty"]) if row.get("novelty") else None,
                    row["outlier"] == "yes" if row.get("outlier") else None,
                )
                for row in _rows(file)
            ]
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, csv.Error) as error:
        raise RunError(f"{path} cannot be read ({error}).", code="unreadable", file=path) from None


def _rows(file: Iterable[str]) -> Iterator[dict[str, str]]:
    """Rows of an assignments.csv; other packages may have raised Python's own limit of a cell."""
    for row in csv.DictReader(file):
        if any(len(row.get(name) or "") > MAX_CELL for name in COLUMNS):
            raise ValueError(f"a cell has more than {MAX_CELL:,} characters")
        yield row


def category_from_json(row: dict[str, Any]) -> Category:
    """Category from an entry of categories.json; earlier versions wrote neither `id` nor `prototypes` nor `given`."""
    found = Category(**row)
    prototypes = tuple(found.prototypes) or ((found.prototype,) if found.prototype >= 0 else ())
    if found.n_images < 0 or not 0 <= found.mean_confidence <= 1.01 or min(prototypes, default=0) < 0:
        raise ValueError("invalid values")
    return replace(found, id=found.id or found.name, prototypes=prototypes)
