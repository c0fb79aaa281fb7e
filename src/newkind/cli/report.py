"""`newkind report`: one page about a finished run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["report"]


def report(
    run: Annotated[Path, typer.Argument(help="A run folder made by discover.")],
    open_it: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    compare: Annotated[Path | None, typer.Option(help="Another run: what moved between the two.")] = None,
    data: Annotated[Path | None, typer.Option(help="Where the images are now, if they have moved since.")] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write [default: report.html in the run].")] = None,
) -> None:
    """Write a page to look at: the categories with their images, the doubtful ones, a map, the scores, the training."""

    from rich.console import Console

    from newkind.report.write import write_report
    from newkind.runs.run import Run

    console = Console(stderr=True, highlight=False)
    written = write_report(
        Run.open(run),
        data=data,
        out=out,
        compare=None if compare is None else Run.open(compare),
    )
    Console(highlight=False).print(f"{written} ({written.stat().st_size / 1e6:.1f} MB)", markup=False, soft_wrap=True)
    if open_it:
        import webbrowser

        if not webbrowser.open(written.resolve().as_uri()):
            console.print("No browser could be started; open the file in one.")
