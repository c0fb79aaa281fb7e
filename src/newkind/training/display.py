"""Live display of a training: a bar over epochs, the loss parts, a line per evaluation; TensorBoard files if asked for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from newkind.evaluation import Accuracy
    from newkind.training.trainer import EpochReport

__all__ = ["TrainingDisplay"]


class TrainingDisplay:
    """Context in which `show` is called after each epoch.

    Parameters
    ----------
    epochs : int
        Number of epochs.
    tensorboard : Path, optional
        Run folder that gets TensorBoard files. Default: none.
    """

    def __init__(self, epochs: int, tensorboard: Path | None = None) -> None:
        from rich.console import Group
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
        from rich.text import Text

        from newkind.progress import status_console

        if tensorboard is not None:
            _summary_writer()  # fails before anything is computed
        self.console = status_console()
        self.bar = Progress(
            TextColumn("Epoch"),
            MofNCompleteColumn(),
            BarColumn(bar_width=24),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            TextColumn("{task.description}"),
            console=self.console,
        )
        self.parts = Text(style="dim")
        self.live = Live(Group(self.bar, self.parts), console=self.console)
        self.epochs = epochs
        self.tensorboard = tensorboard
        self.writer: Any = None
        self.task: Any = None

    def __enter__(self) -> TrainingDisplay:
        return self

    def show(self, report: EpochReport, scores: Accuracy | None) -> None:
        """Show one epoch.

        Parameters
        ----------
        report : EpochReport
            The epoch.
        scores : Accuracy or None
            Its accuracy, if it was evaluated.
        """
        from newkind.progress import percent

        if self.task is None:
            self.task = self.bar.add_task("", total=self.epochs, completed=report.epoch - 1)
            if self.console.is_terminal:  # a log has no use for a display that is redrawn
                self.live.start()
        self.bar.update(self.task, completed=report.epoch, description=f"{report.images_per_second:,.0f} images/s")
        self.parts.plain = "  ".join(f"{name} {value:.2f}" for name, value in report.losses.items())
        line = f"epoch {report.epoch:>4}  loss {report.losses['total']:.3f}"
        if scores is not None:
            line += f"  All {percent(scores.all)}  Old {percent(scores.old)}  New {percent(scores.new)}"
        if scores is not None or (report.epoch == self.epochs and not self.console.is_terminal):
            self.console.print(line)
        if self.tensorboard is not None:
            self._write(report, scores)
        if report.epoch == self.epochs:
            self.live.stop()

    def _write(self, report: EpochReport, scores: Accuracy | None) -> None:
        """Write TensorBoard scalars; the run folder exists by now."""
        if self.writer is None and self.tensorboard is not None:
            self.writer = _summary_writer()(self.tensorboard / "tensorboard")
        for name, value in report.losses.items():
            self.writer.add_scalar(f"loss/{name}", value, report.epoch)
        for name in ("all", "old", "new") if scores is not None else ():
            self.writer.add_scalar(f"accuracy/{name}", getattr(scores, name), report.epoch)

    def __exit__(self, *_: object) -> None:
        if self.task is not None:
            self.live.stop()
        if self.writer is not None:
            self.writer.close()


def _summary_writer() -> Any:
    from newkind.errors import ConfigError

    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ConfigError(
            "TensorBoard is not installed.", fix="pip install 'newkind[tensorboard]'", code="missing-package"
        ) from None
    return SummaryWriter
