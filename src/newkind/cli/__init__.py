"""The `newkind` command: verbs only. Each verb's file parses, calls and prints; nothing heavy is imported before."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from newkind import __version__
from newkind.cli.bench import bench
from newkind.cli.cache import app as cache
from newkind.cli.categories import estimate_k, methods
from newkind.cli.discover import discover
from newkind.cli.doctor import doctor
from newkind.cli.inspect import inspect
from newkind.cli.report import report
from newkind.cli.results import evaluate, predict, sort
from newkind.cli.tune import tune
from newkind.cli.weights import weights
from newkind.errors import NewkindError

__all__ = ["app", "main"]


class _Verbs(TyperGroup):
    """The verbs, with our endings: typer has its own for Ctrl-C and for a closed output."""

    def invoke(self, ctx: Any) -> Any:
        with _ends_plainly():
            return super().invoke(ctx)


app = typer.Typer(
    cls=_Verbs,
    name="newkind",
    help="Sorts a partly labelled pile of images into the known categories and the new ones it discovers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verb in (inspect, estimate_k, tune, discover, report, predict, sort, evaluate, methods, bench, weights, doctor):
    app.command()(verb)
app.add_typer(cache, name="cache")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"newkind {__version__}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options that stand before the verb. `--debug` is read by `main`."""


def main() -> None:
    """Runs a verb; what a user can mend is one sentence on standard error and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a console that is not UTF-8 shows escapes
    # What Pillow finds odd in a file, and reads all the same, is of no use to the user.
    warnings.filterwarnings("ignore", module="PIL")
    with _ends_plainly():
        try:
            app()
        except NewkindError as error:
            if "--debug" in sys.argv:
                raise
            _fail(error.what, error.fix)
        finally:
            _flush()  # here, where an error still has a handler


@contextmanager
def _ends_plainly() -> Iterator[None]:
    """Ctrl-C, a reader that went away and a full disk end the program without a traceback."""
    try:
        yield
    except KeyboardInterrupt:
        _say("Stopped.")
        raise SystemExit(130) from None
    except (BrokenPipeError, SystemExit) as error:
        # rich and typer answer a closed output with exit code 1, as if something had gone wrong.
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        _drop_output()
        raise SystemExit(141) from None  # 128 + SIGPIPE, as `| head` ends other programs
    except OSError as error:
        if "--debug" in sys.argv:
            raise
        _drop_output()
        place = f" ({error.filename})" if error.filename else ""
        _fail(f"Reading or writing failed: {error.strerror or error}{place}.", "newkind --debug ... shows where.")


def _drop_output() -> None:
    """What cannot be written goes nowhere; Python would otherwise try once more at its end, and complain."""
    try:
        _flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _flush() -> None:
    if sys.stdout:  # None where the shell closed it
        sys.stdout.flush()


def _fail(what: str, fix: str = "") -> NoReturn:
    _say(what, fix, title="Error: ")
    raise SystemExit(2) from None


def _say(what: str, fix: str = "", *, title: str = "") -> None:
    from rich.console import Console
    from rich.text import Text

    from newkind.data.names import printable

    what, fix = ("\n".join(map(printable, text.split("\n"))) for text in (what, fix))
    with suppress(OSError):
        Console(stderr=True).print(Text.assemble((title, "bold red"), what, (f"\n{fix}" if fix else "", "dim")))
