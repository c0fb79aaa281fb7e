"""What the registry knows of a method."""

from __future__ import annotations

from dataclasses import dataclass

from newkind.methods.method import Method, MethodConfig

__all__ = ["Entry"]


@dataclass(frozen=True)
class Entry:
    """A method of the registry.

    Parameters
    ----------
    method : type of Method
        Class of its heads.
    config : type of MethodConfig
        Class of its settings.
    title : str
        Name for tables and messages.
    about : str
        Description in one line.
    package : str, default=""
        Name and version of the package that has it; empty for Newkind's own methods.
    """

    method: type[Method]
    config: type[MethodConfig]
    title: str
    about: str
    package: str = ""
