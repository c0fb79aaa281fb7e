"""How the command line prints: results on standard output, errors with option names, text that is never markup."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["name_options", "next_command", "print_error", "print_line", "result_console"]


@cache
def result_console() -> Console:
    """Console of results, on standard output."""
    from rich.console import Console

    return Console(highlight=False)


def print_line(text: str = "", *, style: str = "") -> None:
    """Print a line of a result. Long lines are not wrapped, so that paths and commands can be copied."""
    from rich.text import Text

    result_console().print(Text(_safe(text), style=style), soft_wrap=True)


def next_command(command: str) -> None:
    """Print a command that the user may run next."""
    print_line(f"Next:  {command}", style="dim")


def print_error(what: str, fix: str = "", *, title: str = "", code: str = "") -> None:
    """Print an error on standard error, with its code for scripts."""
    from rich.console import Console
    from rich.text import Text

    ending = f" [{code}]" if code else ""
    text = Text.assemble((title, "bold red"), _safe(what), (ending, "dim"), (f"\n{_safe(fix)}" if fix else "", "dim"))
    Console(stderr=True, highlight=False).print(text, soft_wrap=True)


def _safe(text: str) -> str:
    """Text without control characters, line by line."""
    from newkind.data.names import printable

    return "\n".join(map(printable, text.split("\n")))


def name_options(text: str, options: Mapping[str, str]) -> str:
    """Text with parameters in backticks as options: `batch_size` becomes --batch-size.

    Examples
    --------
    >>> name_options("Use a smaller `batch_size`.", {"batch_size": "--batch-size"})
    'Use a smaller --batch-size.'
    """
    return re.sub(r"`([a-z_]+)`", lambda found: options.get(found[1], found[0]), text)
