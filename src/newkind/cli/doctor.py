"""`newkind doctor`: check this machine."""

from __future__ import annotations

import typer

__all__ = ["doctor"]


def doctor() -> None:
    """Check this machine: versions, devices, memory, disk, weights, caches. Exit code 2 if something is wrong."""
    from rich.table import Table
    from rich.text import Text

    from newkind.cli.messages import result_console
    from newkind.pipeline.doctor import examine

    table = Table.grid(padding=(0, 2))
    findings = examine()
    for finding in findings:
        mark = Text("ok", "green") if finding.ok else Text("check", "bold yellow")
        table.add_row(mark, Text(finding.what, "bold"), Text(finding.found))
    result_console().print(table)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(2)
