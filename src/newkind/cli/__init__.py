"""The `newkind` command: verbs only. Each verb's file parses, calls and prints; nothing heavy is imported before."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from newkind import __version__
from newkind.cli.cache import app as cache
from newkind.cli.inspect import inspect
from newkind.cli.weights import weights
from newkind.errors import NewkindError

__all__ = ["app", "main"]

app = typer.Typer(
    name="newkind",
    help="Sorts a partly labelled pile of images into the known categories and the new ones it discovers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(inspect)
app.command()(weights)
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
    try:
        app()
    except NewkindError as error:
        if "--debug" in sys.argv:
            raise
        from rich.console import Console
        from rich.text import Text

        console = Console(stderr=True)
        console.print(
            Text.assemble(("Error: ", "bold red"), error.what, (f"\n{error.fix}" if error.fix else "", "dim"))
        )
        raise SystemExit(2) from None
    except BrokenPipeError:
        # `newkind ... | head` closed our output: not an error.
        sys.stderr.close()
        raise SystemExit(0) from None
