"""The one place that parses JSON from elsewhere: bounded size and depth, finite numbers, and the types of a schema.

A schema is a type: `int`, `float`, `str`, `bool`, None, `Any`, `Literal`, `list[...]`, `dict[str, ...]`, unions, and
TypedDict for objects. A TypedDict says what an object must have; more keys are allowed, so that a file of a later
version can be read.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from functools import cache
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

__all__ = ["InvalidJson", "check_json", "json_text", "parse_json", "read_json_file"]

T = TypeVar("T")
MAX_BYTES = 2**28
"""Largest JSON file: 256 MB, the categories of a million classes."""
MAX_DIGITS = 19
"""Largest number of digits of an integer, which fits into 64 bits or is refused later by its range."""


class InvalidJson(ValueError):
    """A text that is not JSON, or not of the schema. The message says what was found, and where."""


def read_json_file(path: Path, schema: type[T], *, any_number: bool = False) -> T:
    """Read a JSON file.

    Parameters
    ----------
    path : Path
        The file.
    schema : type
        Type of its content.
    any_number : bool, default=False
        As in `parse_json`.

    Returns
    -------
    object of type `schema`

    Raises
    ------
    OSError
        If the file cannot be read, or is not a regular file.
    InvalidJson
        If it is too large, not JSON, or of another type.
    """
    with open(path, "rb", opener=_open_without_waiting) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise InvalidJson("not a regular file")
        if status.st_size > MAX_BYTES:
            raise InvalidJson(f"{status.st_size / 1e6:,.0f} MB, at most {MAX_BYTES / 1e6:,.0f} MB are read")
        return parse_json(file.read(), schema, any_number=any_number)


def _open_without_waiting(path: str, flags: int) -> int:
    """Open a file such that opening a named pipe returns at once."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def parse_json(text: str | bytes, schema: type[T], *, any_number: bool = False) -> T:
    """Parse a JSON text.

    Parameters
    ----------
    text : str or bytes
        The text, in UTF-8.
    schema : type
        Type of its content.
    any_number : bool, default=False
        Whether NaN, infinity and very long whole numbers are values too, as in tables of users, where only some columns
        are used as numbers.

    Returns
    -------
    object of type `schema`

    Raises
    ------
    InvalidJson
        If it is not JSON, has NaN, infinity or a very long number, is nested too deeply, or is of another type.

    Examples
    --------
    >>> parse_json('{"epoch": 3}', dict[str, int])
    {'epoch': 3}
    """
    checks: dict[str, Any] = {"parse_constant": _no_constant, "parse_float": _finite, "parse_int": _short}
    try:
        value = json.loads(text, **({} if any_number else checks))
    except (RecursionError, MemoryError):
        raise InvalidJson("nested too deeply, or too large") from None
    except UnicodeDecodeError as error:
        raise InvalidJson(f"byte {error.start} is not UTF-8 text") from None
    except ValueError as error:
        raise InvalidJson(str(error)) from None
    return check_json(value, schema)


def check_json(value: Any, schema: type[T]) -> T:
    """Return a JSON value if it is of the type of the schema; otherwise raise InvalidJson."""
    _check(value, schema, "")
    return value  # type: ignore[no-any-return]


def json_text(value: Any) -> str:
    """JSON of a value of `parse_json`, or of a cell of a table; "..." for one that is nested too deeply to be written."""
    try:
        return json.dumps(value, default=str)
    except (RecursionError, ValueError):  # ValueError: a whole number of more than 4,300 digits
        return "..."


def _no_constant(name: str) -> Any:
    raise InvalidJson(f"{name} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not isfinite(value):
        raise InvalidJson(f"the number {text[:20]} is too large")
    return value


def _short(text: str) -> int:
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise InvalidJson(f"a number has {len(text)} digits")
    return int(text)


def _check(value: Any, schema: Any, place: str) -> None:
    """Raise InvalidJson unless a value is of the type `schema`; `place` is where it is in the document."""
    if schema is Any or schema is object:
        return
    kind, inner = get_origin(schema), get_args(schema)
    if kind is NotRequired:
        _check(value, inner[0], place)
    elif kind is Union or kind is UnionType:
        if not any(_fits(value, variant) for variant in inner):
            raise _other_type(value, schema, place)
    elif kind is Literal:
        if not any(value == choice and type(value) is type(choice) for choice in inner):
            raise _other_type(value, schema, place)
    elif is_typeddict(schema):
        _check_object(value, schema, place)
    elif kind in (list, dict):
        if not isinstance(value, kind):
            raise _other_type(value, kind, place)
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            _check(item, inner[-1], f"{place}.{key}" if kind is dict else f"{place}[{key}]")
    elif not _is_plain(value, schema):
        raise _other_type(value, schema, place)


def _check_object(value: Any, schema: Any, place: str) -> None:
    """Check an object against a TypedDict."""
    if not isinstance(value, dict):
        raise _other_type(value, dict, place)
    for key, kind in _keys(schema).items():
        if key in value:
            _check(value[key], kind, f"{place}.{key}")
        elif get_origin(kind) is not NotRequired:
            raise InvalidJson(f"{_named(place)} has no `{key}`")


@cache
def _keys(schema: Any) -> Mapping[str, Any]:
    """Types of the keys of a TypedDict. Its `__required_keys__` are wrong where annotations are postponed."""
    return get_type_hints(schema, include_extras=True)


def _fits(value: Any, schema: Any) -> bool:
    try:
        _check(value, schema, "")
    except InvalidJson:
        return False
    return True


def _is_plain(value: Any, kind: Any) -> bool:
    """Whether a value has a simple type; true and false are no numbers, and a whole number is a float."""
    if kind is None or kind is NoneType:
        return value is None
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


NAMES = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    dict: "an object",
    list: "a list",
}


def _other_type(value: Any, wanted: Any, place: str) -> InvalidJson:
    found = "null" if value is None else NAMES.get(type(value), type(value).__name__)
    expected = NAMES.get(wanted) or str(wanted).replace("typing.", "")
    return InvalidJson(f"{_named(place)} is {found}, expected {expected}")


def _named(place: str) -> str:
    return f"`{place.removeprefix('.')}`" if place else "the content"
