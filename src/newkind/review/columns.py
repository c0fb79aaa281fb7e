"""Metadata of the images of a run, to filter them by."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from newkind.errors import RunError
from newkind.runs.metadata import read_metadata
from newkind.runs.run import Run

__all__ = ["read_columns"]

logger = logging.getLogger(__name__)

MOST_VALUES = 200
MOST_COLUMNS = 20
LONGEST = 200


def read_columns(run: Run, files: Sequence[str]) -> dict[str, list[str]]:
    """Columns of metadata with few different values. Damaged metadata is reported and left out.

    Parameters
    ----------
    run : Run
        The run.
    files : sequence of str, length n
        Names of the images.

    Returns
    -------
    dict of str to list of str
        Values by column, one per image; empty texts for images without metadata.
    """
    try:
        metadata = read_metadata(run)
    except RunError as error:
        logger.warning(f"{error} Images cannot be filtered by metadata.")
        return {}
    found: dict[str, list[str]] = {}
    for at, name in enumerate(metadata.columns):
        values = [metadata.of(file)[at][:LONGEST] for file in files]
        if 1 < len(set(values)) <= MOST_VALUES and len(found) < MOST_COLUMNS:
            found[name] = values
    return found
