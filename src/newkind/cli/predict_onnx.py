"""`newkind predict --onnx`: predict with an exported model, without importing torch."""

from __future__ import annotations

from pathlib import Path

__all__ = ["predict_onnx"]

N_LOGGED = 5


def predict_onnx(file: Path, places: list[Path], out: Path | None, min_confidence: float) -> None:
    """Assign images to the categories of an exported model, and write or print the results."""
    import logging

    from newkind.cli.messages import print_line
    from newkind.cli.predict import check_out, write_lines
    from newkind.data.names import printable
    from newkind.data.wording import count
    from newkind.errors import DataError
    from newkind.export.onnx_model import OnnxModel, list_images, predict_images
    from newkind.progress import progress_bar
    from newkind.setting import check_min_confidence

    check_min_confidence(min_confidence)
    check_out(out)
    model, items = OnnxModel(file), list_images(places)
    with progress_bar("Predicting", len(items)) as advance:
        lines, skipped = predict_images(model, items, min_confidence=min_confidence, advance=advance)
    logger = logging.getLogger(__name__)
    for item in skipped[:N_LOGGED]:
        logger.warning(f"Skipped {printable(item.name)}: {item.reason}.")
    if len(skipped) > N_LOGGED:
        logger.warning(f"Skipped {len(skipped) - N_LOGGED:,} more; their status is `unreadable`.")
    if len(skipped) == len(lines):
        raise DataError("None of the images can be read.", code="nothing-readable")
    if write_lines(lines, out):
        logger.info(f"{count(len(lines) - len(skipped), 'image')} assigned.")
        print_line(f"Results: {out}")
