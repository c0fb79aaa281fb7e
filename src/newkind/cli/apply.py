"""`newkind apply`: record corrections that were made in another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from newkind.cli.decisions import Author, DryRun
from newkind.cli.options import RunFolder

__all__ = ["apply"]


def apply(
    run: RunFolder,
    file: Annotated[Path, typer.Argument(help="File that the other program exported.")],
    format: Annotated[str, typer.Option("--format", help="Format of the file: labelstudio or ecotaxa.")],
    dry_run: DryRun = False,
    author: Author = None,
) -> None:
    """Record corrections made in Label Studio or EcoTaxa as decisions: approved, moved, renamed and junk images."""
    from newkind.cli.messages import next_command, print_line
    from newkind.data.wording import count, shell_quoted
    from newkind.export.corrections import log_left_out, plan_corrections, record_corrections
    from newkind.runs.describe import describe
    from newkind.runs.run import Run

    opened = Run.open(Path(run))
    plan = plan_corrections(opened, file, format=format)
    log_left_out(plan)
    events = [] if dry_run else record_corrections(opened, plan, author=author)
    for number, decision in enumerate(plan.decisions):
        print_line(f"{f'{events[number].number}: ' if events else ''}{describe(decision)}.")
    left = len(plan.unknown) + len(plan.contradicting)
    print_line(
        f"{count(len(plan.decisions), 'decision')}, {count(plan.n_unchanged, 'image')} confirmed before, {left:,} left out."
    )
    if dry_run:
        print_line("Nothing was recorded (--dry-run).")
    elif events:
        next_command(f"newkind history {shell_quoted(str(opened.folder))}")
