"""How the command line prints: results on standard output, errors with option names, text that is never markup."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from newkind.terminal import SafeConsole

__all__ = ["name_options", "next_command", "print_error", "print_line", "result_console"]


@cache
def result_console() -> SafeConsole:
    """Console of results, on standard output."""
    from newkind.terminal import SafeConsole

    return SafeConsole()


def print_line(text: str = "", *, style: str = "") -> None:
    """Print a line of a result. Long lines are not wrapped, so that paths and commands can be copied."""
    from rich.text import Text

    from newkind.terminal import printable_lines

    result_console().print(Text(printable_lines(text), style=style), soft_wrap=True)


def next_command(command: str) -> None:
    """Print a command that the user may run next."""
    print_line(f"Next:  {command}", style="dim")


def print_error(what: str, fix: str = "", *, title: str = "", code: str = "") -> None:
    """Print an error on standard error, with its code for scripts."""
    from rich.text import Text

    from newkind.terminal import SafeConsole, printable_lines

    ending = f" [{code}]" if code else ""
    text = Text.assemble(
        (title, "bold red"), printable_lines(what), (ending, "dim"), (f"\n{printable_lines(fix)}" if fix else "", "dim")
    )
    SafeConsole(stderr=True).print(text, soft_wrap=True)


def name_options(text: str, options: Mapping[str, str]) -> str:
    """Text with parameters in backticks as options: `batch_size` becomes --batch-size.

    Examples
    --------
    >>> name_options("Use a smaller `batch_size`.", {"batch_size": "--batch-size"})
    'Use a smaller --batch-size.'
    """
    return re.sub(r"`([a-z_]+)`", lambda found: options.get(found[1], found[0]), text)
