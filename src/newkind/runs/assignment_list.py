"""A list of assignments that can become a data frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from newkind.errors import RunError
from newkind.runs.assignment import COLUMNS, Assignment
from newkind.runs.metadata import RunMetadata

if TYPE_CHECKING:
    import pandas

__all__ = ["AssignmentList", "to_dataframe"]


class AssignmentList(list[Assignment]):
    """A list of `Assignment`, one per image.

    Examples
    --------
    >>> found = AssignmentList([Assignment("a.jpg", "bee", "known", 0.9, "wasp", 0.1, novelty=0.05)])
    >>> found.to_dataframe().loc[0, "category"]
    'bee'
    """

    def to_dataframe(self) -> pandas.DataFrame:
        """Assignments as a pandas DataFrame, one row per image in the same order.

        Returns
        -------
        pandas.DataFrame
            With the columns file, category, status, confidence, second, second_confidence, novelty and outlier.
        """
        return to_dataframe(self)


def to_dataframe(lines: Sequence[Assignment], metadata: RunMetadata | None = None) -> pandas.DataFrame:
    """Data frame of assignments, with the columns of the metadata after theirs."""
    try:
        import pandas
    except ImportError:
        raise RunError(
            "A data frame needs the package pandas.",
            fix="Install it: pip install 'newkind[pandas]'",
            code="missing-package",
        ) from None
    frame = pandas.DataFrame([asdict(line) for line in lines], columns=list(COLUMNS))
    for i, name in enumerate(() if metadata is None else metadata.columns):
        frame[name] = [metadata.of(line.file)[i] for line in lines] if metadata else []
    return frame
