"""The headline as a compact table for the end of `discover`."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from newkind.data.names import printable
from newkind.report.contents import RunContents, read_contents
from newkind.report.headline import SURE, Headline, headline_of
from newkind.runs.run import Run

__all__ = ["summary_of", "summary_table"]

MANY = 8
BAR = 16


def summary_of(run: Run | RunContents) -> Table:
    """Table of the main numbers of a finished run.

    Parameters
    ----------
    run : Run or RunContents
        A finished run, or its contents if they are in memory.

    Returns
    -------
    rich.table.Table
    """
    return summary_table(headline_of(run if isinstance(run, RunContents) else read_contents(run)))


def summary_table(headline: Headline, *, blocks: str = "█▏") -> Table:
    """Images, categories, how sure, the new categories by size, accuracy. `blocks`: a full and a thin bar character."""
    h = headline
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("Images", f"{h.n_images:,}", f"{h.n_labelled:,} labelled, {h.n_sorted:,} sorted")
    table.add_row("Known categories", f"{h.n_known:,}", _images(h.n_into_known))
    table.add_row("New categories", f"{h.n_new:,}", _images(h.n_into_new))
    shown, rest = h.largest[:MANY], h.largest[MANY:]
    most = max((n for _, n, _ in shown), default=1)
    for name, n, confidence in shown:
        bar = blocks[0] * round(BAR * n / most) or blocks[1]
        table.add_row(
            Text(f"  {_shortened(printable(name))}", style="not bold"),
            f"{n:,}",
            Text.assemble((f"{bar:<{BAR}}", "blue"), (f"  {_percent(confidence)} sure", "dim")),
        )
    if rest:
        more = sum(n for _, n, _ in rest)
        table.add_row(Text(f"  {len(rest):,} more", style="not bold dim"), Text(f"{more:,}", style="dim"), "")
    sure = (
        f"{_percent(h.sure)} of images at least {_percent(SURE)} sure"
        if h.sure >= 0.005
        else f"half of the images at least {_percent(h.median)} sure"
    )
    doubt = f"; {h.n_doubtful:,} lie between two categories" if h.n_doubtful else ""
    table.add_row(
        "How sure",
        _percent(h.confidence),
        f"on average; {sure}{doubt}",
    )
    if h.accuracy:
        parts = "  ".join(f"{name.capitalize()} {100 * value:.1f}" for name, value in h.accuracy.items())
        table.add_row("Accuracy, %", "", Text.assemble((parts, "bold"), ("  one matching over all, last epoch", "dim")))
    return table


def _images(n: int) -> str:
    return f"{n:,} image{'' if n == 1 else 's'}"


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def _shortened(name: str) -> str:
    return name if len(name) <= 32 else f"{name[:31]}…"
