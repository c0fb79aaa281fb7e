"""Items and labels as scikit-learn's users give them: lists, arrays or columns of a table."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from newkind.data.arrays import with_columns
from newkind.data.catalog import Catalog, Collection
from newkind.data.given_images import BYTES, GivenImages
from newkind.data.items import FileImages, Images
from newkind.data.labels import encode_labels, label_name
from newkind.data.names import Names
from newkind.errors import DataError

__all__ = ["are_numbers", "from_images", "given_images", "list_of_labels"]

SINGLE = (str, os.PathLike, Image.Image, *BYTES)


def given_images(X: Any) -> Images | None:
    """Images of an array-like of paths, bytes, PIL images or pixels, also mixed; None if X is something else.

    In a column that has at least one of these, what is none of them is an image that cannot be read, such as a missing value.
    """
    if isinstance(X, SINGLE) or not hasattr(X, "__len__") or not len(X) or getattr(X, "ndim", 1) != 1:
        return None
    items = list(X)
    if all(isinstance(item, str | os.PathLike) for item in items):
        return FileImages(Path(), Names(os.fspath(item) for item in items))
    pixels = all(isinstance(item, np.ndarray) and item.dtype == np.uint8 and item.ndim > 1 for item in items)
    return GivenImages.named(items) if pixels or any(isinstance(item, SINGLE) for item in items) else None


def list_of_labels(y: Any, n: int) -> list[Any]:
    """Labels as a list; n times None for no labels."""
    return [None] * n if y is None else np.asarray(y, dtype=object).ravel().tolist()


def are_numbers(y: Any) -> bool:
    """Whether no label is a name."""
    return not any(isinstance(value, str) and label_name(value) is not None for value in list_of_labels(y, 0))


def from_images(items: Images, y: Any, groups: Any = None) -> Collection:
    """Collection of images with their labels and groups."""
    given = encode_labels(list_of_labels(y, len(items)))
    if len(given.indices) != len(items):
        raise DataError(
            f"Expected one label per item, got {len(given.indices)} labels for {len(items)} images.",
            code="length-mismatch",
        )
    catalog = Catalog(items=items, labels=given.indices, class_names=given.class_names)
    origin = "paths" if isinstance(items, FileImages) else "images"
    return with_columns(Collection(catalog=catalog, origin=origin), groups, None)
