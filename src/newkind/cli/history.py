"""`newkind history`: all decisions about a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from newkind.cli.options import RunFolder

__all__ = ["history"]


def history(
    run: RunFolder,
    as_json: Annotated[bool, typer.Option("--json", help="Print all events as JSON lines.")] = False,
) -> None:
    """List all decisions about a run, also those that were undone."""
    from rich.table import Table
    from rich.text import Text

    from newkind.cli.messages import next_command, print_line, result_console
    from newkind.data.names import printable
    from newkind.data.wording import shell_quoted
    from newkind.runs.decision_log import DecisionLog
    from newkind.runs.describe import describe
    from newkind.runs.replay import effective
    from newkind.runs.run import Run

    log = DecisionLog(Run.open(Path(run)).folder)
    if as_json:
        print(log.export_jsonl(), end="")
        return
    events = log.events()
    if not events:
        print_line("There are no decisions about this run.")
        next_command(f"newkind rename {shell_quoted(run)} new-01 NAME")
        return
    counts = {event.number for event in effective(events)}
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("Event", justify="right")
    for title in ("Time (UTC)", "Author", "Decision"):
        table.add_column(title, overflow="fold")
    for event in events:
        is_undone = event.number not in counts and event.decision.kind not in ("undo", "redo")
        text = f"{describe(event.decision)}{' (undone)' if is_undone else ''}"
        cells = (str(event.number), event.time[:19].replace("T", " "), event.author, text)
        table.add_row(*(Text(printable(cell)) for cell in cells), style="dim" if is_undone else "")
    result_console().print(table)
