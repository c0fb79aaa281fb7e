"""Old and New classes of the published runs, and which images have a label."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from newkind.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = ["ClassSplit", "Division", "class_split", "divide", "labelled_subset"]

UNLABELLED = -1
_FIRST_ONES_OLD = {"cifar10": (5, 10), "cifar100": (80, 100), "imagenet_1k": (500, 1000)}
"""Datasets whose Old classes are the first ones: number of Old classes, number of all classes."""


@dataclass(frozen=True, kw_only=True)
class ClassSplit:
    """Old and New classes, as ids from 0 in the official order of the dataset. Their order here is that of the labels.

    Parameters
    ----------
    old : tuple of int
        Old (known) classes.
    new : tuple of int
        New classes. In the datasets of the Semantic Shift Benchmark: the hard ones, then the medium, then the easy.
    """

    old: tuple[int, ...]
    new: tuple[int, ...]

    @property
    def classes(self) -> tuple[int, ...]:
        """Old, then New classes."""
        return self.old + self.new


@dataclass(frozen=True, kw_only=True)
class Division:
    """Given labels and true classes.

    Parameters
    ----------
    labels : ndarray of int32, shape (n_images,)
        Position in the list of Old classes, or -1 for an unlabelled image.
    truth : ndarray of int32, shape (n_images,)
        Position in the list of Old, then New classes.
    """

    labels: NDArray[np.int32]
    truth: NDArray[np.int32]


def class_split(name: str) -> ClassSplit:
    """Return the published Old and New classes of a benchmark.

    Parameters
    ----------
    name : str
        Name of the benchmark.

    Returns
    -------
    ClassSplit

    Raises
    ------
    DataError
        If no split is published for that name (`unknown-benchmark`).

    Examples
    --------
    >>> class_split("cifar10").new
    (5, 6, 7, 8, 9)
    """
    if name in _FIRST_ONES_OLD:
        n_old, n_classes = _FIRST_ONES_OLD[name]
        return ClassSplit(old=tuple(range(n_old)), new=tuple(range(n_old, n_classes)))
    listed = _listed_splits()
    if name not in listed:
        known = ", ".join(sorted([*listed, *_FIRST_ONES_OLD]))
        raise DataError(
            f"There are no published Old and New classes for '{name}'; expected one of {known}.",
            code="unknown-benchmark",
            benchmark=name,
        )
    old, new = listed[name]["old"], listed[name]["new"]
    if isinstance(new, dict):
        new = [*new["hard"], *new["medium"], *new["easy"]]
    return ClassSplit(old=tuple(old), new=tuple(new))


@cache
def _listed_splits() -> dict[str, Any]:
    """Contents of `class_splits.json`."""
    table: dict[str, Any] = json.loads(files("newkind.data").joinpath("class_splits.json").read_text(encoding="utf-8"))
    return table


def labelled_subset(n: int, proportion: float = 0.5, seed: int = 0) -> NDArray[np.int64]:
    """Draw the images that keep their label, as in the published runs.

    Parameters
    ----------
    n : int
        Number of images of the Old classes.
    proportion : float, default=0.5
        Share of labelled images, from 0 to 1.
    seed : int, default=0
        Random seed.

    Returns
    -------
    ndarray of int64, shape (int(proportion * n),)
        Distinct positions, in the order drawn.

    Examples
    --------
    >>> labelled_subset(10).tolist()
    [2, 8, 4, 9, 1]
    """
    if not 0 <= proportion <= 1:
        raise DataError(
            f"`proportion` must lie between 0 and 1, got {proportion}.", code="out-of-range", setting="proportion"
        )
    # The published runs used NumPy's legacy generator; its stream is frozen, that of the new generators may change.
    chosen = np.random.RandomState(seed).choice(n, size=int(proportion * n), replace=False) if n else np.empty(0)
    return chosen.astype(np.int64)


def divide(
    class_ids: ArrayLike,
    *,
    old: Sequence[int],
    new: Sequence[int],
    proportion: float = 0.5,
    seed: int = 0,
) -> Division:
    """Make given labels and truth from fully labelled images, as in the published runs.

    The draw is over all images of the Old classes together, not per class, and depends on their order.

    Parameters
    ----------
    class_ids : array-like of int, shape (n_images,)
        Class of each image, in the order of the dataset.
    old, new : sequence of int
        Ids of the Old and New classes.
    proportion : float, default=0.5
        Share of the images of Old classes that keep their label.
    seed : int, default=0
        Random seed.

    Returns
    -------
    Division

    Raises
    ------
    DataError
        If `old` or `new` is empty or they overlap (`class-lists`), or an image is of neither (`unknown-class`).

    Examples
    --------
    >>> division = divide([7, 7, 7, 7, 3, 3], old=[7], new=[3])
    >>> division.truth.tolist(), int((division.labels >= 0).sum())
    ([0, 0, 0, 0, 1, 1], 2)
    """
    class_ids = np.asarray(class_ids)
    classes = np.array([*old, *new], dtype=np.int64)
    if not (len(old) and len(new)):
        raise DataError(
            f"Expected Old and New classes, got {len(old)} Old and {len(new)} New classes.", code="class-lists"
        )
    if len(np.unique(classes)) != len(classes):
        raise DataError("A class is listed more than once in `old` and `new`.", code="class-lists")
    truth = _positions(class_ids, classes)
    of_old_classes = np.flatnonzero(truth < len(old))
    chosen = of_old_classes[labelled_subset(len(of_old_classes), proportion, seed)]
    labels = np.full(len(truth), UNLABELLED, dtype=np.int32)
    labels[chosen] = truth[chosen]
    return Division(labels=labels, truth=truth)


def _positions(class_ids: NDArray[Any], classes: NDArray[np.int64]) -> NDArray[np.int32]:
    """Position of each class id (N,) in `classes`."""
    order = np.argsort(classes)
    place = np.searchsorted(classes, class_ids, sorter=order).clip(max=len(classes) - 1)
    positions: NDArray[np.int32] = order[place].astype(np.int32)
    unknown = np.flatnonzero(classes[positions] != class_ids)
    if unknown.size:
        image = int(unknown[0])
        raise DataError(
            f"Image {image} is of class {class_ids[image]}, which is neither Old nor New.",
            code="unknown-class",
            image=image,
        )
    return positions
