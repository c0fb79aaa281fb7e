"""The command line in this process: its exit code, what it prints, and the traceback that it must not have."""

from __future__ import annotations

import contextlib
import io
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from newkind import progress
from newkind.cli import main, messages

__all__ = ["Done", "newkind"]


@dataclass(frozen=True)
class Done:
    """What a command did: `code` is None if it ended with a traceback."""

    code: int | None
    output: str
    errors: str
    traceback: str

    @property
    def ended_well(self) -> bool:
        """Whether it did its work, or said with exit code 2 what is wrong, without terminal escapes in what it prints."""
        escapes = any(mark in self.errors for mark in ("\x1b", "\x07", "\x9b"))
        return self.code in (0, 2) and not escapes and (self.code == 0 or bool(self.errors or self.output))


def newkind(arguments: Sequence[str]) -> Done:
    """Run `newkind ARGUMENTS` as the installed program does."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    errors = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    code: int | None = 0
    trace = ""
    with _arguments(["newkind", *arguments]), contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except BaseException:  # noqa: BLE001 - what is a traceback for the user
            code, trace = None, traceback.format_exc()
    return Done(code, _text(output), _text(errors), trace)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode("utf-8", "replace")


@contextlib.contextmanager
def _arguments(arguments: list[str]) -> Iterator[None]:
    """Set the arguments of the program; consoles are made again, because they remember where they print."""
    before = sys.argv
    sys.argv = arguments
    for console in (messages.result_console, progress.status_console):
        console.cache_clear()
    try:
        yield
    finally:
        sys.argv = before
        for console in (messages.result_console, progress.status_console):
            console.cache_clear()
