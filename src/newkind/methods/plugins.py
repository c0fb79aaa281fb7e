"""Methods of other packages: entry points of the group `newkind.methods`, or classes named as `package.module:Class`.

A package that declares an entry point is installed on purpose, so its methods can be used by every run. A class that is named
as `package.module:Class` is imported only if the user named it: in a call, on the command line, or in the environment variable
NEWKIND_METHODS. The name in a run folder, which may come from elsewhere, is not enough to import a module.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points, packages_distributions, version
from typing import Any

from newkind.errors import ConfigError
from newkind.methods.entry import Entry
from newkind.methods.method import Method, MethodConfig

__all__ = ["allow", "find_plugin", "plugins"]

GROUP = "newkind.methods"
VARIABLE = "NEWKIND_METHODS"
_allowed: set[str] = set()


def allow(name: str) -> None:
    """Let a class named as `package.module:Class` be imported, because the user named it."""
    if ":" in name:
        _allowed.add(name)


@cache
def plugins() -> dict[str, EntryPoint]:
    """Entry points of installed packages, by the names of their methods."""
    return {point.name: point for point in entry_points(group=GROUP)}


def find_plugin(name: str) -> Entry | None:
    """Entry of a method of another package; None if there is none of this name.

    Parameters
    ----------
    name : str
        Name of an entry point, or `package.module:Class`.

    Returns
    -------
    Entry or None

    Raises
    ------
    ConfigError
        With the code `method-not-allowed` if only a file names a class, `broken-plugin` if it cannot be imported, or
        `not-a-method` if it is something else.
    """
    if ":" in name:
        return _entry(name, _named(name), _package_of(name.split(".")[0].split(":")[0]))
    point = plugins().get(name)
    if point is None:
        return None
    package = "" if point.dist is None else f"{point.dist.name} {point.dist.version}"
    try:
        found = point.load()
    except Exception as error:
        raise _broken(name, package or point.value, error) from error
    return _entry(name, found, package)


def _named(name: str) -> Any:
    """Class that is named as `package.module:Class`."""
    if name not in _allowed and name not in os.environ.get(VARIABLE, "").split(","):
        raise ConfigError(
            f"The method {name} is a class of another package, which is not imported because a file names it.",
            fix=f"If you trust the package, set the environment variable {VARIABLE}={name}.",
            code="method-not-allowed",
            method=name,
        )
    module, _, path = name.partition(":")
    try:
        found: Any = import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise _broken(name, module, error) from error
    return found


def _package_of(module: str) -> str:
    """Name and version of the package that a top-level module belongs to; its name alone if it is not installed."""
    names = packages_distributions().get(module, [])
    return f"{names[0]} {version(names[0])}" if names else module


def _entry(name: str, found: Any, package: str) -> Entry:
    """Entry of a class, checked."""
    config = getattr(found, "config_class", None)
    if not (isinstance(found, type) and issubclass(found, Method)):
        problem = "is not a subclass of newkind.methods.method.Method"
    elif not (isinstance(config, type) and issubclass(config, MethodConfig)):
        problem = "has no `config_class` that is a subclass of MethodConfig"
    elif getattr(found, "__abstractmethods__", None):
        problem = f"does not implement {', '.join(sorted(found.__abstractmethods__))}"
    else:
        about = (found.__doc__ or "").strip().split("\n")[0]
        return Entry(found, config, found.title or found.__name__, about, package or "another package")
    raise ConfigError(f"The method '{name}' of {package} {problem}.", code="not-a-method", method=name)


def _broken(name: str, package: str, error: Exception) -> ConfigError:
    return ConfigError(
        f"The method '{name}' of {package} cannot be imported ({type(error).__name__}: {error}).",
        fix="Install the package, or update it.",
        code="broken-plugin",
        method=name,
    )
