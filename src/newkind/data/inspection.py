"""A look at a pile of images before anything is done with it."""

from __future__ import annotations

import hashlib
import os
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from PIL import ImageOps

from newkind.data.catalog import Catalog, Collection, Features, FileImages, Images, Skipped, find_obstacles
from newkind.data.decoding import PILLOW_ERRORS, open_checked, to_rgb
from newkind.data.names import printable
from newkind.errors import BrokenImage

__all__ = ["DuplicateGroup", "Inspection", "SizeSummary", "inspect_collection", "look_at"]

ORIENTATION = 0x0112
"""The EXIF tag; with one of SIDEWAYS the picture lies on its side in the file."""
SIDEWAYS = (5, 6, 7, 8)


@dataclass(frozen=True, slots=True)
class Look:
    """What one image turned out to be."""

    width: int = 0
    height: int = 0
    kind: str = ""
    digest: bytes = b""
    error: str = ""


@dataclass(frozen=True)
class DuplicateGroup:
    """Images whose content is the same to the byte."""

    names: tuple[str, ...]
    labels: tuple[str | None, ...]

    @property
    def conflict(self) -> bool:
        """The same picture carries two different labels."""
        return len({label for label in self.labels if label is not None}) > 1


@dataclass(frozen=True)
class SizeSummary:
    smallest: tuple[int, int]
    median: tuple[int, int]
    largest: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """All that `newkind inspect` tells."""

    origin: str
    n_items: int
    n_labelled: int
    n_unlabelled: int
    classes: dict[str, int]
    """Labelled items of each known class; broken ones do not count."""
    kinds: dict[str, int]
    sizes: SizeSummary | None
    skipped: tuple[Skipped, ...]
    duplicates: tuple[DuplicateGroup, ...]
    similar_names: tuple[tuple[str, ...], ...]
    single_image_classes: tuple[str, ...]
    truth_counts: dict[str, int] | None
    """If the data carries truth: unlabelled items of each true class."""
    n_old: int
    obstacles: tuple[str, ...]
    """Why `newkind discover` would refuse; empty if it would not."""
    notes: tuple[str, ...]
    n_features: int | None
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe: names that are not UTF-8 are written with escapes."""
        plain = asdict(self)
        plain["duplicates"] = [asdict(group) | {"conflict": group.conflict} for group in self.duplicates]
        plain["rate"] = round(self.n_items / self.seconds, 1) if self.seconds else None
        return {key: _printable_strings(value) for key, value in plain.items()}


def inspect_collection(
    collection: Collection, *, advance: Callable[[int], None], n_threads: int | None = None
) -> Inspection:
    """Decodes every image once, in parallel (Pillow's decoders and the hash release the interpreter's lock)."""
    start = time.perf_counter()
    catalog = collection.catalog
    items = catalog.items
    looks = [] if isinstance(items, Features) else list(_look_at_all(items, advance, n_threads))
    broken = np.array([bool(look.error) for look in looks] or [False] * len(items), dtype=bool)
    labels = catalog.labels[~broken]
    counts = np.bincount(labels[labels >= 0], minlength=catalog.n_known_classes)
    classes = dict(zip(catalog.class_names, counts.tolist(), strict=True))
    truth, truth_counts = collection.truth, None
    if truth is not None:
        unlabelled = truth.labels[~broken & ~catalog.is_labelled & (truth.labels >= 0)]
        tally = np.bincount(unlabelled, minlength=len(truth.class_names)).tolist()
        truth_counts = dict(zip(truth.class_names, tally, strict=True))
    return Inspection(
        origin=collection.origin,
        n_items=len(catalog),
        n_labelled=int((labels >= 0).sum()),
        n_unlabelled=int((labels < 0).sum()),
        classes=classes,
        kinds=dict(Counter(look.kind for look in looks if not look.error).most_common()),
        sizes=_summarise_sizes(looks),
        skipped=collection.skipped
        + tuple(Skipped(items.names[i], look.error) for i, look in enumerate(looks) if look.error),
        duplicates=_find_duplicates(catalog, looks),
        similar_names=_similar(catalog.class_names),
        single_image_classes=tuple(name for name, count in classes.items() if count == 1),
        truth_counts=truth_counts,
        n_old=catalog.n_known_classes,
        obstacles=tuple(str(obstacle) for obstacle in find_obstacles(labels, catalog.class_names)),
        notes=collection.notes,
        n_features=items.values.shape[1] if isinstance(items, Features) else None,
        seconds=time.perf_counter() - start,
    )


def look_at(images: Images, index: int) -> Look:
    """Decodes one image in full; never raises for what is wrong with the image itself."""
    try:
        content = images.content(index)
        digest = hashlib.blake2b(content, digest_size=16).digest()
        if not isinstance(images, FileImages):
            picture = images.open(index)
            return Look(*picture.size, "array", digest)
        with open_checked(content, name=images.names[index]) as image:
            kind, (width, height) = image.format or "", image.size
            # A JPEG decoded at an eighth of its size is cheaper and still reads every byte of it.
            image.draft("RGB", (max(1, width // 8), max(1, height // 8)))
            image.load()
            if image.getexif().get(ORIENTATION, 1) in SIDEWAYS:
                width, height = height, width
            to_rgb(ImageOps.exif_transpose(image))
        return Look(width, height, kind, digest)
    except BrokenImage as error:
        return Look(error=error.what.removeprefix(f"{images.names[index]}: ").removesuffix("."))
    except PILLOW_ERRORS as error:
        return Look(error=f"broken ({error})")


def _look_at_all(images: Images, advance: Callable[[int], None], n_threads: int | None) -> Iterator[Look]:
    with ThreadPoolExecutor(n_threads or os.cpu_count()) as pool:
        # In slices, so that a million images do not queue up as a million futures.
        for start in range(0, len(images), 4096):
            for look in pool.map(lambda i: look_at(images, i), range(start, min(start + 4096, len(images)))):
                advance(1)
                yield look


def _summarise_sizes(looks: Sequence[Look]) -> SizeSummary | None:
    sizes = sorted(((look.width, look.height) for look in looks if not look.error), key=lambda size: size[0] * size[1])
    return SizeSummary(sizes[0], sizes[len(sizes) // 2], sizes[-1]) if sizes else None


def _find_duplicates(catalog: Catalog, looks: Sequence[Look]) -> tuple[DuplicateGroup, ...]:
    groups: defaultdict[bytes, list[int]] = defaultdict(list)
    for i, look in enumerate(looks):
        if not look.error:
            groups[look.digest].append(i)
    labels = (*catalog.class_names, None)  # -1 is the last: None
    return tuple(
        DuplicateGroup(
            names=tuple(catalog.items.names[i] for i in members),
            labels=tuple(labels[catalog.labels[i]] for i in members),
        )
        for members in groups.values()
        if len(members) > 1
    )


def _similar(names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Names that differ only in case, spaces, hyphens, underscores or the way their characters are composed."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        plain = unicodedata.normalize("NFKC", name).casefold()
        groups["".join(plain.replace("_", " ").replace("-", " ").split())].append(name)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def _printable_strings(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable(key): _printable_strings(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_printable_strings(item) for item in value]
    return value
