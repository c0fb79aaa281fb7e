"""Text from elsewhere on the screen: no markup, no terminal escapes."""

import ast
import io
import logging
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

import newkind
from newkind.progress import progress_bar, show_messages, status_console
from newkind.terminal import SafeConsole, printable, printable_lines

NAMES = [
    "[red]apple[/red]",
    "[/nope]",
    "[link=http://x]",
    ":smile:",
    "\x1b[31mred\x1b]0;title\x07",
    "two\rlines",
    "\x9b2J",
]


def printed(*renderables: object, terminal: bool = True) -> str:
    console = SafeConsole(file=io.StringIO(), force_terminal=terminal, width=200)
    for renderable in renderables:
        console.print(renderable)
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_shown_as_it_is_however_it_is_printed(name: str) -> None:
    table = Table(title=name)
    table.add_column(name)
    table.add_row(name)
    for text in (printed(name, terminal=False), printed(Text(name), terminal=False), printed(table, terminal=False)):
        assert not set(text) & set("\x1b\x07\x9b\r"), text
        shown = printable(Text(name).plain)  # rich leaves out some control characters itself
        assert shown in text.replace("\n", "")


def test_colours_of_the_console_itself_are_kept() -> None:
    shown = printed(Text("\x1b[31mname", style="green"))
    assert "\x1b[32m" in shown
    assert "\x1b[31m" not in shown


def test_messages_have_no_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    status_console.cache_clear()
    with show_messages():
        logging.getLogger("newkind.test").warning("Skipped \x1b[31m[/nope]\x07.")
        with progress_bar("[/nope]\x1b[31m", 1) as advance:
            advance(1)
    status_console.cache_clear()
    shown = capsys.readouterr().err
    assert "\x1b[31m" not in shown
    assert "[/nope]" in shown


def test_lines_stay_lines() -> None:
    assert printable_lines("a\x1b\nb\tc") == "a\\x1b\nb\\tc"


def test_every_console_is_a_safe_one() -> None:
    for path in Path(newkind.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            made = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            assert made not in ("Console", "rich.print", "rich.get_console"), f"{path.name}:{node.lineno}"  # type: ignore[attr-defined]
