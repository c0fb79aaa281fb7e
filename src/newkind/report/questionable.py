"""Images that deserve a second look: between two categories, perhaps mislabelled, broken, or there twice."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from newkind.data.catalog import ArrayImages, FileImages
from newkind.errors import BrokenImage
from newkind.report.contents import RunContents
from newkind.report.images import Pictures

__all__ = ["Copies", "find_copies", "lines_between", "mislabelled_lines", "n_between"]

BETWEEN = 0.3
"""An image lies between two categories if the second gets at least this probability (it cannot get more than 0.5)."""
CONFIDENT = 0.5
"""A label is doubted if the model gives another category more than this."""


@dataclass(frozen=True)
class Copies:
    """Lines whose images are the same to the byte."""

    lines: tuple[int, ...]
    labels_differ: bool
    """The same picture carries two different labels."""
    categories_differ: bool
    """The same picture lies in two categories."""


def lines_between(contents: RunContents) -> NDArray[np.int64]:
    """Unlabelled images between two categories, the most undecided first."""
    lines = np.flatnonzero(contents.is_free & (contents.second_confidence >= BETWEEN))
    return lines[np.lexsort((lines, contents.confidence[lines], -contents.second_confidence[lines]))]


def n_between(contents: RunContents) -> int:
    return int((contents.is_free & (contents.second_confidence >= BETWEEN)).sum())


def mislabelled_lines(contents: RunContents) -> NDArray[np.int64]:
    """Labelled images that the model confidently sorts elsewhere, the most confident first.

    For these, `second` holds the model's own choice, and the confidence is that in the label that was given.
    """
    doubted = ~contents.is_free & (contents.second_confidence > np.maximum(contents.confidence, CONFIDENT))
    lines = np.flatnonzero(doubted & (contents.second != contents.category))
    return lines[np.lexsort((lines, contents.confidence[lines] - contents.second_confidence[lines]))]


def find_copies(contents: RunContents, pictures: Pictures) -> list[Copies]:
    """Groups of equal images, those with a conflict first. Files are compared by size, and only then read."""
    images = pictures.images
    lines = np.flatnonzero(pictures.place >= 0)
    if isinstance(images, FileImages):
        sizes = ((int(i), _file_size(images, int(pictures.place[i]))) for i in lines)
        groups = _groups((line, size) for line, size in sizes if size)
        equal = [
            group for same in groups for group in _groups((line, _digest(images, pictures, line)) for line in same)
        ]
    elif isinstance(images, ArrayImages):
        equal = _groups((int(i), _digest(images, pictures, int(i))) for i in lines)
    else:
        return []
    found = [_copies(contents, group) for group in equal]
    return sorted(found, key=lambda c: (not c.labels_differ, not c.categories_differ, c.lines))


def _copies(contents: RunContents, group: list[int]) -> Copies:
    labelled = {int(contents.category[i]) for i in group if not contents.is_free[i]}
    return Copies(
        lines=tuple(group),
        labels_differ=len(labelled) > 1,
        categories_differ=len({int(contents.category[i]) for i in group}) > 1,
    )


def _groups(keyed: Iterable[tuple[int, Hashable]]) -> list[list[int]]:
    """Lines with the same key, where there are at least two; those without a key (None) are left out."""
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for line, key in keyed:
        if key is not None:
            groups[key].append(line)
    return [group for group in groups.values() if len(group) > 1]


def _file_size(images: FileImages, index: int) -> int:
    try:
        return os.stat(images.path(index)).st_size
    except (OSError, ValueError):
        return 0


def _digest(images: FileImages | ArrayImages, pictures: Pictures, line: int) -> bytes | None:
    try:
        return hashlib.blake2b(images.content(int(pictures.place[line])), digest_size=16).digest()
    except BrokenImage:
        return None
