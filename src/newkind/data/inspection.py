"""Overview of a collection: classes, sizes, formats, broken files, duplicates."""

from __future__ import annotations

import os
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from newkind.data.catalog import Catalog, Collection, Skipped, Truth, find_obstacles
from newkind.data.image_check import ImageCheck, check_image
from newkind.data.items import Features, Images
from newkind.data.names import printable
from newkind.errors import DataError

__all__ = ["DuplicateGroup", "Inspection", "SizeSummary", "inspect_collection"]

IMAGES_PER_SLICE = 4096
"""Images checked at a time, so that a million images are not queued as a million futures."""


@dataclass(frozen=True)
class DuplicateGroup:
    """Images with the same content, byte by byte.

    Parameters
    ----------
    names : tuple of str
        Names of the images.
    labels : tuple of str or None
        Class of each image, None for unlabelled.
    """

    names: tuple[str, ...]
    labels: tuple[str | None, ...]

    @property
    def conflict(self) -> bool:
        """Whether the same image has two different labels."""
        return len({label for label in self.labels if label is not None}) > 1


@dataclass(frozen=True)
class SizeSummary:
    """Sizes of the images, ordered by area.

    Parameters
    ----------
    smallest, median, largest : tuple of (int, int)
        Width and height in pixels.
    """

    smallest: tuple[int, int]
    median: tuple[int, int]
    largest: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """Result of `inspect_collection`. Broken images are not counted in it, except in `n_items` and `skipped`.

    Parameters
    ----------
    origin : str
        Description of the source.
    n_items : int
        Number of items in the catalog, including broken ones.
    n_labelled, n_unlabelled : int
        Number of labelled and unlabelled items.
    classes : dict of str to int
        Number of labelled items per known class.
    formats : dict of str to int
        Number of images per file format.
    sizes : SizeSummary or None
        Sizes of the images; None for features.
    skipped : tuple of Skipped
        Files that cannot be used, with the reasons.
    ignored : mapping of str to int
        Number of files of other types below a data folder, by suffix.
    duplicates : tuple of DuplicateGroup
        Groups of identical images.
    similar_names : tuple of tuples of str
        Class names that differ only in case, spaces, hyphens, underscores or Unicode composition.
    single_image_classes : tuple of str
        Classes with one labelled image.
    truth_counts : dict of str to int, or None
        Number of unlabelled items per true class, if the data has a truth.
    n_old : int
        Number of known classes.
    obstacles : tuple of DataError
        Reasons why `newkind discover` would refuse the data; empty if it would not.
    notes : tuple of str
        Remarks about the data.
    n_features : int or None
        Number of features per item; None for images.
    n_groups : int or None
        Number of groups whose items share a category; None without groups.
    metadata : tuple of str
        Names of further columns of the data.
    seconds : float
        Duration of the inspection.
    """

    origin: str
    n_items: int
    n_labelled: int
    n_unlabelled: int
    classes: dict[str, int]
    formats: dict[str, int]
    sizes: SizeSummary | None
    skipped: tuple[Skipped, ...]
    ignored: Mapping[str, int]
    duplicates: tuple[DuplicateGroup, ...]
    similar_names: tuple[tuple[str, ...], ...]
    single_image_classes: tuple[str, ...]
    truth_counts: dict[str, int] | None
    n_old: int
    obstacles: tuple[DataError, ...]
    notes: tuple[str, ...]
    n_features: int | None
    n_groups: int | None
    metadata: tuple[str, ...]
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Convert to JSON values; names with control characters or invalid UTF-8 are written with escapes.

        Returns
        -------
        dict of str to Any
            The fields, and `rate`, the number of items per second.
        """
        plain = asdict(self)
        plain["duplicates"] = [asdict(group) | {"conflict": group.conflict} for group in self.duplicates]
        plain["obstacles"] = [{"code": o.code, "what": o.what, "fix": o.fix} for o in self.obstacles]
        plain["rate"] = round(self.n_items / self.seconds, 1) if self.seconds else None
        return {key: _printable_strings(value) for key, value in plain.items()}


def inspect_collection(
    collection: Collection, *, advance: Callable[[int], object] | None = None, n_threads: int | None = None
) -> Inspection:
    """Decode every image once and summarise the collection.

    Parameters
    ----------
    collection : Collection
        The data.
    advance : callable, optional
        Called with the number of images that were just checked, to show progress.
    n_threads : int, optional
        Number of threads. Default: the number of processors. Pillow's decoders release the interpreter's lock.

    Returns
    -------
    Inspection

    Examples
    --------
    >>> from newkind.data import from_arrays
    >>> images = np.zeros((3, 8, 8), dtype=np.uint8)
    >>> inspection = inspect_collection(from_arrays(images, ["bee", "wasp", None]))
    >>> inspection.n_labelled, len(inspection.duplicates)
    (2, 1)
    """
    start = time.perf_counter()
    catalog = collection.catalog
    items = catalog.items
    checks = [] if isinstance(items, Features) else list(_check_all(items, advance, n_threads))
    broken = np.array([bool(check.error) for check in checks] or [False] * len(items), dtype=bool)
    labels = catalog.labels[~broken]
    counts = np.bincount(labels[labels >= 0], minlength=catalog.n_known_classes)
    classes = dict(zip(catalog.class_names, counts.tolist(), strict=True))
    return Inspection(
        origin=collection.origin,
        n_items=len(catalog),
        n_labelled=int((labels >= 0).sum()),
        n_unlabelled=int((labels < 0).sum()),
        classes=classes,
        formats=dict(Counter(check.format for check in checks if not check.error).most_common()),
        sizes=_summarise_sizes(checks),
        skipped=collection.skipped
        + tuple(Skipped(items.names[i], check.error, check.code) for i, check in enumerate(checks) if check.error),
        ignored=dict(collection.ignored),
        duplicates=_find_duplicates(catalog, checks),
        similar_names=_similar(catalog.class_names),
        single_image_classes=tuple(name for name, count in classes.items() if count == 1),
        truth_counts=_truth_counts(collection.truth, ~broken & ~catalog.is_labelled),
        n_old=catalog.n_known_classes,
        obstacles=tuple(find_obstacles(labels, catalog.class_names)),
        notes=collection.notes,
        n_features=items.values.shape[1] if isinstance(items, Features) else None,
        n_groups=None if catalog.groups is None else len(np.unique(catalog.groups[catalog.groups >= 0])),
        metadata=tuple(collection.metadata),
        seconds=time.perf_counter() - start,
    )


def _check_all(images: Images, advance: Callable[[int], object] | None, n_threads: int | None) -> Iterator[ImageCheck]:
    """Checks of all images, in their order."""
    with ThreadPoolExecutor(n_threads or os.cpu_count()) as pool:
        for start in range(0, len(images), IMAGES_PER_SLICE):
            indices = range(start, min(start + IMAGES_PER_SLICE, len(images)))
            for check in pool.map(lambda i: check_image(images, i), indices):
                if advance is not None:
                    advance(1)
                yield check


def _truth_counts(truth: Truth | None, counted: NDArray[np.bool_]) -> dict[str, int] | None:
    """Number of the items in the mask `counted` (n_items,) per true class."""
    if truth is None:
        return None
    counts = np.bincount(truth.labels[counted & (truth.labels >= 0)], minlength=len(truth.class_names))
    return dict(zip(truth.class_names, counts.tolist(), strict=True))


def _summarise_sizes(checks: Sequence[ImageCheck]) -> SizeSummary | None:
    """Smallest, median and largest size by area."""
    sizes = sorted(((c.width, c.height) for c in checks if not c.error), key=lambda size: size[0] * size[1])
    return SizeSummary(sizes[0], sizes[len(sizes) // 2], sizes[-1]) if sizes else None


def _find_duplicates(catalog: Catalog, checks: Sequence[ImageCheck]) -> tuple[DuplicateGroup, ...]:
    """Groups of images with the same digest."""
    groups: defaultdict[bytes, list[int]] = defaultdict(list)
    for i, check in enumerate(checks):
        if not check.error:
            groups[check.digest].append(i)
    labels = (*catalog.class_names, None)  # label -1 is the last: None
    return tuple(
        DuplicateGroup(
            names=tuple(catalog.items.names[i] for i in members),
            labels=tuple(labels[catalog.labels[i]] for i in members),
        )
        for members in groups.values()
        if len(members) > 1
    )


def _similar(names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Groups of names that differ only in case, spaces, hyphens, underscores or Unicode composition."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        plain = unicodedata.normalize("NFKC", name).casefold()
        groups["".join(plain.replace("_", " ").replace("-", " ").split())].append(name)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def _printable_strings(value: Any) -> Any:
    """JSON value with all strings made printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(key): _printable_strings(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_printable_strings(item) for item in value]
    return value
