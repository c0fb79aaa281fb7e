"""The formats of `newkind export`, and the export itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from newkind.atomic import check_folder, check_writable, finish_folder, remove_leftover
from newkind.errors import ConfigError, RunError
from newkind.export.camtrap_dp import write_camtrap_dp
from newkind.export.coco import write_coco
from newkind.export.contents import ExportContents, read_contents
from newkind.export.csv_file import write_csv
from newkind.export.darwin_core import write_darwin_core
from newkind.export.ecotaxa import write_ecotaxa
from newkind.export.folders import write_fiftyone, write_folders, write_imagefolder
from newkind.export.label_studio import write_label_studio
from newkind.export.onnx_file import write_onnx
from newkind.export.options import ExportOptions
from newkind.runs.run import Run

__all__ = ["FORMATS", "ExportFormat", "export_run"]


@dataclass(frozen=True)
class ExportFormat:
    """One format.

    Parameters
    ----------
    write : callable
        Called with the contents, the place to write to and the options.
    suffix : str
        Suffix of the file that it writes; empty for a folder.
    about : str
        What it is for.
    has_images : bool, default=False
        Whether images are part of it, which needs a `mode`.
    """

    write: Callable[[ExportContents, Path, ExportOptions], None]
    suffix: str
    about: str
    has_images: bool = False


FORMATS = {
    "csv": ExportFormat(write_csv, ".csv", "a table of all images"),
    "folders": ExportFormat(write_folders, "", "one folder per category", has_images=True),
    "imagefolder": ExportFormat(write_imagefolder, "", "Hugging Face datasets and torchvision", has_images=True),
    "labelstudio": ExportFormat(write_label_studio, ".json", "tasks for Label Studio"),
    "coco": ExportFormat(write_coco, ".json", "COCO annotations"),
    "fiftyone": ExportFormat(write_fiftyone, "", "a FiftyOneImageClassificationDataset", has_images=True),
    "ecotaxa": ExportFormat(write_ecotaxa, "", "images and a table for EcoTaxa", has_images=True),
    "camtrap-dp": ExportFormat(write_camtrap_dp, "", "a Camera Trap Data Package"),
    "darwin-core": ExportFormat(write_darwin_core, ".zip", "a Darwin Core Archive"),
    "onnx": ExportFormat(write_onnx, ".onnx", "the model, for predict --onnx and serve"),
}
"""Formats by name."""


def export_run(run: Run, format: str, out: Path, options: ExportOptions) -> ExportContents:
    """Write a run in the format of another program. Nothing is overwritten; an export is there as a whole or not at all.

    Parameters
    ----------
    run : Run
        A finished run. All decisions about it are followed.
    format : str
        A key of `FORMATS`.
    out : Path
        File or folder to create.
    options : ExportOptions
        Options of the format.

    Returns
    -------
    ExportContents
        What was exported.

    Raises
    ------
    ConfigError
        With the code `unknown-format`, `missing-mode` or `wrong-suffix`.
    RunError
        With the code `exists`, or as from `read_contents` and `open_images`.
    DataError
        If metadata that the format needs is missing or invalid.
    """
    if format not in FORMATS:
        raise ConfigError(
            f"There is no format {format}.", fix=f"Formats: {', '.join(FORMATS)}.", code="unknown-format", format=format
        )
    chosen = FORMATS[format]
    if chosen.has_images and options.mode is None:
        raise ConfigError(
            f"The format {format} contains the images.",
            fix="Set `mode` to copy, or to symlink for links to the images.",
            code="missing-mode",
            setting="mode",
        )
    _check_out(out, format, chosen.suffix)
    contents = read_contents(run, options.data)
    chosen.write(contents, out, options)
    return contents


def _check_out(out: Path, format: str, suffix: str) -> None:
    """Raise, before any work, if the export cannot be written."""
    if suffix and out.suffix.lower() != suffix:
        raise ConfigError(
            f"The format {format} writes a file with the suffix {suffix}, but `out` is {out}.",
            fix=f"Use {out.with_suffix(suffix)}." if out.name else "",
            code="wrong-suffix",
            setting="out",
        )
    if os.path.lexists(out) and (suffix or not out.is_dir() or any(out.iterdir())):
        remove_leftover(out)
        finish_folder(out)
        raise RunError(f"{out} exists already. It was not changed.", fix="Use another `out`.", code="exists", file=out)
    if suffix:
        check_writable(out)
    else:
        check_folder(out)
