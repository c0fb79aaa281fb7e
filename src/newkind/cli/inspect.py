"""`newkind inspect`: an overview of the data before anything is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from newkind.cli.options import Data, config_options
from newkind.reading import ReadingConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from newkind.data.inspection import Inspection

__all__ = ["inspect"]

MANY_CLASSES = 24
"""Of more classes than this, only the largest and the smallest are printed, unless --all is given."""
N_EXAMPLES = 8
BAR_WIDTH = 24
NAME_WIDTH = 48


@config_options(reading=ReadingConfig)
def inspect(
    data: Data,
    reading: ReadingConfig,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON on standard output.")] = False,
    show_all: Annotated[bool, typer.Option("--all", help="List all classes and all skipped files.")] = False,
) -> None:
    """Print an overview of the data: classes, sizes, skipped files, duplicates. Changes nothing.

    The exit code is 2 if `newkind discover` could not use the data as it is; the last lines say why.
    """
    import json

    from newkind.data import inspect_collection, open_data
    from newkind.progress import progress_bar, status_console

    collection = open_data(data, **reading.given())
    with progress_bar("Reading images", len(collection.catalog), show=status_console().is_terminal) as advance:
        inspection = inspect_collection(collection, advance=advance)
    if as_json:
        print(json.dumps(inspection.to_dict(), indent=2))
    else:
        _print_overview(inspection)
        _print_classes(inspection, show_all=show_all)
        _print_remarks(inspection, show_all=show_all)
        _print_verdict(inspection, data, reading, name=collection.benchmark)
    if inspection.obstacles:
        raise typer.Exit(2)


def _print_overview(inspection: Inspection) -> None:
    """Print one line per fact, in two columns."""
    from rich.table import Table
    from rich.text import Text

    from newkind.cli.messages import result_console
    from newkind.data import printable

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for title, value in _overview(inspection).items():
        table.add_row(title, Text(printable(value)))
    result_console().print()
    result_console().print(table)


def _overview(inspection: Inspection) -> dict[str, str]:
    """Facts about the data, by title."""
    from newkind.data.image_files import describe_ignored
    from newkind.data.wording import count

    seen = inspection
    rows = {"Data": seen.origin}
    speed = f"read in {seen.seconds:.1f} s, {seen.n_items / max(seen.seconds, 1e-9):,.0f} per second"
    if seen.n_features is None:
        rows["Images"] = f"{seen.n_items:,} ({speed})"
    else:
        rows["Items"] = f"{count(seen.n_items, 'row')} of {count(seen.n_features, 'feature')}"
    rows["Labelled"] = f"{seen.n_labelled:,}{_spread(list(seen.classes.values()))}"
    rows["Unlabelled"] = f"{seen.n_unlabelled:,}"
    if seen.truth_counts is not None:
        new_classes = count(len(seen.truth_counts) - seen.n_old, "new class", "new classes")
        rows["Truth"] = f"{seen.n_old:,} known and {new_classes} (used for evaluation only)"
    if seen.n_groups is not None:
        rows["Groups"] = f"{seen.n_groups:,}; images of a group share a category"
    if seen.metadata:
        rows["Metadata"] = ", ".join(seen.metadata)
    if seen.sizes:
        sizes = {"smallest": seen.sizes.smallest, "median": seen.sizes.median, "largest": seen.sizes.largest}
        rows["Size"] = ", ".join(f"{title} {width} x {height}" for title, (width, height) in sizes.items())
        rows["Format"] = ", ".join(f"{n:,} {name}" for name, n in seen.formats.items())
    if seen.ignored:
        rows["Ignored"] = f"{count(sum(seen.ignored.values()), 'other file')} ({describe_ignored(seen.ignored)})"
    return rows


def _spread(counts: list[int]) -> str:
    """Number of classes, and how many labelled images they have."""
    from statistics import median

    from newkind.data.wording import count

    if not counts:
        return ""
    ordered = sorted(counts)
    per_class = f"{ordered[0]:,} per class"
    if ordered[0] < ordered[-1]:
        per_class = f"{ordered[0]:,} to {ordered[-1]:,} per class, median {median(ordered):g}"
    return f" in {count(len(counts), 'known class', 'known classes')} ({per_class})"


def _print_classes(inspection: Inspection, *, show_all: bool) -> None:
    """Print a table of the known classes with bars."""
    from rich.table import Table
    from rich.text import Text

    from newkind.cli.messages import result_console
    from newkind.data import printable

    if not inspection.classes:
        return
    console = result_console()
    rows = sorted(inspection.classes.items(), key=lambda row: (-row[1], row[0]))
    is_short = len(rows) > MANY_CLASSES and not show_all
    shown = rows[: MANY_CLASSES // 2] + rows[-MANY_CLASSES // 2 :] if is_short else rows
    block, sliver = "█▏" if console.encoding.startswith("utf") else "#|"
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("Known class", overflow="fold", max_width=NAME_WIDTH)
    table.add_column("Labelled", justify="right")
    table.add_column("")
    for i, (name, n) in enumerate(shown):
        if is_short and i == MANY_CLASSES // 2:
            table.add_row(Text(f"... {len(rows) - len(shown):,} more (--all lists them)", "dim"))
        bar = block * round(BAR_WIDTH * n / max(rows[0][1], 1)) or sliver
        table.add_row(Text(printable(name)), f"{n:,}", Text(bar, "blue"))
    console.print()
    console.print(table)


def _print_remarks(inspection: Inspection, *, show_all: bool) -> None:
    """Print skipped files, duplicates, similar class names and classes with one image."""
    from newkind.data import printable
    from newkind.data.wording import count

    n_most = None if show_all else N_EXAMPLES
    width = max((len(printable(item.name)) for item in inspection.skipped[:n_most]), default=0)
    skipped = [f"{printable(item.name):<{min(width, NAME_WIDTH)}}  {item.reason}" for item in inspection.skipped]
    _print_list(f"Skipped: {len(skipped):,}", skipped, n_most)
    conflicts = [_joined(group.names, n_most) for group in inspection.duplicates if group.conflict]
    _print_list(f"Identical images with different labels: {count(len(conflicts), 'group')}", conflicts, n_most)
    copies = [group for group in inspection.duplicates if not group.conflict]
    n_copies = sum(len(group.names) - 1 for group in copies)
    title = f"Duplicates: {count(n_copies, 'copy', 'copies')} of {count(len(copies), 'image')}"
    _print_list(title, [_joined(group.names, n_most) for group in copies], n_most)
    _print_list("Similar class names", [" / ".join(group) for group in inspection.similar_names], n_most)
    _print_list("Classes with one labelled image", list(inspection.single_image_classes), n_most)


def _joined(names: Sequence[str], n_most: int | None) -> str:
    """Names of identical images in one line; the first `n_most` and the number of the others."""
    more = "" if n_most is None or len(names) <= n_most else f"  =  ... {len(names) - n_most:,} more (--all lists them)"
    return "  =  ".join(names[:n_most]) + more


def _print_list(title: str, lines: list[str], n_most: int | None) -> None:
    """Print a title and the first lines; nothing if there are no lines."""
    from newkind.cli.messages import print_line
    from newkind.data import printable

    if not lines:
        return
    print_line(f"\n{title}", style="bold")
    for line in lines[:n_most]:
        print_line(f"  {printable(line)}")
    if n_most is not None and len(lines) > n_most:
        print_line(f"  ... {len(lines) - n_most:,} more (--all lists them)", style="dim")


def _print_verdict(inspection: Inspection, data: str, reading: ReadingConfig, *, name: str) -> None:
    """Print notes, whether the data can be used, and the next command; `name` is that of a benchmark, or empty."""
    import os
    from dataclasses import fields
    from pathlib import Path

    from newkind.cli.messages import name_options, next_command, print_line
    from newkind.data import printable
    from newkind.data.benchmarks import recognise
    from newkind.data.wording import shell_quoted
    from newkind.experiments.next_command import options_of, shell_command, unused_folder

    print_line()
    options = {item.name: f"--{item.name.replace('_', '-')}" for item in fields(ReadingConfig)}
    for note in inspection.notes:
        print_line(f"Note: {printable(name_options(note, options))}", style="yellow")
    for obstacle in inspection.obstacles:
        print_line(f"Not ready for discovery: {printable(str(obstacle))}", style="bold yellow")
    layout = recognise(data) if os.path.isdir(os.path.expanduser(data)) else None
    if layout:
        print_line(f"The folder has the layout of the benchmark {layout}. To use its published split:")
        next_command(f"newkind inspect {shell_quoted(f'{layout}:{data}')}")
    elif not inspection.obstacles:
        print_line("Ready for discovery.", style="bold green")
        path = Path(os.path.abspath(os.path.expanduser(data)))
        name = name or (path.parent.name if path.stem == "metadata" else path.stem) or "data"
        run = f"{name}-run"
        if Path.cwd().is_relative_to(path):  # a run inside the data folder would become a class of it
            run = os.path.relpath(path.parent / run)
        next_command(shell_command("newkind", "discover", data, "--out", unused_folder(run), *options_of(reading)))
