"""Suggested commands that can be pasted into a shell, with the options of the command that suggests them."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from itertools import chain, count
from pathlib import Path
from typing import Any

from newkind.data.wording import shell_quoted

__all__ = ["options_of", "shell_command", "unused_folder"]


def options_of(config: Any, *, without: Collection[str] = ()) -> Iterator[str]:
    """Command-line options of the fields of a configuration that differ from their defaults.

    Parameters
    ----------
    config : dataclass instance
        A configuration whose fields are options of the command line, such as BackboneConfig.
    without : collection of str, default=()
        Fields that are left out.

    Yields
    ------
    str
        Options and their values, as separate words.

    Examples
    --------
    >>> from newkind.config import BackboneConfig
    >>> list(options_of(BackboneConfig(image_size=112, random_weights=True)))
    ['--random-weights', '--image-size', '112']
    """
    for item in fields(config):
        value, option = getattr(config, item.name), item.metadata.get("option", item.name)
        if option is None or item.name in without or value == item.default:
            continue
        yield "--" + option.replace("_", "-")
        if not isinstance(value, bool):
            yield str(value)


def shell_command(*words: str, settings: Mapping[str, Any] | None = None) -> str:
    """Words as one shell command, quoted where necessary.

    Parameters
    ----------
    *words : str
        The command and its arguments.
    settings : mapping, optional
        Settings of a method, added as --set NAME=VALUE.

    Returns
    -------
    str

    Examples
    --------
    >>> shell_command("newkind", "discover", "my photos", settings={"block_rate": 0})
    "newkind discover 'my photos' --set block_rate=0"
    """
    pairs = [word for name, value in (settings or {}).items() for word in ("--set", f"{name}={value}")]
    return " ".join(shlex.quote(word) if word.startswith("--") else shell_quoted(word) for word in [*words, *pairs])


def unused_folder(name: str) -> str:
    """The name of a folder to create: the given one, or with a number (run-2, run-3, ...) where it exists already."""
    names = chain([name], (f"{name}-{i}" for i in count(2)))
    return next(found for found in names if not Path(found).exists())
