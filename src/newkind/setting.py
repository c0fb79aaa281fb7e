"""Fields of configuration dataclasses with their valid ranges, checked in one place."""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Callable
from dataclasses import field, fields
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from newkind.errors import ConfigError

__all__ = [
    "check_min_confidence",
    "check_number",
    "check_seed",
    "check_settings",
    "choices_of",
    "read_setting",
    "setting",
    "value_type",
]

BOUNDS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "above": ("larger than", operator.gt),
    "at_least": ("at least", operator.ge),
    "below": ("less than", operator.lt),
    "at_most": ("at most", operator.le),
}
LARGEST = 10**9
"""Largest magnitude of a number whose bounds do not say otherwise; larger ones are typing errors, or attacks."""
SMALLEST = 1e-9
"""Smallest number that is above 0: temperatures divide, and float32 has to hold the quotient."""
LARGEST_SEED = 2**32 - 1
KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}


def setting(default: Any, **about: Any) -> Any:
    """Dataclass field with a default and what is known of its value.

    Parameters
    ----------
    default : Any
        Default value.
    **about : Any
        Bounds `above`, `at_least`, `below`, `at_most`; and for the command line `option` (name of the option, None for
        no option) and `envvar` (environment variable that sets it).

    Returns
    -------
    dataclasses.Field
    """
    return field(default=default, metadata=about)


def check_settings(config: Any) -> None:
    """Check the types, choices and bounds of all fields of a dataclass instance.

    Raises
    ------
    ConfigError
        With the code `wrong-type`, `unknown-choice` or `out-of-range` and the fact `setting`.
    """
    for item in fields(config):
        value = getattr(config, item.name)
        kind = value_type(type(config), item.name)
        if value is None and is_optional(type(config), item.name):
            continue
        choices = choices_of(type(config), item.name)
        if choices and value not in choices:
            raise ConfigError(
                f"`{item.name}` must be {_listed(choices)}, got {_shown(value)}.",
                code="unknown-choice",
                setting=item.name,
            )
        if kind in KINDS and not _is_a(kind, value):
            raise ConfigError(
                f"`{item.name}` must be {KINDS[kind]}, got {_shown(value)}.", code="wrong-type", setting=item.name
            )
        if kind in (int, float):
            check_number(item.name, value, **{name: item.metadata[name] for name in BOUNDS if name in item.metadata})


def check_number(name: str, value: float, **bounds: float) -> None:
    """Check that a number is within its bounds. A side without a bound has that of `LARGEST`.

    Parameters
    ----------
    name : str
        Name of the parameter.
    value : float
        A number.
    **bounds : float
        `above`, `at_least`, `below` and `at_most`.

    Raises
    ------
    ConfigError
        With the code `out-of-range` and the facts `setting` and `value`.

    Examples
    --------
    >>> check_number("folds", 5, at_least=2, at_most=100)
    """
    limits = dict(bounds)
    if limits.get("above") == 0:
        limits = {"at_least": SMALLEST} | {side: bound for side, bound in limits.items() if side != "above"}
    if not {"above", "at_least"} & limits.keys():
        limits["at_least"] = -LARGEST
    if not {"below", "at_most"} & limits.keys():
        limits["at_most"] = LARGEST
    if not all(BOUNDS[side][1](value, bound) for side, bound in limits.items()):
        wanted = " and ".join(f"{BOUNDS[side][0]} {bound:,}" for side, bound in sorted(limits.items()))
        raise ConfigError(
            f"`{name}` must be {wanted}, got {_shown(value)}.", code="out-of-range", setting=name, value=value
        )


def check_seed(name: str, value: int) -> None:
    """Raise ConfigError unless a number can be used as a seed."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ConfigError(f"`{name}` must be a whole number, got {_shown(value)}.", code="wrong-type", setting=name)
    check_number(name, value, at_least=0, at_most=LARGEST_SEED)


def _shown(value: Any) -> str:
    """Value for a message; a very long one is shortened."""
    try:
        return reprlib.repr(value)
    except ValueError:  # Python refuses to write more than 4,300 digits
        return "a very long number"


def read_setting(kind: type, name: str, value: Any) -> Any:
    """Value of a field from text, as on a command line; a value that already has its type is returned as it is."""
    if is_optional(kind, name) and (value is None or str(value).lower() == "none"):
        return None
    choices, wanted = choices_of(kind, name), value_type(kind, name)
    try:
        if choices:
            return choices[[str(choice) for choice in choices].index(str(value))]
        return _read(wanted, value)
    except (ValueError, TypeError, OverflowError):
        what = _listed(choices) if choices else KINDS.get(wanted, wanted.__name__)
        none = " or none" if is_optional(kind, name) else ""
        raise ConfigError(
            f"`{name}` must be {what}{none}, got {_shown(value)}.",
            code="unknown-choice" if choices else "wrong-type",
            setting=name,
        ) from None


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _variants(kind: type, name: str) -> tuple[Any, ...]:
    hint = _hints(kind)[name]
    return get_args(hint) if isinstance(hint, UnionType) or get_origin(hint) is Union else (hint,)


def is_optional(kind: type, name: str) -> bool:
    """Whether a field may be None."""
    return NoneType in _variants(kind, name)


def choices_of(kind: type, name: str) -> tuple[Any, ...]:
    """Allowed values of a field annotated as Literal; empty for any other."""
    hint = next((variant for variant in _variants(kind, name) if variant is not NoneType), None)
    return get_args(hint) if get_origin(hint) is Literal else ()


def value_type(kind: type, name: str) -> type:
    """Type of a field, without None."""
    hint = next((variant for variant in _variants(kind, name) if variant is not NoneType), object)
    return str if get_origin(hint) is Literal else hint if isinstance(hint, type) else object


def _is_a(kind: type, value: Any) -> bool:
    if kind is str:
        return isinstance(value, str)
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    return hasattr(value, "__index__") if kind is int else isinstance(value, (int, float)) and isfinite(value)


def _read(kind: type, value: Any) -> Any:
    if kind is bool:
        word = str(value).lower()
        if word not in ("true", "false"):
            raise ValueError
        return word == "true"
    if kind not in (int, float):
        return value if isinstance(value, kind) else kind(value)
    number = kind(value)
    if isinstance(value, bool) or not isfinite(number) or (not isinstance(value, str) and number != value):
        raise ValueError
    return number


def _listed(choices: tuple[Any, ...]) -> str:
    *rest, last = map(str, choices)
    return f"{', '.join(rest)} or {last}" if rest else last


def check_min_confidence(value: float) -> None:
    """Raise ConfigError unless the value is between 0 and 1."""
    check_number("min_confidence", value, at_least=0, at_most=1)
