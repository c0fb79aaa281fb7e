"""Collections from image arrays and feature arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from newkind.data.catalog import Catalog, Collection
from newkind.data.cells import cell_text, group_name
from newkind.data.columns import metadata_columns
from newkind.data.groups import encode_groups
from newkind.data.items import ArrayImages, Features, Images
from newkind.data.labels import Labels, combine_truth, encode_names, label_name
from newkind.data.names import Names
from newkind.errors import DataError

__all__ = ["from_arrays", "from_features", "labelled_items", "unique_names", "with_columns"]


def from_arrays(
    images: ArrayLike,
    labels: Iterable[Any],
    *,
    truth: Iterable[Any] | None = None,
    class_names: Sequence[str] = (),
    names: Sequence[str] | None = None,
    groups: Iterable[Any] | None = None,
    metadata: Mapping[str, Iterable[Any]] | None = None,
    origin: str = "arrays",
) -> Collection:
    """Make a collection from an array of images.

    Parameters
    ----------
    images : array-like of uint8, shape (n_images, H, W) or (n_images, H, W, C)
        Grey, RGB (C = 3) or RGBA (C = 4) images, in memory or memory-mapped.
    labels : iterable of length n_images
        Labels: class names or whole numbers; None, NaN, -1, "" or a word such as NA or unknown for an unlabelled image.
    truth : iterable of length n_images, optional
        True classes in the same form, used for evaluation only.
    class_names : sequence of str, default=()
        Names of the classes 0, 1, ... Default: the numbers themselves.
    names : sequence of str, length n_images, optional
        Unique names of the images. Default: their numbers.
    groups : iterable of length n_images, optional
        Group of each image, such as its burst or specimen: images of a group share a category. None, NaN, "" or -1 for an
        image without a group.
    metadata : mapping of str to iterable, optional
        Further columns by name, one value per image.
    origin : str, default="arrays"
        Description of the source for display.

    Returns
    -------
    Collection
        The items are `ArrayImages`.

    Raises
    ------
    DataError
        If the array has another dtype or shape (`image-array`), there is not one label per image (`label-count`), or
        names are repeated (`names-not-unique`), or images of a group have different labels (`group-conflict`).

    Examples
    --------
    >>> import numpy as np
    >>> collection = from_arrays(np.zeros((3, 8, 8, 3), dtype=np.uint8), ["bee", "wasp", None])
    >>> len(collection.catalog), collection.catalog.class_names
    (3, ('bee', 'wasp'))
    """
    pixels = np.asarray(images)
    found = labelled_items(ArrayImages(pixels, unique_names(pixels, names)), labels, truth, class_names, origin)
    return with_columns(found, groups, metadata)


def from_features(
    features: ArrayLike,
    labels: Iterable[Any],
    *,
    truth: Iterable[Any] | None = None,
    class_names: Sequence[str] = (),
    names: Sequence[str] | None = None,
    groups: Iterable[Any] | None = None,
    metadata: Mapping[str, Iterable[Any]] | None = None,
    origin: str = "features",
) -> Collection:
    """Make a collection from precomputed features of any kind of data.

    Parameters
    ----------
    features : array-like of float, shape (n_items, n_features)
        Finite values.
    labels, truth : iterable of length n_items
        Labels, and optionally true classes, as for `from_arrays`.
    class_names, names : sequence of str, optional
        Names of classes and items, as for `from_arrays`.
    groups, metadata : optional
        Groups whose items share a category, and further columns, as for `from_arrays`.
    origin : str, default="features"
        Description of the source for display.

    Returns
    -------
    Collection
        The items are `Features`.

    Raises
    ------
    DataError
        As for `from_arrays`, or if a value is NaN or infinite (`not-finite`), or a row is too large or too small for float32
        (`feature-scale`).

    Examples
    --------
    >>> import numpy as np
    >>> collection = from_features(np.eye(4), [0, 1, -1, -1], class_names=["bee", "wasp"])
    >>> collection.catalog.class_names, collection.catalog.labels.tolist()
    (('bee', 'wasp'), [0, 1, -1, -1])
    """
    values = np.asarray(features)
    found = labelled_items(Features(values, unique_names(values, names)), labels, truth, class_names, origin)
    return with_columns(found, groups, metadata)


def labelled_items(
    items: Images | Features,
    labels: Iterable[Any],
    truth: Iterable[Any] | None,
    class_names: Sequence[str],
    origin: str,
) -> Collection:
    """Collection of items with labels and truth (n_items,) as `encode_labels` reads them."""
    given = encode_names([_named(label, class_names) for label in labels])
    true = None if truth is None else encode_names([_named(t, class_names) for t in truth], first=given.class_names)
    return Collection(
        catalog=Catalog(items=items, labels=given.indices, class_names=given.class_names),
        truth=None if true is None else combine_truth(true, given),
        origin=origin,
    )


def with_columns(
    collection: Collection, groups: Iterable[Any] | None, metadata: Mapping[str, Iterable[Any]] | None
) -> Collection:
    """Collection with groups and metadata, one value per item."""
    catalog = collection.catalog
    columns = {str(name): Names(map(cell_text, values)) for name, values in (metadata or {}).items()}
    for name, column in columns.items():
        if len(column) != len(catalog):
            raise DataError(
                f"The metadata '{name}' has {len(column)} values for {len(catalog)} items.",
                code="length-mismatch",
                column=name,
            )
    if groups is not None:
        given = Labels(catalog.labels, catalog.class_names)
        names = [group_name(value) for value in groups]
        if len(names) != len(catalog):
            raise DataError(
                f"There are {len(catalog)} items but {len(names)} groups; expected one group per item.",
                code="group-count",
                n_items=len(catalog),
                n_groups=len(names),
            )
        catalog = replace(catalog, groups=encode_groups(names, given))
        name = metadata_columns([*columns, "group"])[-1]
        collection, columns = replace(collection, group_column=name), {**columns, name: Names(names)}
    return replace(collection, catalog=catalog, metadata=columns)


def unique_names(rows: Any, names: Sequence[str] | None) -> Names:
    """Names of the rows of an array; by default their numbers, padded with zeros to the same width."""
    if names is None:
        width = len(str(max(len(rows) - 1, 0)))
        return Names(f"{i:0{width}d}" for i in range(len(rows)))
    n_unique = len(set(names))
    if len(names) != len(rows) or n_unique != len(rows):
        raise DataError(
            f"{len(rows)} items need as many unique names, got {len(names)} names of which {n_unique} are unique.",
            code="names-not-unique",
            n_items=len(rows),
            n_unique=n_unique,
        )
    return Names(names)


def _named(label: Any, class_names: Sequence[str]) -> str | None:
    """Class name of a label, or None for unlabelled; numbers are replaced by the names given for them."""
    name = label_name(label)
    if name is None or isinstance(label, str) or not class_names:
        return name
    if int(name) >= len(class_names):
        raise DataError(
            f"Label {name} has no name: there are {len(class_names)} `class_names`.",
            code="label-range",
            label=int(name),
        )
    return class_names[int(name)]
