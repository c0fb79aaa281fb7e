"""`newkind review`: a local page to correct a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from newkind.cli.options import RunFolder

__all__ = ["review"]


def review(
    run: RunFolder,
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    port: Annotated[
        int | None,
        typer.Option(help="Port to listen on. Default: 8642, or a free one if it is taken.", min=0, max=65535),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Refuse decisions; the page only shows the run.")
    ] = False,
    data: Annotated[Path | None, typer.Option(help="Folder that contains the images now, if they were moved.")] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on. Other machines can connect only to one of theirs.")
    ] = "127.0.0.1",
    allow_outside: Annotated[
        bool,
        typer.Option(
            "--allow-outside",
            help="Also show images outside the data folder, as with absolute names or symbolic links.",
        ),
    ] = False,
) -> None:
    """Start a local page to look at a run, correct its categories and approve them. Ctrl-C stops it."""
    from newkind.cli.messages import print_line
    from newkind.progress import status_console
    from newkind.review.serve import serve
    from newkind.review.workbench import ReviewOptions
    from newkind.runs.run import Run

    def ready(address: str) -> None:
        print_line(address)
        status_console().print("The address contains the access token. Press Ctrl-C to stop.")
        if open_it:
            import webbrowser

            if not webbrowser.open(address):
                status_console().print("No browser could be started. Open the address by hand.")

    options = ReviewOptions(read_only=read_only, data=data, allow_outside=allow_outside)
    serve(Run.open(Path(run)), options, host=host, port=port, ready=ready)
