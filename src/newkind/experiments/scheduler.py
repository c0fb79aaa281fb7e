"""Running many cells: each one once, with progress, and without stopping at the first failure."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from statistics import fmean

from newkind.atomic import write_errors
from newkind.errors import CacheError, DataError, NewkindError, RunError
from newkind.experiments.cells import Cell, CellResult, read_result, remove_checkpoint, run_cell
from newkind.pipeline.discover import OnEpoch
from newkind.progress import duration, percent

__all__ = ["Schedule", "Watch"]

logger = logging.getLogger(__name__)
Watch = Callable[[str, int], AbstractContextManager[OnEpoch | None]]
"""(title of a cell, number of epochs) -> context in which the cell runs; yields what is called after each epoch."""
STAGES = ("newkind.backbone", "newkind.data", "newkind.pipeline", "newkind.training")
"""Loggers of a single run, whose messages are shown for the first cell only."""


class Schedule:
    """Cells to run, each once, in order.

    A cell whose folder holds a result is not run again, so that the same schedule continues where an earlier process was
    stopped, also by kill -9. A failure of one cell does not stop the others.

    Parameters
    ----------
    cells : iterable of Cell
        The cells. Of several with the same name, the first is kept.
    folder : Path
        Folder for the run folders of the cells.
    seconds : float, optional
        Expected number of seconds per cell, for the estimate of the remaining time before a cell is finished.

    Attributes
    ----------
    cells : dict of str to Cell
        Cells by name.
    failures : dict of str to NewkindError
        Cells that failed in `run`, with their errors.
    """

    def __init__(self, cells: Iterable[Cell], folder: Path, *, seconds: float | None = None) -> None:
        self.cells: dict[str, Cell] = {}
        for cell in cells:
            self.cells.setdefault(cell.name, cell)
        self.folder = folder
        self.seconds = seconds
        self.failures: dict[str, NewkindError] = {}

    def results(self) -> dict[str, CellResult]:
        """Results of the finished cells, by name."""
        read = {name: read_result(cell, self.folder) for name, cell in self.cells.items()}
        return {name: result for name, result in read.items() if result is not None}

    def listing(self) -> list[str]:
        """One line per cell that says whether it is finished, for a dry run."""
        results = self.results()
        return [
            f"{'finished' if name in results else 'to run  '}  {cell.title}  ({name})"
            for name, cell in self.cells.items()
        ]

    def summary(self) -> str:
        """Number of finished and unfinished runs, with the remaining time as far as it can be estimated."""
        results = self.results()
        todo = [cell for name, cell in self.cells.items() if name not in results]
        if not todo:
            return "The run is finished." if len(self.cells) == 1 else f"All {len(self.cells)} runs are finished."
        counted = "1 run" if len(self.cells) == 1 else f"{len(self.cells)} runs"
        seconds = self._remaining(todo, list(results.values()))
        time = "the time is estimated after the first run" if seconds is None else f"about {duration(seconds)}"
        return f"{counted}, {len(results)} finished, {len(todo)} to run ({time})."

    def run(self, *, watch: Watch | None = None, after_cell: Callable[[], object] | None = None) -> None:
        """Run what is not finished.

        Parameters
        ----------
        watch : callable, optional
            Shows the epochs of each cell.
        after_cell : callable, optional
            Called after each cell that was finished, for instance to update a table.

        Raises
        ------
        RunError
            With code `cannot-write` if the folder cannot be created.
        """
        with write_errors(self.folder, fix="Use another `out`."):
            self.folder.mkdir(parents=True, exist_ok=True)
        self.failures.clear()
        results = self.results()
        finished = list(results.values())
        for result in finished:
            remove_checkpoint(result.run)  # of a process that was killed before it did so
        todo = [cell for name, cell in self.cells.items() if name not in results]
        for i, cell in enumerate(todo):
            head = f"[{i + 1}/{len(todo)}] {cell.title}"
            watched = nullcontext() if watch is None else watch(cell.title, cell.config.training.epochs)
            try:
                with _quiet_stages(quiet=i > 0), watched as on_epoch:
                    result = run_cell(cell, self.folder, on_epoch=on_epoch)
            except (RunError, DataError, CacheError) as error:
                self.failures[cell.name] = error
                logger.error(f"{head}: failed. {error}")
                continue
            finished.append(result)
            seconds = self._remaining(todo[i + 1 :], finished)
            left = f"; about {duration(seconds)} remaining" if seconds else ""
            logger.info(f"{head}: {_scores(result)} ({duration(result.seconds)}{left})")
            if after_cell is not None:
                after_cell()

    def _remaining(self, todo: list[Cell], finished: list[CellResult]) -> float | None:
        """Seconds of the cells to run, from those of finished cells of the same method, or of all."""
        if not finished:
            return None if self.seconds is None else len(todo) * self.seconds
        everything = fmean(result.seconds for result in finished)
        total = 0.0
        for cell in todo:
            same = [result.seconds for result in finished if result.content["method"] == cell.method]
            total += fmean(same) if same else everything
        return total


@contextmanager
def _quiet_stages(*, quiet: bool) -> Iterator[None]:
    """Show only warnings of a run: what it says about the data and itself is the same for every cell."""
    loggers = [logging.getLogger(name) for name in STAGES] if quiet else []
    levels = [one.level for one in loggers]
    for one in loggers:
        one.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for one, level in zip(loggers, levels, strict=True):
            one.setLevel(level)


def _scores(result: CellResult) -> str:
    values = {name: result.score(name.lower()) for name in ("All", "Old", "New")}
    return "  ".join(f"{name} {'-' if value is None else percent(value).strip()}" for name, value in values.items())
