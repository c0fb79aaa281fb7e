"""`newkind sort`: put the images of a run into one folder per category."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from newkind.cli.options import RunFolder

__all__ = ["sort"]

VERBS = {"symlink": "link", "copy": "copy", "move": "move"}


def sort(
    run: RunFolder,
    to: Annotated[Path, typer.Option("--to", help="Folder to create, with one subfolder per category.")],
    mode: Annotated[str | None, typer.Option(help="How files are placed: symlink, copy or move. Required.")] = None,
    data: Annotated[Path | None, typer.Option(help="Folder that contains the images now, if they were moved.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be done.")] = False,
) -> None:
    """Put the images of a run into one folder per category. Never overwrites; the same command resumes."""
    from collections import Counter

    from newkind.cli.messages import print_line
    from newkind.data.wording import count
    from newkind.errors import ConfigError
    from newkind.export.sorting import plan_run, sort_images
    from newkind.pipeline.sorting import MODES
    from newkind.progress import progress_bar
    from newkind.runs.run import Run

    if mode not in MODES:
        given = "is not given" if mode is None else f"is {mode}"
        raise ConfigError(
            f"`mode` {given}.", fix=f"Set `mode` to {', '.join(MODES)}.", code="unknown-choice", setting="mode"
        )
    plan = plan_run(Run.open(Path(run)), to, mode, data=data)
    counts = Counter(target.parent.name for target in plan.targets)
    folders = count(len(counts), "folder")
    if dry_run:
        print_line(f"Would {VERBS[mode]} {count(len(plan.targets), 'file')} from {plan.origin} into {folders} of {to}:")
        for name, number in counts.most_common(12):
            print_line(f"  {name}: {number:,}")
        return
    with progress_bar("Sorting", len(plan.targets), unit="files") as advance:
        done = sort_images(plan, advance=advance)
    there = f", {len(plan.targets) - done:,} were in place already" if done < len(plan.targets) else ""
    print_line(f"{count(done, 'file')} placed{there}: {folders} in {to}")
