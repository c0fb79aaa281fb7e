"""`newkind predict`: assign new images to the categories of a run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from newkind.cli.options import LEFT_OUT, MinConfidence, config_options, given_options
from newkind.reading import ReadingConfig

if TYPE_CHECKING:
    from newkind.data.items import Features, Images
    from newkind.pipeline.predict_inputs import Inputs
    from newkind.pipeline.predict_parts import InputParts
    from newkind.runs.assignment import Assignment
    from newkind.runs.model_io import LoadedModel
    from newkind.runs.run import Run
    from newkind.shard import Shard

__all__ = ["check_out", "check_unused", "predict", "write_lines"]

REPORT = "Also write a page with the images: as --out, but .html, or predictions.html."
IMAGES = (
    "Images, folders, .txt lists of images, .npz files with features; or one table (.csv, .tsv, .jsonl, .xlsx, .parquet), "
    ".json, .npy, .tar or .parquet file with images."
)
ONNX = "Model written by newkind export, instead of a run. All arguments are images, folders or .txt lists."
OUT = (
    "CSV file to write; or a folder, with a slash at its end, for Parquet files that the same command completes after an "
    "interruption. Default: standard output."
)
SHARD = "Number of this worker, from 0, and number of workers, which share the files of a folder. Default: 0/1."
UNUSED = dict.fromkeys(("label_column", "truth_column", "labels"), LEFT_OUT)
"""Options for reading labels, which predictions do not use."""


@config_options(reading=(ReadingConfig, UNUSED))
def predict(
    context: typer.Context,
    reading: ReadingConfig,
    run: Annotated[str, typer.Argument(help="A run folder written by discover; not with --onnx.")],
    images: Annotated[list[Path] | None, typer.Argument(help=IMAGES, show_default=False)] = None,
    onnx: Annotated[Path | None, typer.Option(help=ONNX)] = None,
    out: Annotated[str | None, typer.Option(help=OUT)] = None,
    shard: Annotated[str | None, typer.Option(help=SHARD, metavar="I/N")] = None,
    part_size: Annotated[int, typer.Option(help="Number of images per Parquet file.", min=1)] = 4096,
    report: Annotated[bool, typer.Option("--report", help=REPORT)] = False,
    min_confidence: MinConfidence = 0.0,
    weights: Annotated[
        Path | None, typer.Option(help="File with the weights of the backbone, if it was moved.")
    ] = None,
    device: Annotated[str, typer.Option(help="Device: cpu, cuda, mps or auto.")] = "auto",
) -> None:
    """Assign new images to the categories of a run. `novelty` is the probability of all new categories together."""
    if onnx is not None:
        from newkind.cli.predict_onnx import predict_onnx

        check_unused(report=report, weights=weights, shard=shard, **reading.given())
        predict_onnx(onnx, [Path(run), *(images or [])], None if out is None else Path(out), min_confidence)
        return
    from newkind import distributed
    from newkind.errors import ConfigError
    from newkind.pipeline.predict_inputs import open_inputs, with_boxes_as_in
    from newkind.pipeline.predict_parts import open_parts
    from newkind.process_failure import clear_message
    from newkind.runs.model_io import load_model
    from newkind.runs.run import Run
    from newkind.shard import Shard

    opened, images = Run.open(Path(run)), images or []
    reading = with_boxes_as_in(opened.config().get("reading", {}), images, reading, given_options(context))

    def model() -> LoadedModel:
        return load_model(opened, device=device, weights=weights)

    in_parts = out is not None and (out.endswith(("/", os.sep)) or Path(out).is_dir())
    if out is not None and in_parts and not report:
        distributed.init_from_environment()
        with clear_message():
            own = Shard.parse(shard or "0/1").divided(rank=distributed.rank(), n_processes=distributed.world_size())
            _predict_parts(model, open_parts(images, reading, size=part_size), Path(out), own, min_confidence)
        distributed.shutdown()
        return
    if in_parts or shard is not None:
        raise ConfigError(
            "`report` cannot be combined with a folder." if in_parts else "`shard` needs a folder.",
            fix="Use a CSV file." if in_parts else "End `out` with a slash, as in PARTS/.",
            code="needs-file" if in_parts else "needs-folder",
        )
    check_out(None if out is None else Path(out))
    inputs = open_inputs(images, reading)
    _predict_file(opened, model, inputs, None if out is None else Path(out), report, min_confidence)


def _predict_parts(
    load: Callable[[], LoadedModel], inputs: InputParts, out: Path, own: Shard, min_confidence: float
) -> None:
    """Write one Parquet file per part of the images, in every process its own."""
    import logging

    from newkind import distributed
    from newkind.cli.messages import print_line
    from newkind.data.wording import count
    from newkind.pipeline.predict_parts import predict_parts
    from newkind.progress import progress_bar

    with progress_bar("Predicting", len(inputs) // own.count, show=distributed.main_process()) as advance:
        found = predict_parts(load(), inputs, out, shard=own, min_confidence=min_confidence, advance=advance)
    distributed.barrier()
    logger = logging.getLogger(__name__)
    if found.n_found:
        logger.info(f"{count(found.n_found, 'part')} of {found.n_parts} existed already.")
    unread = f", {found.n_unreadable:,} of them unreadable" if found.n_unreadable else ""
    logger.info(f"{count(found.n_images, 'image')} predicted{unread}.")
    if distributed.main_process():
        print_line(f"Results: {out}")


def _predict_file(
    run: Run,
    load: Callable[[], LoadedModel],
    inputs: Inputs,
    out: Path | None,
    report: bool,
    min_confidence: float,
) -> None:
    """Write one CSV file."""
    import logging

    from newkind.backbone.decoded_views import log_skipped
    from newkind.cli.messages import print_line
    from newkind.data.wording import count
    from newkind.errors import DataError
    from newkind.pipeline.predict import predict as run_prediction
    from newkind.progress import progress_bar
    from newkind.report.predictions import write_predictions

    logger, items = logging.getLogger(__name__), inputs.items
    for note in inputs.notes:
        logger.info(note)
    if report:
        _images(items)  # raises for features
    model = load()
    with progress_bar("Predicting", len(items)) as advance:
        found = run_prediction(model, items, groups=inputs.groups, min_confidence=min_confidence, advance=advance)
    log_skipped(inputs.skipped + found.skipped)
    if not model.calibrated:
        logger.info("The confidences of this run are not calibrated.")
    n_read = sum(line.status != "unreadable" for line in found.assignments)
    if n_read == 0:
        raise DataError("None of the images can be read.", code="nothing-readable")
    if report:
        page = (out or Path("predictions.csv")).with_suffix(".html")
        write_predictions(run, _images(items), found.assignments, model.categories, page)
        logger.info(f"Page with the images: {page}")
    if not write_lines(found.assignments, out):
        return
    n_unsure = sum(line.status == "unsure" for line in found.assignments)
    unsure = f", {n_unsure:,} of them unsure" if n_unsure else ""
    logger.info(f"{count(n_read, 'image')} assigned{unsure}.")
    print_line(f"Results: {out}")


def check_unused(**options: object) -> None:
    """Raise ConfigError for options that do not apply to an ONNX file."""
    from newkind.errors import ConfigError

    for name, given in options.items():
        if given:
            raise ConfigError(
                f"`{name}` does not apply to an ONNX file.", fix="Leave it out.", code="unused-option", setting=name
            )


def check_out(out: Path | None) -> None:
    """Raise, before any work, if the results cannot be written."""
    import sys

    from newkind.atomic import check_writable, remove_leftover
    from newkind.errors import RunError

    if out is None:
        if sys.stdout is None:
            raise RunError("Standard output is closed.", fix="Name a file with `out`.", code="closed-output")
        return
    if out.exists():
        remove_leftover(out)
        raise RunError(f"{out} exists already. It was not changed.", fix="Use another `out`.", code="exists", file=out)
    check_writable(out)


def write_lines(lines: list[Assignment], out: Path | None) -> bool:
    """Write assignments as CSV; whether that was to a file, not to standard output."""
    import sys

    from newkind.atomic import replacing, to_bytes
    from newkind.runs.assignment import assignments_csv
    from newkind.runs.formulas import warn_of_formulas
    from newkind.terminal import printable_lines

    text = assignments_csv(lines)
    if out is None:
        # A file or a pipe gets the bytes of the names; a terminal would obey the escapes in them.
        sys.stdout.buffer.write(to_bytes(printable_lines(text) if sys.stdout.isatty() else text))
        return False
    warn_of_formulas(name for line in lines for name in (line.file, line.category))
    with replacing(out, overwrite=False) as file:
        file.write(to_bytes(text))
    return True


def _images(items: Images | Features) -> Images:
    """Images to show; features have none."""
    from newkind.data.items import Features
    from newkind.errors import DataError

    if isinstance(items, Features):
        raise DataError("Features have no images to show.", fix="Leave out `report`.", code="not-images")
    return items
