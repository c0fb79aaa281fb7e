"""The `newkind` command. Each verb has a file that parses, calls and prints; heavy imports happen inside the verbs."""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from newkind import __version__
from newkind.cli.apply import apply
from newkind.cli.bench import bench
from newkind.cli.cache import app as cache
from newkind.cli.decisions import approve, junk, merge, move, note, redo, reject, rename, split, undo
from newkind.cli.demo import demo
from newkind.cli.discover import discover
from newkind.cli.doctor import doctor
from newkind.cli.estimate_k import estimate_k
from newkind.cli.evaluate import evaluate
from newkind.cli.export import export
from newkind.cli.features import features
from newkind.cli.history import history
from newkind.cli.inspect import inspect
from newkind.cli.messages import name_options, print_error
from newkind.cli.methods import methods
from newkind.cli.options import option_names
from newkind.cli.predict import predict
from newkind.cli.refit import refit
from newkind.cli.report import report
from newkind.cli.review import review
from newkind.cli.serve import serve
from newkind.cli.sort import sort
from newkind.cli.tune import tune
from newkind.cli.weights import weights
from newkind.errors import NewkindError

__all__ = ["app", "main"]


class _Verbs(TyperGroup):
    """Group of the verbs, with own handling of Ctrl-C and of a closed output instead of typer's."""

    def invoke(self, ctx: Any) -> Any:
        with _ends_plainly():
            return super().invoke(ctx)


app = typer.Typer(
    cls=_Verbs,
    name="newkind",
    help="Discover categories: assign partly labelled images to the known classes and to new ones that are found.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verb in (
    inspect,
    estimate_k,
    tune,
    discover,
    report,
    review,
    predict,
    sort,
    export,
    serve,
    evaluate,
    methods,
    features,
    bench,
    weights,
    doctor,
    demo,
):
    app.command()(verb)
for verb in (rename, merge, split, move, approve, reject, junk, note, undo, redo, history, apply, refit):
    app.command(rich_help_panel="Decisions")(verb)
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
    """Options before the verb. `--debug` is read by `main`."""


def main() -> None:
    """Run a verb. An error that the user can fix is printed on standard error, with exit code 2."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # set by `newkind.__main__`
        signal.signal(signal.SIGINT, _interrupt)
    _occupy_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a console that is not UTF-8 shows escapes
    # Warnings of Pillow about files that it can read are of no use to the user.
    warnings.filterwarnings("ignore", module="PIL")
    from newkind.progress import show_messages

    with _ends_plainly():
        try:
            with show_messages(reword=_name_options):
                app()
        except NewkindError as error:
            if "--debug" in sys.argv:
                raise
            if _is_said():
                raise SystemExit(2) from None
            _fail(_name_options(error.what), _name_options(error.fix), error.code)
        finally:
            _flush()  # here, where an error still has a handler


def _is_said() -> bool:
    """Whether another process of the same job and machine has printed its error."""
    failure = sys.modules.get("newkind.process_failure")  # imported by commands that several processes can run
    return failure is not None and not failure.is_first_to_say()


def _name_options(text: str) -> str:
    """Text with options instead of the parameters that it names in backticks."""
    return name_options(text, option_names(app)) if "`" in text else text


@contextmanager
def _ends_plainly() -> Iterator[None]:
    """Ctrl-C, a closed output and a full disk end the program without a traceback."""
    try:
        yield
    except KeyboardInterrupt:
        _stop()
    except (BrokenPipeError, SystemExit) as error:
        # rich and typer exit with code 1 when the output is closed.
        if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
            raise
        _drop_output()
        raise SystemExit(141) from None  # 128 + SIGPIPE, as `| head` ends other programs
    except (MemoryError, RuntimeError) as error:
        if "--debug" in sys.argv or not _is_out_of_memory(error):
            raise
        _fail(
            "There is not enough memory for this.",
            "Use smaller numbers of categories, views or images per batch, or a machine with more memory.",
            "out-of-memory",
        )
    except OSError as error:
        if _interruptions:
            _stop()
        if "--debug" in sys.argv:
            raise
        _drop_output()
        place = f" ({error.filename})" if error.filename else ""
        _fail(
            f"Reading or writing failed: {error.strerror or error}{place}.",
            "Use newkind --debug ... for the traceback.",
        )
    except Exception:
        if not _interruptions:
            raise
        _stop()  # a library that was being imported turned Ctrl-C into an error of its own


_interruptions: list[int] = []
"""Signals of Ctrl-C so far."""


def _interrupt(number: int, _: object) -> NoReturn:
    _interruptions.append(number)
    raise KeyboardInterrupt


def _stop() -> NoReturn:
    """End after Ctrl-C. Nothing is imported for that, and another Ctrl-C ends the process at once."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with suppress(OSError):
        os.write(2, b"Stopped.\n")
    raise SystemExit(130) from None


def _occupy_closed_streams() -> None:
    """Where the shell closed a standard stream, open the null device, so that no other file gets its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number


def _is_out_of_memory(error: Exception) -> bool:
    """Whether an error says that there is no memory; PyTorch raises a RuntimeError, and on a GPU a subclass of it."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or "can't allocate memory" in text or "out of memory" in text


def _drop_output() -> None:
    """Send further output to the null device, so that Python does not fail to flush it at exit."""
    try:
        _flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _flush() -> None:
    if sys.stdout:  # None where the shell closed it
        sys.stdout.flush()


def _fail(what: str, fix: str = "", code: str = "") -> NoReturn:
    with suppress(OSError):
        print_error(what, fix, title="Error: ", code=code)
    raise SystemExit(2) from None
