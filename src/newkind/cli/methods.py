"""`newkind methods`: list the methods, or the settings of one."""

from __future__ import annotations

from typing import Annotated

import typer

from newkind.errors import ConfigError

__all__ = ["methods"]


def methods(
    name: Annotated[str, typer.Argument(help="Show the settings of this method.")] = "",
    recipe: Annotated[
        str | None, typer.Option(help="Recipe of simgcd: modern, release or paper. Default: modern.")
    ] = None,
) -> None:
    """List the methods that discover can use, or the settings of one of them."""
    if name:
        _show_settings(name, recipe)
        return
    if recipe is not None:
        raise ConfigError(
            "`recipe` needs the name of a method.", code="conflict", fix="newkind methods simgcd --recipe ..."
        )
    from rich.table import Table

    from newkind.cli.messages import print_line, result_console
    from newkind.methods.registry import all_methods

    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for title in ("Method", "Title", "Description"):
        table.add_column(title)
    for key, entry in all_methods().items():
        table.add_row(key, entry.title, f"{entry.about} ({entry.package})" if entry.package else entry.about)
    result_console().print(table)
    print_line("newkind methods NAME shows the settings of a method.", style="dim")


def _show_settings(name: str, recipe: str | None) -> None:
    """Settings with the defaults of a run, and their descriptions."""
    from dataclasses import fields

    from rich.table import Table

    from newkind.cli.messages import print_line, result_console
    from newkind.config import DEFAULT_BACKBONE, default_recipe, parameter_docs
    from newkind.methods.registry import find_method, method_config, resolve_method

    if name == "simgcd":
        recipe = recipe or default_recipe(name, DEFAULT_BACKBONE)
    resolved = resolve_method(name, recipe)
    config = method_config(resolved, recipe=recipe or "release")
    docs = parameter_docs(type(config))
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for title in ("Setting", "Default", "Description"):
        table.add_column(title, overflow="fold")
    for item in fields(config):
        value = getattr(config, item.name)
        shown = str(value).lower() if isinstance(value, bool) or value is None else str(value)
        table.add_row(item.name, shown, docs.get(item.name, ""))
    print_line(f"Settings of {name}{f', recipe {recipe}' if recipe else ''}:", style="bold")
    result_console().print(table)
    entry = find_method(resolved).method
    if entry.trains:
        own = entry.optimizer
        print_line(
            f"Learning rate {own.learning_rate:g} (for 128 images), batch size {own.batch_size} (at most a tenth of the "
            f"images, but at least 128), weight decay {own.weight_decay:g}.",
            style="dim",
        )
    used = f"--method {name}" + (f" --recipe {recipe}" if recipe and name == "simgcd" else "")
    first = next(iter(fields(config)))
    print_line(
        f"Example:  newkind discover DATA --out RUN {used} --set {first.name}={getattr(config, first.name)}",
        style="dim",
    )
