"""`newkind inspect`: a table of what is in a pile of images."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from newkind.data.inspection import Inspection

__all__ = ["inspect"]

MANY_CLASSES = 24
"""More classes than this are shown by their largest and smallest, unless --all."""
N_EXAMPLES = 8


def inspect(
    data: Annotated[
        str, typer.Argument(help="A folder, a CSV/JSONL table, an .npz file, or a benchmark as NAME:FOLDER.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON on standard output.")] = False,
    show_all: Annotated[
        bool, typer.Option("--all", help="List every class and every file that was set aside.")
    ] = False,
) -> None:
    """Look at a pile of images: classes, sizes, broken files, duplicates. Changes nothing.

    Exit code 2 means that `newkind discover` could not use the data as it is; the last lines say why.
    """
    from rich.console import Console

    from newkind.data import open_data
    from newkind.data.benchmarks import recognise
    from newkind.data.inspection import inspect_collection
    from newkind.progress import progress_bar

    collection = open_data(data)
    with progress_bar("Looking at images", len(collection.catalog), show=Console(stderr=True).is_terminal) as advance:
        seen = inspect_collection(collection, advance=advance)
    if as_json:
        print(json.dumps(seen.to_dict(), indent=2))
    else:
        show(Console(highlight=False), seen, show_all=show_all)
        layout = recognise(data) if os.path.isdir(os.path.expanduser(data)) else None
        if layout:
            Console().print(
                f"[dim]This looks like the {layout} benchmark; with its published split: newkind inspect {layout}:{_safe(data)}"
            )
    if seen.obstacles:
        raise typer.Exit(2)


def show(console: Console, seen: Inspection, *, show_all: bool) -> None:
    """Prints the overview, the classes, and what deserves attention."""
    _show_overview(console, seen)
    _show_classes(console, seen, show_all=show_all)
    _show_remarks(console, seen, show_all=show_all)
    console.print()
    for note in seen.notes:
        console.print(f"[bold yellow]Note:[/] {_safe(note)}")
    for obstacle in seen.obstacles:
        console.print(f"[bold yellow]Not ready for discovery:[/] {_safe(obstacle)}")
    if not seen.obstacles:
        console.print("[bold green]Ready for discovery.[/]")


def _show_overview(console: Console, seen: Inspection) -> None:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold")
    table.add_column()
    rate = f"{seen.n_items / seen.seconds:,.0f} a second" if seen.seconds else ""
    what = f"feature rows of {seen.n_features} numbers" if seen.n_features is not None else "images"
    table.add_row("Data", _safe(seen.origin))
    table.add_row("Read", f"{seen.n_items:,} {what} in {seen.seconds:.1f} s ({rate})")
    counts = sorted(seen.classes.values())
    spread = f" ({counts[0]:,} to {counts[-1]:,} each, median {counts[len(counts) // 2]:,})" if counts else ""
    table.add_row("Labelled", f"{seen.n_labelled:,} in {_count(len(counts), 'known class', 'known classes')}{spread}")
    table.add_row("Unlabelled", f"{seen.n_unlabelled:,}")
    if seen.truth_counts is not None:
        n_new = len(seen.truth_counts) - seen.n_old
        table.add_row("Truth", f"{seen.n_old:,} old and {n_new:,} new classes (used for scores only)")
    if seen.sizes:
        (a, b), (c, d), (e, f) = seen.sizes.smallest, seen.sizes.median, seen.sizes.largest
        table.add_row("Sizes", f"{a} x {b} smallest, {c} x {d} median, {e} x {f} largest")
        table.add_row("Kinds", ", ".join(f"{count:,} {kind}" for kind, count in seen.kinds.items()))
    console.print()
    console.print(table)


def _show_classes(console: Console, seen: Inspection, *, show_all: bool) -> None:
    from rich.table import Table

    if not seen.classes:
        return
    rows = sorted(seen.classes.items(), key=lambda row: (-row[1], row[0]))
    shown = rows
    if len(rows) > MANY_CLASSES and not show_all:
        shown = rows[: MANY_CLASSES // 2] + rows[-MANY_CLASSES // 2 :]
    largest = max(rows[0][1], 1)
    block, sliver = "█▏" if console.encoding.startswith("utf") else "#|"
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", title_justify="left")
    table.add_column("Known class", overflow="fold", max_width=48)
    table.add_column("Labelled", justify="right")
    table.add_column("")
    for i, (name, count) in enumerate(shown):
        if len(shown) < len(rows) and i == MANY_CLASSES // 2:
            table.add_row(f"[dim]... {len(rows) - len(shown):,} more (--all shows them)[/]", "", "")
        table.add_row(_safe(name), f"{count:,}", f"[blue]{block * round(24 * count / largest) or sliver}[/]")
    console.print()
    console.print(table)


def _show_remarks(console: Console, seen: Inspection, *, show_all: bool) -> None:
    most = None if show_all else N_EXAMPLES

    def remark(title: str, lines: list[str]) -> None:
        if not lines:
            return
        console.print(f"\n[bold]{title}[/]")
        for line in lines[:most]:
            console.print(f"  {line}")
        if most is not None and len(lines) > most:
            console.print(f"  [dim]... {len(lines) - most:,} more (--all or --json shows them)[/]")

    remark(
        f"Set aside: {_count(len(seen.skipped), 'file')}",
        [f"{_safe(item.name)}  [dim]{_safe(item.reason)}[/]" for item in seen.skipped],
    )
    conflicts = [group for group in seen.duplicates if group.conflict]
    n_copies = sum(len(group.names) - 1 for group in seen.duplicates)
    remark(
        f"The same picture under different labels: {len(conflicts):,}",
        ["  =  ".join(map(_safe, group.names)) for group in conflicts],
    )
    remark(
        f"Exact duplicates: {_count(n_copies, 'copy', 'copies')} of {_count(len(seen.duplicates), 'picture')}",
        ["  =  ".join(map(_safe, group.names)) for group in seen.duplicates if not group.conflict],
    )
    remark("Class names that are nearly the same", [" / ".join(map(_safe, group)) for group in seen.similar_names])
    remark("Classes with one labelled image", [_safe(name) for name in seen.single_image_classes])


def _count(n: int, one: str, many: str = "") -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def _safe(text: str) -> str:
    """Printable, and never read as markup."""
    from rich.markup import escape

    from newkind.data.names import printable

    return escape(printable(text))
