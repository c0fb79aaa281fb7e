"""A finished run in Python: its categories and assignments, decisions about them, and its model for new images."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from newkind.backbone.decoded_views import log_skipped
from newkind.decided_run import DecidedRun
from newkind.export.exchange import Exchange
from newkind.pipeline.given_inputs import groups_of, read_given
from newkind.pipeline.predict import predict as run_prediction
from newkind.pipeline.refit import Refit, accept_refit, plan_refit
from newkind.pipeline.results import Outcome
from newkind.progress import progress_bar
from newkind.runs.answer import Answer
from newkind.runs.assignment_list import AssignmentList, to_dataframe
from newkind.runs.assignments import Assignment, Category
from newkind.runs.decision import Event
from newkind.runs.metadata import read_metadata
from newkind.runs.model_io import LoadedModel, load_model
from newkind.runs.run import Run

if TYPE_CHECKING:
    import pandas

__all__ = ["CategoryContents", "Discovery", "PathLike"]

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class CategoryContents:
    """A category with its images.

    Parameters
    ----------
    id : str
        Stable identifier.
    name : str
        Current name.
    status : {"known", "new"}
        Whether it is a known class.
    approved : bool
        Whether a person approved it.
    images : list of str
        Names of its images, labelled ones included.
    """

    id: str
    name: str
    status: str
    approved: bool
    images: list[str]


class Discovery(DecidedRun, Exchange):
    """A finished run: its categories, its assignments, decisions about them, and its model for new images.

    Parameters
    ----------
    run : Run
        The run folder.
    outcome : Outcome, optional
        Result of `discover`, if it has just finished. Default: results are read from the run folder.

    Attributes
    ----------
    run : Run
        The run folder.
    outcome : Outcome or None
        Result of `discover`; None for a run that was loaded.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from newkind import discover
    >>> from newkind.data import from_features
    >>> data = from_features(np.random.default_rng(0).normal(size=(40, 8)), [0, 1, None, None] * 10)
    >>> found = discover(data, tempfile.mkdtemp(), method="kmeans", n_categories=3, report=False)
    >>> found.assignments[0].category, found.assignments[0].status
    ('0', 'labelled')
    >>> len(found.categories), found.outcome is None
    (3, False)
    >>> event = found.rename("new-01", "bee")
    >>> found["new-01"].name, found.undo().decision.event, found["new-01"].name
    ('bee', 1, 'new-01')
    """

    def __init__(self, run: Run, outcome: Outcome | None = None) -> None:
        super().__init__(run)
        self.outcome = outcome
        self._model: LoadedModel | None = None
        self._model_refit = ""
        self._shown: tuple[Answer, list[Assignment], list[Category]] | None = None
        if outcome is None:
            _ = self.answer  # raises if the run is not finished

    @property
    def assignments(self) -> list[Assignment]:
        """One per image that could be read, with all decisions."""
        return self._current()[1]

    @property
    def categories(self) -> list[Category]:
        """All categories, with all decisions."""
        return self._current()[2]

    def _current(self) -> tuple[Answer, list[Assignment], list[Category]]:
        answer = self.answer
        if self._shown is None or self._shown[0] is not answer:
            self._shown = (answer, answer.assignments(), answer.list_categories())
        return self._shown

    def __getitem__(self, category: str) -> CategoryContents:
        """Category by its id or name."""
        answer = self.answer
        state = answer.find(category)
        images = [answer.files[i] for i in answer.members(state.id).tolist()]
        return CategoryContents(state.id, state.name, state.status, state.approved, images)

    def refit(self) -> Refit:
        """Solve the categories again with what decisions say; nothing changes before `accept`.

        Returns
        -------
        Refit
            With `moved`, the images that would change their category.
        """
        return plan_refit(self.run)

    def accept(self, refit: Refit) -> Event:
        """Use a refit from now on; `undo` selects the model before it again.

        Parameters
        ----------
        refit : Refit
            As from `refit`.

        Returns
        -------
        Event
        """
        return accept_refit(self.run, refit)

    def to_dataframe(self) -> pandas.DataFrame:
        """Assignments as a pandas DataFrame, with the columns of assignments.csv: metadata included.

        Returns
        -------
        pandas.DataFrame
        """
        return to_dataframe(self.assignments, read_metadata(self.run))

    def predict(self, *images: Any, groups: Iterable[Any] | None = None, min_confidence: float = 0.0) -> AssignmentList:
        """Assign images to the categories of the run.

        Parameters
        ----------
        *images : str, path, bytes, PIL.Image.Image, ndarray, or array-like of them
            Image files, their contents, opened images, uint8 pixels (H, W) or (H, W, C); folders, .txt lists of images, .npz
            files with features; or lists, columns of a data frame or arrays of these. For a run of features, an array of
            features (n, d).
        groups : iterable, optional
            Group of each image, such as its burst or specimen: images of a group share a category, by the evidence of all
            of them. None, NaN, "" or -1 for an image without a group.
        min_confidence : float, default=0.0
            Images with a lower confidence get the status `unsure`; their categories stay.

        Returns
        -------
        AssignmentList
            A list of exactly one `Assignment` per image, in order, with `novelty`; images that cannot be read have the
            status `unreadable`. It has `to_dataframe()`.
        """
        items = read_given(images, self.run.config().get("reading"))
        numbers = None if groups is None else groups_of(groups, len(items))
        with progress_bar("Predicting", len(items)) as advance:
            found = run_prediction(self.model, items, groups=numbers, min_confidence=min_confidence, advance=advance)
        log_skipped(found.skipped)
        return AssignmentList(found.assignments)

    @property
    def model(self) -> LoadedModel:
        """The network with its backbone, loaded when first used and after a refit."""
        answer = self.answer
        if self._model is None or self._model_refit != answer.refit:
            self._model, self._model_refit = load_model(self.run), answer.refit
        self._model = replace(self._model, categories=self.categories)
        return self._model

    def __repr__(self) -> str:
        n_new = sum(category.status == "new" and category.n_images > 0 for category in self.categories)
        return f"<Discovery in {self.run.folder}: {len(self.assignments):,} images, {n_new} new categories>"
