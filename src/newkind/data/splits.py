"""Which classes are Old and which New in the published runs, and which images carry a label."""

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

    from numpy.typing import NDArray

__all__ = ["ClassSplit", "Division", "class_split", "divide", "labelled_subset"]

UNLABELLED = -1
_FIRST_ONES_OLD = {"cifar10": (5, 10), "cifar100": (80, 100), "imagenet_1k": (500, 1000)}
"""Datasets whose Old classes are simply the first ones: (Old, all)."""


@dataclass(frozen=True, kw_only=True)
class ClassSplit:
    """Old and New classes, as 0-based ids in the dataset's official order; their order here is the labels' order."""

    old: tuple[int, ...]
    new: tuple[int, ...]
    """For the Semantic Shift Benchmark's sets: the hard ones, then the medium, then the easy."""

    @property
    def classes(self) -> tuple[int, ...]:
        return self.old + self.new


@dataclass(frozen=True, kw_only=True)
class Division:
    """What a method is given, and what it has to find out."""

    labels: NDArray[np.int32]
    """(N,), position in the list of Old classes, or -1 for an unlabelled image."""
    truth: NDArray[np.int32]
    """(N,), position in the list of Old, then New classes."""


def class_split(name: str) -> ClassSplit:
    """The published Old and New classes of a benchmark."""
    if name in _FIRST_ONES_OLD:
        n_old, n_classes = _FIRST_ONES_OLD[name]
        return ClassSplit(old=tuple(range(n_old)), new=tuple(range(n_old, n_classes)))
    listed = _listed_splits()
    if name not in listed:
        known = sorted([*listed, *_FIRST_ONES_OLD])
        raise DataError(f"No published Old/New classes for '{name}'; there are some for {', '.join(known)}.")
    old, new = listed[name]["old"], listed[name]["new"]
    if isinstance(new, dict):
        new = [*new["hard"], *new["medium"], *new["easy"]]
    return ClassSplit(old=tuple(old), new=tuple(new))


@cache
def _listed_splits() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(files("newkind.data").joinpath("class_splits.json").read_text(encoding="utf-8"))
    return table


def labelled_subset(n: int, proportion: float = 0.5, seed: int = 0) -> NDArray[np.int64]:
    """Which of `n` images keep their label: int(proportion * n) distinct positions, in the order drawn."""
    if not 0 <= proportion <= 1:
        raise DataError(f"The labelled proportion lies between 0 and 1; got {proportion}.")
    # The published runs drew with NumPy's legacy generator; its stream is frozen, the new ones' may change.
    chosen = np.random.RandomState(seed).choice(n, size=int(proportion * n), replace=False) if n else np.empty(0)
    return chosen.astype(np.int64)


def divide(
    class_ids: NDArray[np.integer[Any]],
    *,
    old: Sequence[int],
    new: Sequence[int],
    proportion: float = 0.5,
    seed: int = 0,
) -> Division:
    """Labels and truth of images whose classes are `class_ids` (N,), given in the dataset's own order.

    The draw is over all images of the Old classes together, not class by class, and depends on their order.
    """
    classes = np.array([*old, *new], dtype=np.int64)
    if not (len(old) and len(new)):
        raise DataError(f"Expected Old and New classes; got {len(old)} Old and {len(new)} New ones.")
    if len(np.unique(classes)) != len(classes):
        raise DataError("A class stands more than once in the lists of Old and New classes.")
    order = np.argsort(classes)
    place = np.searchsorted(classes, class_ids, sorter=order).clip(max=len(classes) - 1)
    truth = order[place].astype(np.int32)  # (N,)
    strangers = np.flatnonzero(classes[truth] != class_ids)
    if strangers.size:
        raise DataError(f"Image {strangers[0]} is of class {class_ids[strangers[0]]}, which is neither Old nor New.")
    of_old_classes = np.flatnonzero(truth < len(old))
    chosen = of_old_classes[labelled_subset(len(of_old_classes), proportion, seed)]
    labels = np.full(len(truth), UNLABELLED, dtype=np.int32)
    labels[chosen] = truth[chosen]
    return Division(labels=labels, truth=truth)
