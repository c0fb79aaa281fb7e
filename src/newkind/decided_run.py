"""Decisions about a finished run, as methods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from newkind.runs.answer import Answer
from newkind.runs.decision import Decision, Event
from newkind.runs.decisions import Decisions
from newkind.runs.run import Run
from newkind.runs.write_answer import write_answer

__all__ = ["DecidedRun"]


class DecidedRun:
    """A run folder with its log of decisions; base class of `Discovery`.

    Parameters
    ----------
    run : Run
        The run folder.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self._decisions = Decisions(run)

    @property
    def answer(self) -> Answer:
        """Current answer as arrays."""
        return self._decisions.answer

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

    def move(self, files: str | Iterable[str], to: str = "", *, name: str = "") -> Event:
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

    def approve(
        self,
        category: str = "",
        files: str | Iterable[str] = (),
        *,
        name: str = "",
        without: str | Iterable[str] = (),
    ) -> Event:
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
            Names of images that do not belong to the category; all others are approved. Together with `files` and without
            `category`: images that do not belong to their own categories.

        Returns
        -------
        Event
        """
        decision = Decision("approve", category=category, files=_names(files), name=name, without=_names(without))
        return self.decide(decision)

    def reject(self, files: str | Iterable[str], category: str) -> Event:
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

    def junk(self, files: str | Iterable[str]) -> Event:
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

    def note(self, text: str, *, category: str = "", files: str | Iterable[str] = ()) -> Event:
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

        Raises
        ------
        RunError
            With the code `learned-by-refit` if a refit has learned from the decision; undo the refit first.
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

    def history(self) -> list[Event]:
        """All events, also those that were undone.

        Returns
        -------
        list of Event
        """
        return self._decisions.log.events()


def _names(values: str | Iterable[Any]) -> tuple[str, ...]:
    """One name or several as a tuple."""
    return (values,) if isinstance(values, str) else tuple(str(value) for value in values)
