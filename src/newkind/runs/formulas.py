"""Names that a spreadsheet program would run as formulas when it opens a CSV file."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from newkind.data.names import printable

__all__ = ["warn_of_formulas"]

logger = logging.getLogger(__name__)
FORMULA = re.compile(r"[=+\-@\t\r](?![\d.,]*$)")
"""Start of a cell that is a formula and not a number."""


def warn_of_formulas(names: Iterable[str]) -> None:
    """Log a warning if names of files or categories are formulas to a spreadsheet program.

    The names are written as they are: an escaped one would be the name of another file.
    """
    found = sorted({name for name in names if FORMULA.match(name)})
    if found:
        logger.warning(
            f"Spreadsheet programs may run the name '{printable(found[0])}' as a formula"
            f"{f', and {len(found) - 1:,} others' if len(found) > 1 else ''}. Import the CSV file with all columns as text."
        )
