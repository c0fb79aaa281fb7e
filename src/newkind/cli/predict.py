"""`newkind predict`: assign new images to the categories of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from newkind.cli.options import MinConfidence, RunFolder

if TYPE_CHECKING:
    from newkind.data.items import Features, FileImages, Images
    from newkind.runs.assignment import Assignment

__all__ = ["predict"]

REPORT = "Also write a page with the images: as --out, but .html, or predictions.html."


def predict(
    run: RunFolder,
    images: Annotated[
        list[Path],
        typer.Argument(
            help="Images, folders, .txt lists of images, .npz files with features, or one .json or .tar file."
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="CSV file to write. Default: standard output.")] = None,
    report: Annotated[bool, typer.Option("--report", help=REPORT)] = False,
    min_confidence: MinConfidence = 0.0,
    weights: Annotated[
        Path | None, typer.Option(help="File with the weights of the backbone, if it was moved.")
    ] = None,
    device: Annotated[str, typer.Option(help="Device: cpu, cuda, mps or auto.")] = "auto",
) -> None:
    """Assign new images to the categories of a run. `novelty` is the probability of all new categories together."""
    import logging

    from newkind.backbone.decoded_views import log_skipped
    from newkind.cli.messages import print_line
    from newkind.data.wording import count
    from newkind.errors import DataError
    from newkind.pipeline.predict import predict as run_prediction
    from newkind.pipeline.predict import read_inputs
    from newkind.progress import progress_bar
    from newkind.report.predictions import write_predictions
    from newkind.runs.model_io import load_model
    from newkind.runs.run import Run

    opened = Run.open(Path(run))
    _check_out(out)
    items = read_inputs(images)
    if report:
        _images(items)  # raises for features
    model = load_model(opened, device=device, weights=weights)
    with progress_bar("Predicting", len(items)) as advance:
        found = run_prediction(model, items, min_confidence=min_confidence, advance=advance)
    log_skipped(found.skipped)
    logger = logging.getLogger(__name__)
    if not model.calibrated:
        logger.info("The confidences of this run are not calibrated.")
    n_read = sum(line.status != "unreadable" for line in found.assignments)
    if n_read == 0:
        raise DataError("None of the images can be read.", code="nothing-readable")
    if report:
        page = (out or Path("predictions.csv")).with_suffix(".html")
        write_predictions(opened, _images(items), found.assignments, model.categories, page)
        logger.info(f"Page with the images: {page}")
    if not _write(found.assignments, out):
        return
    n_unsure = sum(line.status == "unsure" for line in found.assignments)
    unsure = f", {n_unsure:,} of them unsure" if n_unsure else ""
    logger.info(f"{count(n_read, 'image')} assigned{unsure}.")
    print_line(f"Results: {out}")


def _check_out(out: Path | None) -> None:
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


def _write(lines: list[Assignment], out: Path | None) -> bool:
    """Write assignments as CSV; whether that was to a file, not to standard output."""
    import sys

    from newkind.atomic import replacing, to_bytes
    from newkind.runs.assignments import assignments_csv
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


def _images(items: Images | Features) -> FileImages:
    """Images to show; features have none."""
    from newkind.data.items import FileImages
    from newkind.errors import DataError

    if not isinstance(items, FileImages):
        raise DataError("Features have no images to show.", fix="Leave out `report`.", code="not-images")
    return items
