"""Progress bar over the epochs of one of many runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["watch_epochs"]


@contextmanager
def watch_epochs(title: str, epochs: int) -> Iterator[Callable[[Any, Any], None]]:
    """Bar on standard error that is removed when the run is finished.

    Parameters
    ----------
    title : str
        Name of the run.
    epochs : int
        Number of epochs.

    Yields
    ------
    callable
        To be called after each epoch with its report.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from newkind.progress import status_console

    console = status_console()
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
        if task is None:  # not before the first epoch: until then the token cache may show a bar of its own
            bar.start()
            task = bar.add_task(title, total=epochs, completed=report.epoch - 1)
        bar.update(task, completed=report.epoch)
        if report.epoch == epochs:  # what follows the last epoch may show a bar of its own, too
            bar.stop()

    try:
        yield show
    finally:
        bar.stop()
