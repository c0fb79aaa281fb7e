"""A finished run in Python: its categories and assignments, decisions about them, and its model for new images."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from newkind.errors import RunError
from newkind.pipeline.predict import predict as run_prediction
from newkind.pipeline.predict import read_inputs
from newkind.pipeline.refit import Refit, accept_refit, plan_refit
from newkind.pipeline.results import Outcome
from newkind.progress import progress_bar
from newkind.runs.answer import Answer
from newkind.runs.assignments import Assignment, Category
from newkind.runs.decision import Decision, Event
from newkind.runs.decisions import Decisions
from newkind.runs.model_io import LoadedModel, load_model
from newkind.runs.run import Run
from newkind.runs.write_answer import write_answer

if TYPE_CHECKING:
    import pandas

__all__ = ["CategoryContents", "Discovery", "PathLike"]

PathLike = str | os.PathLike[str]
Files = str | Iterable[str]


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


class Discovery:
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
        self.run = run
        self.outcome = outcome
        self._decisions = Decisions(run)
        self._model: LoadedModel | None = None
        self._model_refit = ""
        self._shown: tuple[Answer, list[Assignment], list[Category]] | None = None
        if outcome is None:
            _ = self._decisions.answer  # raises if the run is not finished

    @property
    def answer(self) -> Answer:
        """Current answer as arrays."""
        return self._decisions.answer

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

    def decide(self, decision: Decision, *, author: str | None = None, based_on: int | None = None) -> Event:
        """Record a decision, and write assignments.csv and categories.json as they are with it.

        Parameters
        ----------
        decision : Decision
            The decision.
        author : str, optional
            Who decided. Default: the user who runs this process.
        based_on : int, optional
            Number of the last event that the author had seen. Default: the last one.

        Returns
        -------
        Event
        """
        event = self._decisions.decide(decision, author=author, based_on=based_on)
        write_answer(self.run)
        return event

    def rename(self, category: str, name: str) -> Event:
        """Give a category another name; its id stays.

        Parameters
        ----------
        category : str
            Its id or name.
        name : str
            The new name, different from all others.

        Returns
        -------
        Event
        """
        return self.decide(Decision("rename", category=category, name=name))

    def merge(self, categories: Sequence[str], *, into: str = "") -> Event:
        """Merge categories into one.

        Parameters
        ----------
        categories : sequence of str
            Ids or names.
        into : str, default=""
            Category that keeps its id and name. Default: the known class among them, if there is one, otherwise one that
            a person renamed or approved, otherwise the largest.

        Returns
        -------
        Event
        """
        return self.decide(Decision("merge", categories=_names(categories), into=into))

    def split(self, category: str, groups: Sequence[Sequence[str]]) -> Event:
        """Split a category.

        Parameters
        ----------
        category : str
            Its id or name.
        groups : sequence of sequences of str
            Names of the images of each part. Images in no group stay; if none would stay, those of the first group do.

        Returns
        -------
        Event
            `event.decision.ids` are the ids of the new categories.
        """
        return self.decide(Decision("split", category=category, groups=tuple(_names(group) for group in groups)))

    def move(self, files: Files, to: str = "", *, name: str = "") -> Event:
        """Move images to a category, which confirms that they belong there.

        Parameters
        ----------
        files : str or iterable of str
            Names of images.
        to : str, default=""
            Id or name of a category. Default: a new one is created.
        name : str, default=""
            Name of a new category.

        Returns
        -------
        Event
        """
        return self.decide(Decision("move", files=_names(files), into=to, name=name))

    def approve(self, category: str = "", files: Files = (), *, name: str = "", without: Files = ()) -> Event:
        """Approve a category with all its images, or images only.

        Parameters
        ----------
        category : str, default=""
            Id or name. Together with `files`: the images belong to this category.
        files : str or iterable of str, default=()
            Names of images. Default: all images of the category, which is approved itself.
        name : str, default=""
            New name of the category.
        without : str or iterable of str, default=()
            Names of images that do not belong to the category; all others are approved.

        Returns
        -------
        Event
        """
        decision = Decision("approve", category=category, files=_names(files), name=name, without=_names(without))
        return self.decide(decision)

    def reject(self, files: Files, category: str) -> Event:
        """Record that images do not belong to a category.

        Parameters
        ----------
        files : str or iterable of str
            Names of images. Those in the category get their second category, unless that was rejected too.
        category : str
            Id or name.

        Returns
        -------
        Event
        """
        return self.decide(Decision("reject", files=_names(files), category=category))

    def junk(self, files: Files) -> Event:
        """Record that images belong to no category at all.

        Parameters
        ----------
        files : str or iterable of str
            Names of images.

        Returns
        -------
        Event
        """
        return self.decide(Decision("junk", files=_names(files)))

    def note(self, text: str, *, category: str = "", files: Files = ()) -> Event:
        """Write a note about the run, a category or images.

        Parameters
        ----------
        text : str
            The note.
        category : str, default=""
            Id or name.
        files : str or iterable of str, default=()
            Names of images.

        Returns
        -------
        Event
        """
        return self.decide(Decision("note", text=text, category=category, files=_names(files)))

    def undo(self, event: int = 0) -> Event:
        """Undo a decision.

        Parameters
        ----------
        event : int, default=0
            Its number. Default: the last one that counts.

        Returns
        -------
        Event
        """
        return self.decide(Decision("undo", event=event))

    def redo(self, event: int = 0) -> Event:
        """Make a decision that was undone count again.

        Parameters
        ----------
        event : int, default=0
            Its number. Default: the one that was undone last, if no decision was made since.

        Returns
        -------
        Event
        """
        return self.decide(Decision("redo", event=event))

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

    def history(self) -> list[Event]:
        """All events, also those that were undone.

        Returns
        -------
        list of Event
        """
        return self._decisions.log.events()

    def to_dataframe(self) -> pandas.DataFrame:
        """Assignments as a pandas DataFrame, with the columns of assignments.csv.

        Returns
        -------
        pandas.DataFrame
        """
        try:
            import pandas
        except ImportError:
            raise RunError(
                "A data frame needs the package pandas.", fix="Install it: pip install pandas", code="missing-package"
            ) from None
        return pandas.DataFrame([asdict(line) for line in self.assignments])

    def predict(self, *images: PathLike, min_confidence: float = 0.0) -> list[Assignment]:
        """Assign images to the categories of the run.

        Parameters
        ----------
        *images : str or path
            Image files, folders, .txt lists of images, or .npz files with features.
        min_confidence : float, default=0.0
            Images with a lower confidence get the status `unsure`; their categories stay.

        Returns
        -------
        list of Assignment
            Exactly one per image, in order, with `novelty`; images that cannot be read have the status `unreadable`.
        """
        items = read_inputs([Path(image) for image in images], missing_ok=True)
        with progress_bar("Predicting", len(items)) as advance:
            return run_prediction(self.model, items, min_confidence=min_confidence, advance=advance).assignments

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


def _names(values: str | Iterable[Any]) -> tuple[str, ...]:
    """One name or several as a tuple."""
    return (values,) if isinstance(values, str) else tuple(str(value) for value in values)
