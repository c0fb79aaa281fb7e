"""Labels as people write them (-1, None, NaN, "" for unlabelled; integers or names) to class indices."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind.data.catalog import Truth
from newkind.errors import DataError

__all__ = ["Labels", "encode_labels", "encode_truth", "label_name"]

TOO_LARGE = 10**20


@dataclass(frozen=True)
class Labels:
    """Class indices (N,) with -1 for unlabelled, and the names that they stand for."""

    indices: NDArray[np.int32]
    class_names: tuple[str, ...]


def encode_labels(labels: Iterable[Any], *, first: Sequence[str] = ()) -> Labels:
    """The classes that `first` names, then the others in sorted order (by value if all are whole numbers)."""
    values = [label_name(value) for value in labels]
    rest = {value for value in values if value is not None}.difference(first)
    numeric = all(name.isascii() and name.isdecimal() for name in rest)
    names = (*first, *sorted(rest, key=_size if numeric else None))
    index: dict[str | None, int] = {None: -1} | {name: i for i, name in enumerate(names)}
    return Labels(np.fromiter((index[value] for value in values), dtype=np.int32, count=len(values)), names)


def encode_truth(truth: Iterable[Any], given: Labels) -> Truth:
    """The truth in the order: known classes, then the others. A given label is true by definition."""
    encoded = encode_labels(truth, first=given.class_names)
    if encoded.indices.shape != given.indices.shape:
        raise DataError(f"{len(given.indices)} labels but {len(encoded.indices)} true labels.")
    is_labelled = given.indices >= 0
    clash = is_labelled & (encoded.indices >= 0) & (encoded.indices != given.indices)
    if clash.any():
        i = int(np.flatnonzero(clash)[0])
        raise DataError(
            f"Item {i} is labelled '{encoded.class_names[given.indices[i]]}' but its truth is "
            f"'{encoded.class_names[encoded.indices[i]]}'.",
            fix="Correct one of the two.",
        )
    return Truth(
        labels=np.where(is_labelled, given.indices, encoded.indices),
        class_names=encoded.class_names,
        n_old=len(given.class_names),
    )


def _size(digits: str) -> tuple[int, str, str]:
    """Sorts numbers by value without computing it: Python refuses to convert more than 4,300 digits."""
    significant = digits.lstrip("0")
    return len(significant), significant, digits


def label_name(value: Any) -> str | None:
    """The class name, or None for unlabelled."""
    if isinstance(value, str):
        return None if value.strip() in ("", "-1") else value
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return None
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer and not (isinstance(value, float | np.floating) and float(value).is_integer()):
        raise DataError(f"A label is a name or a whole number; got {reprlib.repr(value)}.")
    number = int(value)
    if abs(number) >= TOO_LARGE:
        raise DataError("A numeric label has more than 20 digits.", fix="Give it as a string.")
    if number < -1:
        raise DataError(f"A numeric label is 0 or larger, or -1 for unlabelled; got {number}.")
    return None if number == -1 else str(number)
