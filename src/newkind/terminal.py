"""The one place that prints: text from elsewhere is never markup, and its control characters are shown as escapes.

File names, class names and run folders come from other people. A name such as `[red]` must be shown as it is, and one with
a terminal escape in it must not move the cursor or change the title of the window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.segment import Segment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import ConsoleOptions, RenderableType

__all__ = ["SafeConsole", "printable", "printable_lines"]


class SafeConsole(Console):
    """Console without markup, emoji codes and highlighting, on which control characters in a text are escapes.

    The console's own cursor movements and colours are not part of a text, and are kept.

    Parameters
    ----------
    **options : Any
        Options of `rich.console.Console`, such as `stderr`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or _is_safe(segment.text):
                yield segment
            else:
                yield Segment(printable_lines(segment.text), segment.style)


def _is_safe(text: str) -> bool:
    return text.isprintable() or text == "\n" or text.replace("\n", "").isprintable()


def printable_lines(text: str) -> str:
    """Text of several lines, each made printable."""
    return "\n".join(map(printable, text.split("\n")))


def printable(name: str) -> str:
    r"""Replace control characters and bytes that are not UTF-8 by escapes, so that a name is safe to print anywhere.

    Parameters
    ----------
    name : str
        Name of a file or a class.

    Returns
    -------
    str

    Examples
    --------
    >>> printable("two\nlines")
    'two\\nlines'
    """
    return name if name.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in name)


def _escape(character: str) -> str:
    """Escape sequence of one character."""
    code = ord(character)
    # Python reads a byte that is not UTF-8 as the surrogate 0xDC00 + byte.
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else character.encode("unicode_escape").decode()
