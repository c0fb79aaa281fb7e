"""Conversion of labels (names or numbers; -1, None, NaN, "" or a word such as NA for unlabelled) to class indices."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind.data.catalog import Truth
from newkind.errors import DataError

__all__ = ["UNLABELLED_WORDS", "Labels", "combine_truth", "encode_labels", "encode_names", "encode_truth", "label_name"]

TOO_LARGE = 10**20
UNLABELLED_WORDS = frozenset(
    {"", "-1", "na", "n/a", "#n/a", "<na>", "nan", "nat", "none", "null", "unknown", "unlabelled", "unlabeled"}
)
"""Labels, in lower case, that mean that there is none; spreadsheets, R and pandas write missing values in these ways."""


@dataclass(frozen=True)
class Labels:
    """Encoded labels.

    Parameters
    ----------
    indices : ndarray of int32, shape (n_items,)
        Index into `class_names`, or -1 for unlabelled.
    class_names : tuple of str
        Names of the classes.
    """

    indices: NDArray[np.int32]
    class_names: tuple[str, ...]


def encode_labels(labels: Iterable[Any], *, first: Sequence[str] = ()) -> Labels:
    """Encode labels as class indices.

    Parameters
    ----------
    labels : iterable of length n_items
        Class names or whole numbers; None, NaN, -1, "" or a word for none (NA, NaN, None, null, unknown, unlabelled, in
        any case) for unlabelled.
    first : sequence of str, default=()
        Classes that come first, in this order. The others follow sorted, by value if all are whole numbers.

    Returns
    -------
    Labels

    Raises
    ------
    DataError
        If a value is not a label (`not-a-label`).

    Examples
    --------
    >>> encoded = encode_labels(["wasp", None, "bee", -1])
    >>> encoded.class_names, encoded.indices.tolist()
    (('bee', 'wasp'), [1, -1, 0, -1])
    """
    return encode_names([label_name(value) for value in labels], first=first)


def encode_names(values: Sequence[str | None], *, first: Sequence[str] = ()) -> Labels:
    """Encode class names, whatever they are, as class indices; None for unlabelled. `first` as in `encode_labels`."""
    rest = {value for value in values if value is not None}.difference(first)
    numeric = all(name.isascii() and name.isdecimal() for name in rest)
    names = (*first, *sorted(rest, key=_numeric_order if numeric else None))
    index: dict[str | None, int] = {None: -1} | {name: i for i, name in enumerate(names)}
    return Labels(np.fromiter((index[value] for value in values), dtype=np.int32, count=len(values)), names)


def encode_truth(truth: Iterable[Any], given: Labels) -> Truth:
    """Encode true classes: first the known classes, then the others.

    Parameters
    ----------
    truth : iterable of length n_items
        True classes, in the same form as for `encode_labels`. Where it is missing, a given label counts as true.
    given : Labels
        Given labels of the same items.

    Returns
    -------
    Truth

    Raises
    ------
    DataError
        If the lengths differ (`label-count`), or a given label and the truth differ (`label-conflict`).

    Examples
    --------
    >>> truth = encode_truth(["wasp", "ant", "bee"], encode_labels(["wasp", None, None]))
    >>> truth.class_names, truth.labels.tolist(), truth.is_old.tolist()
    (('wasp', 'ant', 'bee'), [0, 1, 2], [True, False, False])
    """
    return combine_truth(encode_labels(truth, first=given.class_names), given)


def combine_truth(encoded: Labels, given: Labels) -> Truth:
    """Truth of encoded true classes, of which the known classes come first, and given labels."""
    if encoded.indices.shape != given.indices.shape:
        raise DataError(
            f"There are {len(given.indices)} labels but {len(encoded.indices)} true classes.",
            code="label-count",
            n_items=len(given.indices),
            n_labels=len(encoded.indices),
        )
    is_labelled = given.indices >= 0
    conflict = is_labelled & (encoded.indices >= 0) & (encoded.indices != given.indices)
    if conflict.any():
        i = int(np.flatnonzero(conflict)[0])
        label, true = (encoded.class_names[indices[i]] for indices in (given.indices, encoded.indices))
        raise DataError(
            f"Item {i} is labelled '{label}', but its true class is '{true}'.",
            fix="Correct one of the two.",
            code="label-conflict",
            item=i,
            label=label,
            truth=true,
        )
    return Truth(
        labels=np.where(is_labelled, given.indices, encoded.indices),
        class_names=encoded.class_names,
        n_old=len(given.class_names),
    )


def label_name(value: Any) -> str | None:
    """Class name of a label, or None for unlabelled; raises DataError for values that are not labels."""
    if isinstance(value, str):
        name = str(value).strip()  # np.str_ becomes str; `bee ` and `bee` are one class
        return None if name.lower() in UNLABELLED_WORDS else name
    if value is None or (isinstance(value, float | np.floating) and np.isnan(value)):
        return None
    if type(value).__name__ in ("NAType", "NaTType"):  # missing values of pandas, which is not imported here
        return None
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer and not (isinstance(value, float | np.floating) and float(value).is_integer()):
        raise DataError(f"A label must be a name or a whole number, got {reprlib.repr(value)}.", code="not-a-label")
    number = int(value)
    if abs(number) >= TOO_LARGE:
        raise DataError("A numeric label has more than 20 digits.", fix="Give it as a string.", code="not-a-label")
    if number < -1:
        raise DataError(f"A numeric label must be 0 or larger, or -1 for unlabelled, got {number}.", code="not-a-label")
    return None if number == -1 else str(number)


def _numeric_order(digits: str) -> tuple[int, str, str]:
    """Sort key of numbers by value, without conversion: Python refuses to convert more than 4,300 digits."""
    significant = digits.lstrip("0")
    return len(significant), significant, digits
