"""`newkind doctor`: is everything in place on this machine?"""

from __future__ import annotations

import typer

__all__ = ["doctor"]


def doctor() -> None:
    """Check this machine: versions, devices, memory, disk, weights, caches."""
    from rich.console import Console
    from rich.table import Table

    from newkind.pipeline.doctor import examine

    console = Console(highlight=False)
    table = Table.grid(padding=(0, 2))
    findings = examine()
    for finding in findings:
        mark = "[green]ok[/]" if finding.ok else "[bold yellow]look[/]"
        table.add_row(mark, f"[bold]{finding.what}[/]", finding.found)
    console.print(table)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(2)
