"""`newkind predict`: assign new images to the categories of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from newkind.cli.options import MinConfidence

if TYPE_CHECKING:
    from newkind.data.items import Features, FileImages, Images
    from newkind.runs.assignment import Assignment

__all__ = ["predict"]

REPORT = "Also write a page with the images: as --out, but .html, or predictions.html."


def predict(
    run: Annotated[str, typer.Argument(help="A run folder written by discover; not with --onnx.")],
    images: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Images, folders, .txt lists of images, .npz files with features, or one .json or .tar file.",
            show_default=False,
        ),
    ] = None,
    onnx: Annotated[
        Path | None,
        typer.Option(
            help="Model written by newkind export, instead of a run. All arguments are images, folders or lists."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="CSV file to write. Default: standard output.")] = None,
    report: Annotated[bool, typer.Option("--report", help=REPORT)] = False,
    min_confidence: MinConfidence = 0.0,
    weights: Annotated[
        Path | None, typer.Option(help="File with the weights of the backbone, if it was moved.")
    ] = None,
    device: Annotated[str, typer.Option(help="Device: cpu, cuda, mps or auto.")] = "auto",
) -> None:
    """Assign new images to the categories of a run. `novelty` is the probability of all new categories together."""
    if onnx is not None:
        _check_plain(report=report, weights=weights)
        _predict_onnx(onnx, [Path(run), *(images or [])], out, min_confidence)
        return
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
    if not images:
        raise DataError("There is nothing to predict.", fix="Name at least one image.", code="no-images")
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


def _check_plain(*, report: bool, weights: Path | None) -> None:
    """Raise for options that do not apply to an ONNX file."""
    from newkind.errors import ConfigError

    for name, given in {"report": report, "weights": weights is not None}.items():
        if given:
            raise ConfigError(
                f"`{name}` does not apply to an ONNX file.", fix="Leave it out.", code="unused-option", setting=name
            )


def _predict_onnx(file: Path, places: list[Path], out: Path | None, min_confidence: float) -> None:
    """Predict with an exported model, without torch."""
    import logging

    from newkind.cli.messages import print_line
    from newkind.data.names import printable
    from newkind.data.wording import count
    from newkind.errors import DataError
    from newkind.export.onnx_model import OnnxModel, list_images, predict_images
    from newkind.progress import progress_bar
    from newkind.setting import check_min_confidence

    check_min_confidence(min_confidence)
    _check_out(out)
    items = list_images(places)
    model = OnnxModel(file)
    with progress_bar("Predicting", len(items)) as advance:
        lines, skipped = predict_images(model, items, min_confidence=min_confidence, advance=advance)
    logger = logging.getLogger(__name__)
    for item in skipped[:5]:
        logger.warning(f"Skipped {printable(item.name)}: {item.reason}.")
    if len(skipped) == len(lines):
        raise DataError("None of the images can be read.", code="nothing-readable")
    if _write(lines, out):
        logger.info(f"{count(len(lines) - len(skipped), 'image')} assigned.")
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
    from newkind.runs.assignment import assignments_csv
    from newkind.runs.formulas import warn_of_formulas

    content = to_bytes(assignments_csv(lines))
    if out is None:
        sys.stdout.buffer.write(content)
        return False
    warn_of_formulas(name for line in lines for name in (line.file, line.category))
    with replacing(out, overwrite=False) as file:
        file.write(content)
    return True


def _images(items: Images | Features) -> FileImages:
    """Images to show; features have none."""
    from newkind.data.items import FileImages
    from newkind.errors import DataError

    if not isinstance(items, FileImages):
        raise DataError("Features have no images to show.", fix="Leave out `report`.", code="not-images")
    return items
