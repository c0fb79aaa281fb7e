"""Griffe extension: the API reference shows the types of parameters in the words of the docstrings.

Griffe reads a type such as `{"modern", "release"}, optional` as a tuple with the default "modern", and `path-like` as a
difference. This extension puts the written type and default in their place, and shows the default of a field that is made
with `newkind.setting.setting` instead of the call.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

KINDS = (griffe.DocstringSectionKind.parameters, griffe.DocstringSectionKind.attributes)
LINE = re.compile(r"^(?P<names>\*{0,2}\w[\w, *]*) : (?P<type>\S.*)$", re.MULTILINE)
DEFAULT = re.compile(r", default=(?P<value>.+)$")


class PlainTypes(griffe.Extension):
    """Rewrites the parsed docstrings of a package."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Called by Griffe when a package is loaded."""
        pending: list[Any] = [pkg]
        while pending:
            item = pending.pop()
            pending += [member for member in item.members.values() if not member.is_alias]
            if item.docstring is not None:
                write_types(item)
            call = getattr(item, "value", None)
            if isinstance(call, griffe.ExprCall) and call.canonical_path.endswith(".setting"):
                item.value = call.arguments[0]


def write_types(item: Any) -> None:
    """Replace the types of the parameters and attributes of one documented object."""
    types = {
        name.strip(): line["type"] for line in LINE.finditer(item.docstring.value) for name in line["names"].split(",")
    }
    for section in item.docstring.parsed:
        for entry in section.value if section.kind in KINDS else ():
            written = types.get(entry.name)
            if written is None:
                continue
            default = DEFAULT.search(written)
            entry.annotation = DEFAULT.sub("", written).removesuffix(", optional")
            if section.kind is griffe.DocstringSectionKind.parameters:
                entry.value = default["value"] if default else None
