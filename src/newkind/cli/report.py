"""`newkind report`: a finished run as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from newkind.cli.options import RunFolder

__all__ = ["report"]


def report(
    run: RunFolder,
    open_it: Annotated[bool, typer.Option("--open", help="Open the report in the browser.")] = False,
    compare: Annotated[Path | None, typer.Option(help="Another run folder to compare with.")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder that contains the images now, if they were moved.")] = None,
    out: Annotated[Path | None, typer.Option(help="File to write. Default: report.html in the run folder.")] = None,
) -> None:
    """Write the report of a run: categories with their images, images to check, map, accuracy and settings."""
    from newkind.cli.messages import print_line
    from newkind.progress import status_console
    from newkind.report.write import write_report
    from newkind.runs.run import Run

    other = None if compare is None else Run.open(compare)
    written = write_report(Run.open(Path(run)), data=data, out=out, compare=other)
    print_line(f"{written} ({written.stat().st_size / 1e6:.1f} MB)")
    if open_it:
        import webbrowser

        if not webbrowser.open(written.resolve().as_uri()):
            status_console().print("No browser could be started. Open the file by hand.")
