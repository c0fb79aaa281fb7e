"""Messages and progress bars, drawn on one console.

Messages are `logging` records of the `newkind` loggers. The command line shows them with `show_messages`; in Python they
are silent unless `verbose=True` is given or logging is configured. In a log without a terminal, a progress bar is a message
every half minute; in a notebook it is one line that changes.
"""

from __future__ import annotations

import logging
import sys
import time
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from newkind.terminal import SafeConsole, printable_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["data_size", "duration", "percent", "progress_bar", "quiet", "show_messages", "status_console"]

logger = logging.getLogger(__name__)
LOG_SECONDS = 30.0
"""Time between two messages of a progress bar in a log."""
NOTEBOOK_SECONDS = 0.5
STYLES = {logging.WARNING: "yellow", logging.ERROR: "red", logging.CRITICAL: "red"}


@cache
def status_console() -> SafeConsole:
    """Console of messages and progress bars, on standard error, so that standard output holds only results.

    In a notebook it is standard output, because standard error looks like an error there.
    """
    if in_notebook():
        return SafeConsole(file=sys.stdout, force_jupyter=False, force_terminal=False)
    return SafeConsole(stderr=True)


def in_notebook() -> bool:
    """Whether this process runs the cells of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


class _ConsoleHandler(logging.Handler):
    """Prints records above a live progress bar instead of through it."""

    def __init__(self, reword: Callable[[str], str]) -> None:
        super().__init__()
        self.reword = reword

    def emit(self, record: logging.LogRecord) -> None:
        style = STYLES.get(record.levelno, "")
        status_console().print(Text(printable_lines(self.reword(record.getMessage())), style=style), soft_wrap=True)


@contextmanager
def show_messages(show: bool = True, *, reword: Callable[[str], str] = str) -> Iterator[None]:
    """Show messages of level INFO, as `reword` returns them, and progress bars while the context is open."""
    logger = logging.getLogger("newkind")
    if not show or any(isinstance(handler, _ConsoleHandler) for handler in logger.handlers):
        yield
        return
    handler, level, propagate = _ConsoleHandler(reword), logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        logger.propagate = propagate


def _bars_are_shown() -> bool:
    return any(isinstance(handler, _ConsoleHandler) for handler in logging.getLogger("newkind").handlers)


class _RateColumn(ProgressColumn):
    """Finished steps per second, over the whole bar so far."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f} {self.unit}/s", style="cyan")


@contextmanager
def progress_bar(label: str, total: int, *, unit: str = "images", show: bool = True) -> Iterator[Callable[[int], None]]:
    """Progress bar with rate and remaining time; yields `advance(n)`.

    It is drawn where messages are shown (`show_messages`), and only if `show` is true.
    """
    if not (show and _bars_are_shown()):
        yield quiet
        return
    if not status_console().is_terminal:
        yield _Lines(label, total, unit).advance
        return
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        _RateColumn(unit),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        console=status_console(),
    )
    with bar:
        task = bar.add_task(label, total=total)

        def advance(n: int) -> None:
            bar.advance(task, n)

        yield advance


class _Lines:
    """Progress without a terminal: a message now and then, or one line of a notebook that changes."""

    def __init__(self, label: str, total: int, unit: str) -> None:
        self.label, self.total, self.unit, self.done = label, total, unit, 0
        self.start = self.last = time.monotonic()
        self.line: Any = None
        if in_notebook():
            from IPython.display import display

            self.line = display(self._shown(), raw=True, display_id=True)

    def advance(self, n: int) -> None:
        """Count finished steps, and show them if it is time to."""
        self.done += n
        now = time.monotonic()
        if self.line is not None and (self.done >= self.total or now - self.last >= NOTEBOOK_SECONDS):
            self.last = now
            self.line.update(self._shown(), raw=True)
        elif self.line is None and now - self.last >= LOG_SECONDS:
            self.last = now
            logger.info(self._text())

    def _shown(self) -> dict[str, str]:
        return {"text/plain": self._text()}

    def _text(self) -> str:
        seconds = time.monotonic() - self.start
        left = (self.total - self.done) * seconds / max(self.done, 1)
        rest = f", about {duration(left)} left" if 0 < self.done < self.total else ""
        return f"{self.label}: {self.done:,} of {self.total:,} {self.unit}{rest}."


def duration(seconds: float) -> str:
    """Seconds as text: 40 s, 12 min, 3 h 05 min."""
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def data_size(n_bytes: float) -> str:
    """Bytes as text: 3 MB, 1.6 GB; at least 1 MB."""
    return f"{n_bytes / 1e9:,.1f} GB" if n_bytes >= 1e9 else f"{max(round(n_bytes / 1e6), 1)} MB"


def percent(share: float) -> str:
    """Share as a percentage with one decimal; a dash for NaN."""
    return "  -  " if share != share else f"{100 * share:5.1f}"


def quiet(_: int) -> None:
    """An `advance` that shows nothing."""
