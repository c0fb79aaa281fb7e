"""A bar for one run of many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["watch_epochs"]


@contextmanager
def watch_epochs(words: str, epochs: int) -> Iterator[Callable[[Any, Any], None]]:
    """A bar over the epochs of the run at hand, on standard error, gone when it is finished."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True, highlight=False)
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        MofNCompleteColumn(),
        BarColumn(bar_width=24),
        TimeRemainingColumn(compact=True),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    task = None

    def show(report: Any, _: Any) -> None:
        nonlocal task
        if task is None:  # not before the first epoch: until then the token cache has a bar of its own
            bar.start()
            task = bar.add_task(words, total=epochs, completed=report.epoch - 1)
        bar.update(task, completed=report.epoch)

    try:
        yield show
    finally:
        bar.stop()
