"""`newkind discover`: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from newkind.cli.options import (
    DEFAULT_BACKBONE,
    Backbone,
    Device,
    Dtype,
    ImageSize,
    RandomWeights,
    TunedBlocks,
    Views,
    Weights,
)

if TYPE_CHECKING:
    from newkind.config import DiscoverConfig
    from newkind.pipeline.discover import Outcome

__all__ = ["EpochLines", "discover"]

VIEWS, TRAIN = "Method", "Training"


def discover(
    data: Annotated[
        str, typer.Argument(help="A folder, a CSV/JSONL table, an .npz file, or a benchmark as NAME:FOLDER.")
    ],
    out: Annotated[Path, typer.Option("--out", help="The run folder to make.")],
    n_categories: Annotated[
        str | None,
        typer.Option(
            help="Known and new categories together: a number, or auto to find it out. Without it, the truth's if there is one, otherwise auto."
        ),
    ] = None,
    method: Annotated[str, typer.Option(help="newkind methods lists them.", rich_help_panel=VIEWS)] = "simgcd",
    exactly: Annotated[
        bool,
        typer.Option(
            "--exactly",
            help="As many categories as --n-categories says, even if the images do not seem to have them (recipe modern).",
        ),
    ] = False,
    recipe: Annotated[
        str | None,
        typer.Option(
            help="SimGCD's: modern, release or paper. Without it, modern, or release on a DINO v1 backbone.",
            rich_help_panel=VIEWS,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="A setting of the method, as entropy_weight=2; may be repeated.", rich_help_panel=VIEWS
        ),
    ] = None,
    online: Annotated[
        bool, typer.Option("--online", help="Fresh views every epoch, no token cache.", rich_help_panel=VIEWS)
    ] = False,
    epochs: Annotated[
        int | None, typer.Option(help="Without it, 40 for the recipe modern, otherwise 200.", rich_help_panel=TRAIN)
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Images a step (and a process).", rich_help_panel=TRAIN)] = 128,
    learning_rate: Annotated[float, typer.Option(rich_help_panel=TRAIN)] = 0.1,
    views_per_step: Annotated[int, typer.Option(help="Views of each image in a step.", rich_help_panel=TRAIN)] = 2,
    global_losses: Annotated[
        bool,
        typer.Option("--global-losses", help="Several processes: losses over the joint batch.", rich_help_panel=TRAIN),
    ] = False,
    precision: Annotated[str, typer.Option(help="auto, fp32 or bf16.", rich_help_panel=TRAIN)] = "auto",
    evaluate_every: Annotated[
        int, typer.Option(help="Epochs between two scores (or, without truth, counts).", rich_help_panel=TRAIN)
    ] = 10,
    seed: Annotated[int, typer.Option(rich_help_panel=TRAIN)] = 0,
    backbone: Backbone = DEFAULT_BACKBONE,
    weights: Weights = None,
    random_weights: RandomWeights = False,
    image_size: ImageSize = 224,
    views: Views = 8,
    tuned_blocks: TunedBlocks = 1,
    dtype: Dtype = "float16",
    device: Device = "auto",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Throw away the run in --out and start anew.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Insist that there is a run to go on with.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, how long, how much disk.")
    ] = False,
    checkpoint_seconds: Annotated[
        float,
        typer.Option(
            help="The least time between two checkpoints.", rich_help_panel=TRAIN, envvar="NEWKIND_CHECKPOINT_SECONDS"
        ),
    ] = 60.0,
    report: Annotated[bool, typer.Option(help="Write report.html at the end.")] = True,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Also write TensorBoard files into the run.")
    ] = False,
) -> None:
    """Sort a partly labelled pile of images into known and new categories. The same command goes on where it stopped."""

    from rich.console import Console

    from newkind import distributed
    from newkind.config import (
        BackboneConfig,
        TrainingConfig,
        configure,
        default_epochs,
        read_n_categories,
        read_settings,
    )
    from newkind.data.open_data import open_data
    from newkind.pipeline.discover import discover as run_discovery
    from newkind.report.write import try_report

    distributed.init_from_environment()
    console = Console(highlight=False, quiet=not distributed.main_process())
    collection = open_data(data)
    epochs = default_epochs(method, backbone, recipe) if epochs is None else epochs
    config = configure(
        collection,
        benchmark=data.partition(":")[0],
        method=method,
        n_categories=read_n_categories(n_categories),
        recipe=recipe,
        settings=read_settings(settings or []),
        training=TrainingConfig(
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            n_views=views_per_step,
            global_losses=global_losses,
            precision=precision,
            evaluate_every=evaluate_every,
            checkpoint_seconds=checkpoint_seconds,
            seed=seed,
        ),
        trunk=BackboneConfig(
            backbone=backbone,
            weights=weights,
            random_weights=random_weights,
            image_size=image_size,
            n_views=views,
            n_tuned=tuned_blocks,
            dtype=dtype,
            device=device,
        ),
        online=online,
        exactly=exactly,
    )
    with (
        distributed.clear_message(),
        EpochLines(config.training.epochs, out if tensorboard else None, show=distributed.main_process()) as lines,
    ):
        outcome = run_discovery(
            collection,
            out,
            config,
            overwrite=overwrite,
            resume=resume,
            dry_run=dry_run,
            on_epoch=lines.show,
        )
    if outcome is not None and distributed.main_process():
        page = None
        if report:
            page = try_report(outcome.run, collection=collection, seconds=outcome.seconds, progress=True)
        _tell(console, outcome, config, page)
    distributed.shutdown()


class EpochLines:
    """A bar over epochs with rate and time left, the loss parts under it, a line a score; TensorBoard files if asked."""

    def __init__(self, epochs: int, tensorboard: Path | None, *, show: bool) -> None:
        from rich.console import Console, Group
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
        from rich.text import Text

        if tensorboard is not None:
            _summary_writer()  # before anything is computed
        self.console = Console(stderr=True, highlight=False, quiet=not show)
        time_left = TimeRemainingColumn(compact=True, elapsed_when_finished=True)
        self.bar = Progress(
            TextColumn("Epoch"),
            MofNCompleteColumn(),
            BarColumn(bar_width=24),
            time_left,
            TextColumn("{task.description}"),
            console=self.console,
        )
        self.parts = Text(style="dim")
        self.live = Live(Group(self.bar, self.parts), console=self.console)
        self.epochs = epochs
        self.tensorboard = tensorboard
        self.writer: Any = None
        self.task: Any = None

    def __enter__(self) -> EpochLines:
        return self

    def show(self, report: Any, scores: Any) -> None:
        from newkind.progress import percent

        if self.task is None:
            self.live.start()
            self.task = self.bar.add_task("", total=self.epochs, completed=report.epoch - 1)
        self.bar.update(self.task, completed=report.epoch, description=f"{report.images_per_second:,.0f} images/s")
        self.parts.plain = "  ".join(f"{name} {value:.2f}" for name, value in report.losses.items())
        if scores is not None:
            line = f"epoch {report.epoch:>4}  loss {report.losses['total']:.3f}"
            self.console.print(
                f"{line}  All {percent(scores.all)}  Old {percent(scores.old)}  New {percent(scores.new)}"
            )
        if self.tensorboard is not None:
            self._write(report, scores)

    def _write(self, report: Any, scores: Any) -> None:
        if self.writer is None:  # not before the run folder is there
            self.writer = _summary_writer()(self.tensorboard / "tensorboard")  # type: ignore[operator]
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
        raise ConfigError("TensorBoard is not installed.", fix="pip install 'newkind[tensorboard]'") from None
    return SummaryWriter


def _tell(console: Any, outcome: Outcome, config: DiscoverConfig, report: Path | None) -> None:
    from newkind.progress import duration
    from newkind.report.summary import summary_of

    run = outcome.run.folder
    console.print()
    console.print(summary_of(outcome.run))
    parts = ", ".join(f"{name} {duration(seconds)}" for name, seconds in outcome.seconds.items())
    how = f"{config.method_name}, recipe {config.recipe}" if config.method_name == "simgcd" else config.method_name
    console.print(f"\nTime: {parts}. Backbone {config.backbone.name}, method {how}.")
    console.print(f"Results: {run}/assignments.csv, with categories.json, the metrics and the model beside it.")
    if report is not None:
        console.print(f"Look at it: {report}", markup=False, soft_wrap=True)
    console.print(f"[dim]Next:  newkind sort {run} --to FOLDER    newkind predict {run} IMAGES[/]")
