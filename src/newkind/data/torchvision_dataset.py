"""Collections from torchvision-style dataset objects."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from newkind.data.arrays import labelled_items, unique_names
from newkind.data.catalog import Collection
from newkind.data.items import ArrayImages, DatasetImages, FileImages, Images
from newkind.data.names import Names
from newkind.errors import DataError

__all__ = ["from_torchvision"]


def from_torchvision(dataset: Any, *, is_labelled: ArrayLike | None = None) -> Collection:
    """Make a collection from a classification dataset in the style of torchvision.

    Parameters
    ----------
    dataset : object
        Dataset with `targets` (or `labels`) and, optionally, `classes`. It must return PIL images, so create it with
        `transform=None`. Files (`samples`) and arrays (`data`) are read directly where the dataset has them.
    is_labelled : array-like of bool, shape (n_images,), optional
        Images whose target is given as a label; all targets are the truth. Default: all images.

    Returns
    -------
    Collection
        Items are `FileImages`, `ArrayImages` or `DatasetImages`.

    Raises
    ------
    DataError
        If the dataset has no targets (`no-targets`), or `is_labelled` has another length (`label-count`).

    Examples
    --------
    >>> class Dataset:
    ...     data = np.zeros((4, 8, 8, 3), dtype=np.uint8)
    ...     targets = [0, 1, 2, 2]
    ...     classes = ["bee", "wasp", "fly"]
    >>> collection = from_torchvision(Dataset(), is_labelled=[True, True, False, False])
    >>> collection.catalog.class_names, collection.truth.class_names
    (('bee', 'wasp'), ('bee', 'wasp', 'fly'))
    """
    targets = next((getattr(dataset, a) for a in ("targets", "labels", "_labels") if hasattr(dataset, a)), None)
    if targets is None:
        raise DataError(
            f"{type(dataset).__name__} has no targets.",
            fix="Use `from_arrays` with your own labels.",
            code="no-targets",
        )
    truth = np.asarray(targets, dtype=np.int64)
    mask = np.ones(len(truth), dtype=bool) if is_labelled is None else np.asarray(is_labelled, dtype=bool)
    if mask.shape != truth.shape:
        raise DataError(
            f"The dataset has {len(truth)} items but `is_labelled` has shape {mask.shape}.",
            code="label-count",
            n_items=len(truth),
            shape=mask.shape,
        )
    names = tuple(getattr(dataset, "classes", ()))
    return labelled_items(_items(dataset, truth), np.where(mask, truth, -1), truth, names, type(dataset).__name__)


def _items(dataset: Any, truth: NDArray[np.int64]) -> Images:
    """Images of a dataset: its files or its array if it has them, otherwise what it returns."""
    samples, pixels = getattr(dataset, "samples", None), getattr(dataset, "data", None)
    if isinstance(samples, list) and samples and isinstance(samples[0][0], str):
        root = Path(os.path.commonpath([os.path.dirname(path) for path, _ in samples]))
        return FileImages(root, Names(os.path.relpath(path, root) for path, _ in samples))
    if pixels is not None and np.asarray(pixels).dtype == np.uint8 and np.asarray(pixels).shape[-1] != len(truth):
        return ArrayImages(np.asarray(pixels), unique_names(truth, None))
    return DatasetImages(dataset, unique_names(truth, None))
