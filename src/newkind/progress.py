"""A progress bar with a rate and the time that is left, for anything over two seconds."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["duration", "percent", "progress_bar", "quiet"]


class _RateColumn(ProgressColumn):
    """Finished steps a second, over the whole run so far."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self.unit = unit

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f} {self.unit}/s", style="cyan")


@contextmanager
def progress_bar(label: str, total: int, *, unit: str = "images", show: bool = True) -> Iterator[Callable[[int], None]]:
    """Yields `advance(n)`; draws on standard error, so that standard output stays clean for results."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        _RateColumn(unit),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        console=Console(stderr=True),
        disable=not show,
        transient=False,
    )
    with bar:
        task = bar.add_task(label, total=total)

        def advance(n: int) -> None:
            bar.advance(task, n)

        yield advance


def duration(seconds: float) -> str:
    """Seconds as a person says them: 40 s, 12 min, 3 h 05 min."""
    if seconds < 90:
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


def percent(share: float) -> str:
    """A share as a percentage with one decimal; a dash for one that is not defined."""
    return "  -  " if share != share else f"{100 * share:5.1f}"


def quiet(_: int) -> None:
    """An `advance` for callers who want no progress bar."""
