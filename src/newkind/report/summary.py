"""Main numbers of a run as a table for the terminal, printed at the end of `discover`."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from newkind.data import printable
from newkind.report.contents import RunContents, read_contents
from newkind.report.headline import CERTAIN, Headline, headline_of
from newkind.report.since import Since
from newkind.runs.run import Run

__all__ = ["since_table", "summary_of", "summary_table"]

MAX_ROWS = 8
BAR_WIDTH = 16
FULL, THIN = "█", "▏"


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


def summary_table(headline: Headline) -> Table:
    """Table of images, categories, the largest new categories, confidence and accuracy.

    Parameters
    ----------
    headline : Headline
        Numbers of a run.

    Returns
    -------
    rich.table.Table
    """
    h = headline
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("Images", f"{h.n_images:,}", f"{h.n_labelled:,} labelled, {h.n_unlabelled:,} unlabelled")
    table.add_row("Known categories", f"{h.n_known:,}", _images(h.n_in_known))
    table.add_row("New categories", f"{h.n_new:,}", _new_text(h))
    _add_new_categories(table, h)
    table.add_row("Mean confidence", _percent(h.confidence), _confidence_text(h))
    if h.n_unsure or h.min_confidence:
        table.add_row("Unsure images", f"{h.n_unsure:,}", f"confidence below {_percent(h.min_confidence)}")
    if h.n_outliers:
        table.add_row("Outliers", f"{h.n_outliers:,}", "fit no category; they keep the nearest one")
    if h.n_ambiguous:
        table.add_row("Ambiguous images", f"{h.n_ambiguous:,}", "")
    if h.accuracy:
        table.add_row("Accuracy, %", "", _accuracy_text(h.accuracy, "one matching over all"))
    if h.by_name:
        table.add_row("Accuracy by name, %", "", _accuracy_text(h.by_name, "under their own names"))
    for name, text in (("Calibration", h.calibration), ("Novelty", h.novelty), ("Sure images", h.sure)):
        if text:
            table.add_row(name, "", text)
    return table


def since_table(contents: RunContents, since: Since) -> Table:
    """Table of what is new since the run that was continued.

    Parameters
    ----------
    contents : RunContents
        The run.
    since : Since
        As from `since_of`.

    Returns
    -------
    rich.table.Table
    """
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("New images", f"{since.n_added:,}", f"since {printable(since.run)}")
    for growth in since.grown[:MAX_ROWS]:
        name = _shortened(printable(contents.categories[growth.category].name))
        note = "new category" if growth.is_opened else f"{_images(growth.n_before)} before"
        table.add_row(Text(f"  {name}", style="not bold"), f"{growth.n_added:,}", Text(note, style="dim"))
    if rest := since.grown[MAX_ROWS:]:
        more = sum(growth.n_added for growth in rest)
        table.add_row(Text(f"  {len(rest):,} more categories", style="not bold dim"), f"{more:,}", "")
    table.add_row("Opened categories", f"{since.n_opened:,}", "")
    if since.n_moved:
        table.add_row("Moved images", f"{since.n_moved:,}", "known before, in another category now")
    if since.n_missing:
        table.add_row("Missing images", f"{since.n_missing:,}", "not found any more")
    return table


def _add_new_categories(table: Table, headline: Headline) -> None:
    """Add one row per new category, the largest first, and one row for those left out."""
    shown, rest = headline.new_categories[:MAX_ROWS], headline.new_categories[MAX_ROWS:]
    most = max((category.n_images for category in shown), default=1)
    for category in shown:
        bar = FULL * round(BAR_WIDTH * category.n_images / most) or THIN
        table.add_row(
            Text(f"  {_shortened(printable(category.name))}", style="not bold"),
            f"{category.n_images:,}",
            Text.assemble(
                (f"{bar:<{BAR_WIDTH}}", "blue"), (f"  {_percent(category.mean_confidence)} mean confidence", "dim")
            ),
        )
    if rest:
        more = sum(category.n_images for category in rest)
        table.add_row(Text(f"  {len(rest):,} more", style="not bold dim"), Text(f"{more:,}", style="dim"), "")


def _new_text(h: Headline) -> str:
    """Images in new categories, and the interval of their number."""
    if h.new_interval is None:
        return _images(h.n_in_new)
    low, high = h.new_interval
    return f"{_images(h.n_in_new)}; 90 % interval of the number {low:,} to {high:,}"


def _confidence_text(h: Headline) -> str:
    if h.certain >= 0.005:
        return f"{_percent(h.certain)} of images have at least {_percent(CERTAIN)}"
    return f"half of the images have at least {_percent(h.median)}"


def _accuracy_text(accuracy: dict[str, float], note: str) -> Text:
    parts = "  ".join(f"{name.capitalize()} {100 * value:.1f}" for name, value in accuracy.items())
    return Text.assemble((parts, "bold"), (f"  {note}", "dim"))


def _images(n: int) -> str:
    return f"{n:,} image{'' if n == 1 else 's'}"


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def _shortened(name: str) -> str:
    return name if len(name) <= 32 else f"{name[:31]}…"
