"""Text for display: counts with the right plural, and arguments of commands that can be pasted."""

from __future__ import annotations

import shlex

from newkind.data.names import printable

__all__ = ["count", "shell_quoted"]


def count(n: int, singular: str, plural: str = "") -> str:
    """Number and noun that agree: `1 file`, `2,000 files`; `plural` is for nouns that do not just add an s."""
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


def shell_quoted(argument: str) -> str:
    """Argument as a shell reads it back; names with control characters or invalid UTF-8 are quoted as $'...'.

    An argument that starts with a hyphen would be read as an option, so it is written as a path.
    """
    if argument.startswith("-"):
        argument = f"./{argument}"
    if printable(argument) == argument:
        return shlex.quote(argument)
    escaped = "".join(f"\\{c}" if c in "\\'" else printable(c) for c in argument)
    return f"$'{escaped}'"
