"""`newkind refit`: solve the categories of a run again with what decisions say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from newkind.cli.decisions import Author
from newkind.cli.options import RunFolder

if TYPE_CHECKING:
    from newkind.pipeline.refit import Refit

__all__ = ["refit"]

MOST_ROWS = 15


def refit(
    run: RunFolder,
    accept: Annotated[
        bool, typer.Option("--accept", "--yes", "-y", help="Accept the result without a question.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would move.")] = False,
    author: Author = None,
) -> None:
    """Learn from decisions: solve the categories again on stored features, and show what moves before it is accepted."""
    from newkind.cli.messages import next_command, print_line
    from newkind.data.wording import shell_quoted
    from newkind.pipeline.refit import accept_refit, plan_refit
    from newkind.runs.run import Run

    opened = Run.open(Path(run))
    found = plan_refit(opened)
    _print_moves(found)
    if dry_run:
        print_line("Nothing was changed (--dry-run).")
        return
    if not accept and not (sys.stdin.isatty() and typer.confirm("Accept?")):
        print_line("Nothing was changed.")
        next_command(f"newkind refit {shell_quoted(run)} --accept")
        return
    event = accept_refit(opened, found, author=author)
    print_line(
        f"{event.number}: Accepted. `newkind predict` uses the new model; `newkind undo` selects the one before."
    )
    next_command(f"newkind report {shell_quoted(run)} --open")


def _print_moves(refit: Refit) -> None:
    """Print which categories become known classes, and how many images move between which categories."""
    from newkind.cli.messages import print_line
    from newkind.data.wording import count

    names = {state.id: state.name for state in refit.before.categories} | {"": "no category"}
    n_free = int((~refit.is_confirmed).sum())
    n_labels = int(refit.is_confirmed.sum())
    print_line(f"Learned from {count(n_labels, 'image')} with a label or a confirmed category.")
    if refit.became_known:
        print_line(f"New known classes: {', '.join(names[name] for name in refit.became_known)}")
    print_line(f"{count(len(refit.moved), 'image')} of {n_free:,} others would move.")
    pairs = refit.moved_between().most_common()
    for (before, after), n in pairs[:MOST_ROWS]:
        print_line(f"  {n:>6,}  {names[before]} -> {names[after]}")
    if len(pairs) > MOST_ROWS:
        print_line(f"  and {sum(n for _, n in pairs[MOST_ROWS:]):,} more")
