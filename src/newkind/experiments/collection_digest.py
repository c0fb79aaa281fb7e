"""Digest of a collection: which items, labels and truth a result was computed from."""

from __future__ import annotations

from typing import Any

from newkind.data import Collection, Features, FileImages, Images
from newkind.errors import BrokenImage
from newkind.runs.fingerprint import digest_of

__all__ = ["collection_digest"]


def collection_digest(collection: Collection) -> str:
    """Digest of everything in a collection that decides a result.

    Features and images in memory count by their content, image files by their names and sizes, because reading all files
    of a large dataset takes minutes. A copy of the data in another folder has the same digest.

    Parameters
    ----------
    collection : Collection
        Images or features, with or without truth.

    Returns
    -------
    str
        SHA-256 as 64 hexadecimal digits.

    Examples
    --------
    >>> import numpy as np
    >>> from newkind.data import from_features
    >>> one, two = (from_features(np.eye(4), ["bee", "wasp", label, None]) for label in ("bee", "wasp"))
    >>> collection_digest(one) == collection_digest(one), collection_digest(one) == collection_digest(two)
    (True, False)
    """
    catalog, truth = collection.catalog, collection.truth
    parts: list[Any] = [list(catalog.class_names), catalog.labels]
    if truth is not None:
        parts += [list(truth.class_names), truth.n_old, truth.labels]
    if catalog.groups is not None:
        parts.append(catalog.groups)
    items = catalog.items
    parts.append(items.values if isinstance(items, Features) else _image_digests(items))
    return digest_of(*parts)


def _image_digests(items: Images) -> list[str]:
    """What identifies each image."""
    if isinstance(items, FileImages):
        return [f"{name}\0{items.n_bytes(i)}" for i, name in enumerate(items.names)]
    return [_content_digest(items, i) for i in range(len(items))]


def _content_digest(items: Images, index: int) -> str:
    try:
        return digest_of(items.content(index))
    except BrokenImage:
        return "broken"
