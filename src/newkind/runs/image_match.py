"""Recognise images of an earlier run by their content."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["match_images"]


def match_images(
    names: Sequence[str], digests: Sequence[bytes], other_names: Sequence[str], other_digests: Sequence[bytes]
) -> NDArray[np.int64]:
    """Find the images that have the same content.

    Of several images with the same content, those with equal names belong together; others are paired in order, and
    further copies belong to the first one.

    Parameters
    ----------
    names : sequence of str, length n
        Names of images.
    digests : sequence of bytes, length n
        Digests of their contents; empty for an image that cannot be read, which matches nothing.
    other_names : sequence of str, length m
        Names of the images to search in.
    other_digests : sequence of bytes, length m
        Their digests.

    Returns
    -------
    ndarray of int64, shape (n,)
        Index of each image among the others, or -1.

    Examples
    --------
    >>> match_images(["moved.jpg", "a.jpg", "new.jpg"], [b"1", b"2", b"3"], ["a.jpg", "b.jpg"], [b"2", b"1"]).tolist()
    [1, 0, -1]
    """
    rows: dict[bytes, list[int]] = {}
    for j, digest in enumerate(other_digests):
        rows.setdefault(digest, []).append(j)
    first = {digest: found[0] for digest, found in rows.items()}
    found = np.full(len(names), -1, dtype=np.int64)
    rest = []
    for i, (name, digest) in enumerate(zip(names, digests, strict=True)):
        same = next((j for j in rows.get(digest, ()) if other_names[j] == name), None) if digest else None
        if same is not None:
            rows[digest].remove(same)
            found[i] = same
        elif digest in first and digest:
            rest.append(i)
    for i in rest:
        left = rows[digests[i]]
        found[i] = left.pop(0) if left else first[digests[i]]
    return found
