"""Items and labels as scikit-learn's users give them: lists, arrays or columns of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from newkind.data.catalog import Catalog, Collection
from newkind.data.items import FileImages
from newkind.data.labels import encode_labels, label_name
from newkind.data.names import Names
from newkind.errors import DataError

__all__ = ["are_numbers", "from_paths", "list_of_labels", "list_of_paths"]


def list_of_paths(X: Any) -> list[str] | None:
    """X as a list of paths; None if it is something else."""
    if isinstance(X, str | Path) or not hasattr(X, "__len__") or not len(X) or getattr(X, "ndim", 1) != 1:
        return None
    items = list(X)
    return [str(item) for item in items] if all(isinstance(item, str | Path) for item in items) else None


def list_of_labels(y: Any, n: int) -> list[Any]:
    """Labels as a list; n times None for no labels."""
    return [None] * n if y is None else np.asarray(y, dtype=object).ravel().tolist()


def are_numbers(y: Any) -> bool:
    """Whether no label is a name."""
    return not any(isinstance(value, str) and label_name(value) is not None for value in list_of_labels(y, 0))


def from_paths(paths: list[str], y: Any) -> Collection:
    """Collection of image files with their labels."""
    given = encode_labels(list_of_labels(y, len(paths)))
    if len(given.indices) != len(paths):
        raise DataError(
            f"Expected one label per item, got {len(given.indices)} labels for {len(paths)} paths.",
            code="length-mismatch",
        )
    items = FileImages(Path(), Names(paths))
    catalog = Catalog(items=items, labels=given.indices, class_names=given.class_names)
    return Collection(catalog=catalog, origin="paths")
