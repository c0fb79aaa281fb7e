"""Decisions about a run: recorded in its log, applied to its answer."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial

from newkind.errors import RunError
from newkind.runs.answer import Answer
from newkind.runs.current_answer import keep_model_answer, load_refit, model_answer
from newkind.runs.decision import Decision, Event
from newkind.runs.decision_log import DecisionLog
from newkind.runs.replay import apply, replay
from newkind.runs.resolve import resolve, resolve_undo
from newkind.runs.run import Run

__all__ = ["Decisions"]


class Decisions:
    """The current answer of a run, and the way to change it. Threads may share it.

    Parameters
    ----------
    run : Run
        A finished run.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.log = DecisionLog(run.folder)
        self._answer: Answer | None = None
        self._model_answer: Answer | None = None
        self._model_time = -1
        self._fingerprint = ""
        self._updating = threading.RLock()

    @property
    def answer(self) -> Answer:
        """Current answer, with the decisions of other processes."""
        return self._updated(self.log.events())

    def decide(self, decision: Decision, *, author: str | None = None, based_on: int | None = None) -> Event:
        """Check a decision against the current answer and record it.

        Parameters
        ----------
        decision : Decision
            The decision. Categories may be named by id or by name.
        author : str, optional
            Who decided. Default: the user who runs this process.
        based_on : int, optional
            Number of the last event that the author had seen (`Answer.last`). Default: the last one.

        Returns
        -------
        Event
            With all defaults filled in.

        Raises
        ------
        RunError
            As in `resolve` and `resolve_undo`; with the code `stale` as in `DecisionLog.append`, or if the run was overwritten since
            its answer was first read.
        """
        return self.log.append(decision, author=author, based_on=based_on, check=self._check)

    def at(self, number: int) -> Answer:
        """Answer after the event with this number; 0 for the answer of the model."""
        return self._replayed([event for event in self.log.events() if event.number <= number])

    def preview(self, decision: Decision) -> tuple[Decision, Answer]:
        """Decision with all defaults filled in, and the answer that it would give; nothing is recorded."""
        events = self.log.events()
        found = self._resolved(events, decision)
        following = Event(events[-1].number + 1 if events else 1, "", "", 0, found)
        return found, self._replayed([*events, following])

    def _check(self, events: list[Event], decision: Decision) -> Decision:
        self._refuse_if_overwritten()
        found = self._resolved(events, decision)
        keep_model_answer(self.run)
        return found

    def _refuse_if_overwritten(self) -> None:
        """Raise if another run is in the folder than the one whose answer was read: what was seen there is of no use for it."""
        if self._fingerprint and self._fingerprint != self._fingerprint_now():
            raise RunError(
                f"{self.run.folder} was overwritten by another run in the meantime.",
                fix="Open the run again, or start `newkind review` again.",
                code="stale",
                folder=self.run.folder,
            )

    def _fingerprint_now(self) -> str:
        """Fingerprint of settings and data of the run in the folder; empty if it has no config.json."""
        return str(self.run.config()["fingerprint"]) if self.run.config_file.exists() else ""

    def _resolved(self, events: list[Event], decision: Decision) -> Decision:
        if decision.kind in ("undo", "redo"):
            return resolve_undo(decision, events)
        if decision.kind == "refit":
            load_refit(self.run, decision.refit)  # raises if it is not there
        return resolve(decision, self._updated(events), events)

    def _updated(self, events: list[Event]) -> Answer:
        """Answer with these events; if only a few were added, they are applied to the last answer."""
        with self._updating:
            last = events[-1].number if events else 0
            if self._answer is None or last < self._answer.last or self._is_outdated():
                self._answer = self._replayed(events)
            added = events[self._answer.last :]
            if any(event.decision.kind in ("undo", "redo") for event in added):
                self._answer = self._replayed(events)
            else:
                for event in added:
                    self._answer = apply(self._answer, event, partial(load_refit, self.run))
            return self._answer

    def _replayed(self, events: list[Event]) -> Answer:
        if self._model_answer is None or self._is_outdated():
            self._model_time = self._time_of_model_answer()
            self._model_answer = model_answer(self.run)
            self._fingerprint = self._fingerprint or self._fingerprint_now()
        return replay(self._model_answer, events, partial(load_refit, self.run))

    def _is_outdated(self) -> bool:
        """Whether a repeated `discover` has replaced the answer of the model."""
        return self._model_time != self._time_of_model_answer()

    def _time_of_model_answer(self) -> int:
        """Time when the answer of the model was written; 0 if there is none."""
        for path in (self.run.model_categories_file, self.run.categories_file):
            with suppress(FileNotFoundError):
                return path.stat().st_mtime_ns
        return 0
