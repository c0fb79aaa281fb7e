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
    mode: Annotated[str, typer.Option(help="How files are placed: symlink, copy or move.")] = "symlink",
    data: Annotated[Path | None, typer.Option(help="Folder that contains the images now, if they were moved.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be done.")] = False,
) -> None:
    """Put the images of a run into one folder per category. Never overwrites; the same command resumes."""
    from collections import Counter

    from newkind.cli.messages import print_line
    from newkind.data.wording import count
    from newkind.errors import ConfigError
    from newkind.pipeline.export import MODES, carry_out, plan_sorting
    from newkind.progress import progress_bar
    from newkind.runs.assignments import read_assignments
    from newkind.runs.run import Run
    from newkind.runs.run_files import files_of

    if mode not in MODES:
        raise ConfigError(f"`mode` must be {', '.join(MODES)}, got {mode}.", code="unknown-choice", setting="mode")
    opened = Run.open(Path(run))
    files = files_of(opened, data)
    plan = plan_sorting(read_assignments(opened), files, to)
    counts = Counter(item.target.parent.name for item in plan)
    folders = count(len(counts), "folder")
    if dry_run:
        print_line(f"Would {VERBS[mode]} {count(len(plan), 'file')} from {files.folder} into {folders} of {to}:")
        for name, number in counts.most_common(12):
            print_line(f"  {name}: {number:,}")
        return
    with progress_bar("Sorting", len(plan), unit="files") as advance:
        done = carry_out(plan, mode, advance=advance)
    there = f", {len(plan) - done:,} were in place already" if done < len(plan) else ""
    print_line(f"{count(done, 'file')} placed{there}: {folders} in {to}")
