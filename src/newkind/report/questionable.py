"""Images to check: unsure and ambiguous ones, outliers, possibly wrong labels, and duplicates."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from newkind.data import ArrayImages, FileImages
from newkind.errors import BrokenImage
from newkind.report.contents import UNSURE, RunContents
from newkind.report.images import RunImages

__all__ = [
    "Duplicates",
    "QuestionableImages",
    "ambiguous_lines",
    "find_duplicates",
    "find_questionable",
    "mislabelled_lines",
    "n_ambiguous",
    "outlier_lines",
    "unsure_lines",
]

AMBIGUOUS = 0.3  # Least probability of the second category of an ambiguous image; it cannot exceed 0.5.
CONFIDENT = 0.5  # A label is questioned if the model gives another category more than this.
MAX_IMAGES = 36
MAX_DUPLICATES = 40


@dataclass(frozen=True)
class Duplicates:
    """Images with identical bytes.

    Parameters
    ----------
    lines : tuple of int
        Rows of the images.
    labels_differ : bool
        Whether labelled copies have different labels.
    categories_differ : bool
        Whether the copies are in different categories.
    """

    lines: tuple[int, ...]
    labels_differ: bool
    categories_differ: bool


@dataclass(frozen=True, kw_only=True)
class QuestionableImages:
    """Images to check, cut to the number that the page shows.

    Parameters
    ----------
    n_ambiguous, n_mislabelled, n_unsure, n_outliers, n_duplicates : int
        Number of images (or groups of duplicates) that were found.
    ambiguous, mislabelled, unsure, outliers : list of int
        Rows, the most questionable first; at most `MAX_IMAGES`.
    duplicates : list of Duplicates
        Groups, those with a conflict first; at most `MAX_DUPLICATES`.
    """

    n_ambiguous: int
    ambiguous: list[int]
    n_mislabelled: int
    mislabelled: list[int]
    n_unsure: int
    unsure: list[int]
    n_outliers: int
    outliers: list[int]
    n_duplicates: int
    duplicates: list[Duplicates]


def find_questionable(contents: RunContents, images: RunImages) -> QuestionableImages:
    """Find all images to check."""
    ambiguous, mislabelled = ambiguous_lines(contents), mislabelled_lines(contents)
    unsure, outliers = unsure_lines(contents), outlier_lines(contents)
    duplicates = find_duplicates(contents, images)
    return QuestionableImages(
        n_ambiguous=len(ambiguous),
        ambiguous=ambiguous[:MAX_IMAGES].tolist(),
        n_mislabelled=len(mislabelled),
        mislabelled=mislabelled[:MAX_IMAGES].tolist(),
        n_unsure=len(unsure),
        unsure=unsure[:MAX_IMAGES].tolist(),
        n_outliers=len(outliers),
        outliers=outliers[:MAX_IMAGES].tolist(),
        n_duplicates=len(duplicates),
        duplicates=duplicates[:MAX_DUPLICATES],
    )


def ambiguous_lines(contents: RunContents) -> NDArray[np.int64]:
    """Return rows of unlabelled images with a probable second category, the most ambiguous first."""
    lines = np.flatnonzero(_is_ambiguous(contents))
    return lines[np.lexsort((lines, contents.confidence[lines], -contents.second_confidence[lines]))]


def n_ambiguous(contents: RunContents) -> int:
    """Count the ambiguous images."""
    return int(_is_ambiguous(contents).sum())


def _is_ambiguous(contents: RunContents) -> NDArray[np.bool_]:
    return np.logical_and(contents.is_free, contents.second_confidence >= AMBIGUOUS)


def mislabelled_lines(contents: RunContents) -> NDArray[np.int64]:
    """Return rows of labelled images that the model confidently assigns elsewhere, the most confident first.

    For these, `second` is the model's choice, and `confidence` the probability of the given label.
    """
    other = contents.second_confidence > np.maximum(contents.confidence, CONFIDENT)
    lines = np.flatnonzero(~contents.is_free & other & (contents.second != contents.category))
    return lines[np.lexsort((lines, contents.confidence[lines] - contents.second_confidence[lines]))]


def unsure_lines(contents: RunContents) -> NDArray[np.int64]:
    """Return rows of images with the status `unsure`, the least confident first."""
    lines = np.flatnonzero(contents.status == UNSURE)
    return lines[np.lexsort((lines, contents.confidence[lines]))]


def outlier_lines(contents: RunContents) -> NDArray[np.int64]:
    """Return rows of images that fit no category, the least confident first."""
    lines = np.flatnonzero(contents.outlier) if contents.outlier is not None else np.zeros(0, dtype=np.int64)
    return lines[np.lexsort((lines, contents.confidence[lines]))]


def find_duplicates(contents: RunContents, images: RunImages) -> list[Duplicates]:
    """Return groups of images with identical bytes, those with a conflict first. Only files of equal size are read."""
    source = images.images
    lines = np.flatnonzero(images.place >= 0).tolist()
    if isinstance(source, FileImages):
        sizes = ((i, _file_size(source, int(images.place[i]))) for i in lines)
        same_size = _groups((line, size) for line, size in sizes if size)
    elif isinstance(source, ArrayImages):
        same_size = [lines]
    else:
        return []
    equal = [
        group
        for candidates in same_size
        for group in _groups((line, _digest(source, int(images.place[line]))) for line in candidates)
    ]
    found = [_duplicates(contents, group) for group in equal]
    return sorted(found, key=lambda d: (not d.labels_differ, not d.categories_differ, d.lines))


def _duplicates(contents: RunContents, group: list[int]) -> Duplicates:
    labelled = {int(contents.category[i]) for i in group if not contents.is_free[i]}
    return Duplicates(
        lines=tuple(group),
        labels_differ=len(labelled) > 1,
        categories_differ=len({int(contents.category[i]) for i in group}) > 1,
    )


def _groups(keyed: Iterable[tuple[int, Hashable]]) -> list[list[int]]:
    """Return groups of at least two rows with the same key; rows without a key (None) are left out."""
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


def _digest(images: FileImages | ArrayImages, index: int) -> bytes | None:
    try:
        return hashlib.blake2b(images.content(index), digest_size=16).digest()
    except BrokenImage:
        return None
