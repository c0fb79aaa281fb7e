"""`newkind export`: write a run in the format of another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from newkind.cli.options import RunFolder

__all__ = ["export"]

FORMAT = "csv, folders, imagefolder, labelstudio, coco, fiftyone, ecotaxa, camtrap-dp, darwin-core or onnx."


def export(
    run: RunFolder,
    format: Annotated[str, typer.Option("--format", help=f"Format: {FORMAT}")],
    out: Annotated[Path, typer.Option("--out", help="File or folder to create.")],
    mode: Annotated[
        str | None, typer.Option(help="How images are put into an exported folder: symlink or copy.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder that contains the images now, if they were moved.")] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            help="Metadata column of a role, as ROLE=COLUMN; roles: timestamp, time, latitude, longitude, deployment. Repeat it.",
        ),
    ] = None,
    deployments: Annotated[
        Path | None,
        typer.Option(help="Table with deployment (or site), latitude, longitude and optionally start and end."),
    ] = None,
    timezone: Annotated[
        str | None, typer.Option(help="Time zone of times that do not name one, such as +02:00 or Z.")
    ] = None,
    image_url: Annotated[
        str | None,
        typer.Option(help="What Label Studio puts before the name of an image. Default: its address for local files."),
    ] = None,
) -> None:
    """Write a run, with all decisions, in the format of another program. Never overwrites."""
    from newkind.cli.messages import print_line
    from newkind.data.wording import count
    from newkind.errors import ConfigError
    from newkind.export.formats import export_run
    from newkind.export.options import ExportOptions
    from newkind.runs.run import Run

    roles = {}
    for text in columns or []:
        role, sign, column = text.partition("=")
        if not sign:
            raise ConfigError(f"`columns` must be ROLE=COLUMN, got {text}.", code="unknown-role", role=text)
        roles[role] = column
    options = ExportOptions(
        mode=mode, data=data, columns=roles, deployments=deployments, timezone=timezone, image_url=image_url
    )
    found = export_run(Run.open(Path(run)), format, out, options)
    print_line(f"{count(len(found.items), 'image')} exported: {out}" if format != "onnx" else f"Model: {out}")
    _print_next(run, format, out)


def _print_next(run: str, format: str, out: Path) -> None:
    """Print what else was written, and what to do with it."""
    from newkind.cli.messages import next_command, print_line
    from newkind.data.wording import shell_quoted

    if format == "labelstudio":
        print_line(f"Labelling configuration: {out.with_suffix('.xml')}")
    elif format == "ecotaxa":
        print_line("Zip the folder to import it.")
    elif format == "camtrap-dp":
        print_line(
            f"Check contact, sampling design and capture method in {out / 'datapackage.json'} before you publish it."
        )
    elif format == "onnx":
        next_command(f"newkind predict --onnx {shell_quoted(str(out))} IMAGES")
    if format in ("labelstudio", "ecotaxa"):
        print_line("After corrections there:")
        next_command(f"newkind apply {shell_quoted(run)} EXPORTED_FILE --format {format}")
