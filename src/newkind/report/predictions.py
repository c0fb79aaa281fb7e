"""Predictions for images that a run has not seen, as a page like its report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from newkind.data import Catalog, Collection, Images
from newkind.report.contents import RunContents, contents_of
from newkind.report.write import write_report
from newkind.runs.assignments import Assignment, Category
from newkind.runs.run import Run

__all__ = ["prediction_contents", "write_predictions"]


def write_predictions(
    run: Run, images: Images, assignments: Sequence[Assignment], categories: Sequence[Category], out: Path
) -> Path:
    """Write a page with predicted images.

    Parameters
    ----------
    run : Run
        The run whose model predicted them.
    images : Images
        The images, in the order of `assignments`.
    assignments : sequence of Assignment
        Predictions.
    categories : sequence of Category
        All categories of the model.
    out : Path
        File to write. An existing file is replaced only if it is a report.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    RunError
        As from `write_report`.
    """
    catalog = Catalog(items=images, labels=np.full(len(images), -1, dtype=np.int32), class_names=())
    contents = prediction_contents(run, assignments, categories)
    return write_report(run, contents=contents, collection=Collection(catalog=catalog), out=out)


def prediction_contents(run: Run, assignments: Sequence[Assignment], categories: Sequence[Category]) -> RunContents:
    """Contents of a report about predictions: the settings of the run, and nothing else of its results."""
    own = []
    for k, category in enumerate(categories):
        lines = [line for line in assignments if line.category == category.name]
        mean = float(np.mean([line.confidence for line in lines])) if lines else 0.0
        unsure = sum(line.status == "unsure" for line in lines)
        own.append(replace(category, prototype=k, n_images=len(lines), mean_confidence=mean, n_unsure=unsure))
    found = contents_of(run, assignments=assignments, categories=own)
    about = {"data": f"Predictions of {run.folder.resolve().name}", "root": None}
    return replace(found, config=found.config | about, metrics=[], estimate=None, digests=None, is_added=None)
