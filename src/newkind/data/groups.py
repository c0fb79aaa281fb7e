"""Groups of items that share a category: bursts, specimens, products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from newkind.data.labels import Labels
from newkind.data.names import printable
from newkind.errors import DataError

__all__ = ["check_groups", "encode_groups", "number_groups"]


def encode_groups(names: Sequence[str], given: Labels) -> NDArray[np.int64]:
    """Encode groups as numbers.

    Parameters
    ----------
    names : sequence of str, length n_items
        Name of each item's group; "" for an item without a group.
    given : Labels
        Given labels of the items.

    Returns
    -------
    ndarray of int64, shape (n_items,)
        Number of each item's group, in the order in which groups first appear; -1 for none.

    Raises
    ------
    DataError
        If a group has two different labels (`group-conflict`).

    Examples
    --------
    >>> from newkind.data import encode_labels
    >>> encode_groups(["b", "", "a", "b"], encode_labels(["bee", None, None, None])).tolist()
    [0, -1, 1, 0]
    """
    groups = number_groups(names)
    check_groups(groups, given, tuple(dict.fromkeys(name for name in names if name)))
    return groups


def number_groups(names: Sequence[str]) -> NDArray[np.int64]:
    """Numbers (n,) of groups by their names, in the order in which they first appear; -1 for ""."""
    number: dict[str, int] = {"": -1}
    for name in names:
        number.setdefault(name, len(number) - 1)
    return np.fromiter((number[name] for name in names), dtype=np.int64, count=len(names))


def check_groups(groups: NDArray[np.int64], given: Labels, names: Sequence[str]) -> None:
    """Raise DataError if a group has two labels; `names` are those of the groups 0, 1, ..."""
    labelled = (groups >= 0) & (given.indices >= 0)
    pairs = np.unique(np.stack([groups[labelled], given.indices[labelled]], axis=1), axis=0)
    conflicts = np.unique(pairs[1:, 0][pairs[1:, 0] == pairs[:-1, 0]])
    if not len(conflicts):
        return
    first = int(conflicts[0])
    labels = [given.class_names[i] for i in pairs[pairs[:, 0] == first, 1]]
    more = f" {len(conflicts) - 1:,} more groups have several labels." if len(conflicts) > 1 else ""
    raise DataError(
        f"The group '{printable(names[first])}' has images with different labels: "
        f"{', '.join(printable(label) for label in labels[:5])}.{more}",
        fix="Images of a group share a category: correct the labels or the groups.",
        code="group-conflict",
        group=names[first],
        labels=labels,
        n_conflicts=len(conflicts),
    )
