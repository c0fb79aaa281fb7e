"""Hold-out problems made from the labelled images alone: some known classes are treated as new, their labels as the truth.

What is measured on them uses no label that a user does not have: neither unlabelled images nor the truth of the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from newkind.data import Catalog, Collection, Features, FileImages, Images, Truth, find_obstacles
from newkind.errors import ConfigError, DataError

__all__ = ["hold_out"]

LEAST_CLASSES = 4
"""Two classes stay known, as a method needs at least two, and two are held out."""
TRIES = 100
"""Draws of a half that was not drawn before. Few classes have few different halves."""


@dataclass(frozen=True)
class ChosenImages(Images):
    """Subset of the images of a source.

    Parameters
    ----------
    images : Images
        The source.
    chosen : ndarray of int64, shape (n,)
        Indices into `images`.
    names : sequence of str, length n
        Names of the chosen images.
    """

    images: Images
    chosen: NDArray[np.int64]
    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.chosen)

    def content(self, index: int) -> bytes:
        """Encoded content of the image at an index into `chosen`."""
        return self.images.content(int(self.chosen[index]))

    def open(self, index: int) -> Image.Image:
        """Decoded image at an index into `chosen`."""
        return self.images.open(int(self.chosen[index]))

    def open_reduced(self, index: int, *, shorter_side: int) -> Image.Image:
        """Decoded image at an index into `chosen`, not necessarily with all of its pixels."""
        return self.images.open_reduced(int(self.chosen[index]), shorter_side=shorter_side)


def hold_out(collection: Collection, *, fold: int, seed: int) -> Collection:
    """Labelled images with half of the known classes treated as new.

    Half of the images of the remaining classes keep their labels. The given labels are the truth. Folds 0 and 1 hold out
    complementary halves of the classes, so do folds 2 and 3, and so on. The tokens are found in the cache of the whole
    collection, because the images have the same origin and location.

    Parameters
    ----------
    collection : Collection
        Data with labels of at least 4 classes, at least two images each. Its truth is not used.
    fold : int
        Index of the hold-out problem, from 0.
    seed : int
        Random seed.

    Returns
    -------
    Collection
        The labelled images, with truth.

    Raises
    ------
    DataError
        With code `too-few-classes` or `too-few-images`, or as `find_obstacles` without labels.

    Examples
    --------
    >>> import numpy as np
    >>> from newkind.data import from_features
    >>> whole = from_features(np.eye(20), [*"aabbccddee", *[None] * 10])
    >>> problem = hold_out(whole, fold=0, seed=0)
    >>> len(problem.catalog), len(problem.catalog.class_names), len(problem.truth.class_names)
    (10, 3, 5)
    """
    catalog = collection.catalog
    _check(catalog, fold, seed)
    classes = np.flatnonzero(catalog.counts())
    is_new = _held_out(len(classes), fold=fold, seed=seed)
    ordered, n_known = [*classes[~is_new], *classes[is_new]], int((~is_new).sum())
    place = np.full(catalog.n_known_classes, -1, dtype=np.int32)
    place[ordered] = np.arange(len(ordered))
    images = np.flatnonzero(catalog.is_labelled)
    truth = place[catalog.labels[images]]  # (n,): known classes first, then held-out ones
    labels = np.full(len(images), -1, dtype=np.int32)
    rng = np.random.default_rng((seed, 0x7E4, fold))
    for known in range(n_known):
        own = rng.permutation(np.flatnonzero(truth == known))
        labels[own[: (len(own) + 1) // 2]] = known
    names = tuple(catalog.class_names[i] for i in ordered)
    return Collection(
        catalog=Catalog(items=_choose(catalog.items, images), labels=labels, class_names=names[:n_known]),
        truth=Truth(labels=truth, class_names=names, n_old=n_known),
        origin=collection.origin,
        location=collection.location,
        benchmark=collection.benchmark,
        reading=collection.reading,
    )


def _check(catalog: Catalog, fold: int, seed: int) -> None:
    """Check that there are enough labelled classes and images to hold out half of the classes."""
    if fold < 0 or seed < 0:
        raise ConfigError(
            f"`fold` and `seed` must be at least 0, got {fold} and {seed}.",
            code="out-of-range",
            setting="fold" if fold < 0 else "seed",
        )
    if not catalog.is_labelled.any():
        raise find_obstacles(catalog.labels, catalog.class_names)[0]
    counts = catalog.counts()
    n_classes, n_several = int((counts > 0).sum()), int((counts > 1).sum())
    if n_classes < LEAST_CLASSES:
        raise DataError(
            f"{n_classes} labelled {'class is' if n_classes == 1 else 'classes are'} too few to hold out half of them.",
            fix=f"Label images of at least {LEAST_CLASSES} classes.",
            code="too-few-classes",
            n_classes=n_classes,
        )
    if n_several < LEAST_CLASSES:
        raise DataError(
            f"Only {n_several} of the {n_classes} known classes have two or more labelled images, which is too few to hold "
            "out half of them.",
            fix=f"Label at least two images of {LEAST_CLASSES} classes, better ten or more per class.",
            code="too-few-images",
            n_classes=n_several,
        )


def _held_out(n_classes: int, *, fold: int, seed: int) -> NDArray[np.bool_]:
    """Mask (n_classes,) of the classes that are held out in a fold."""
    drawn: list[frozenset[int]] = []
    everything = frozenset(range(n_classes))
    half = frozenset[int]()
    for pair in range(fold // 2 + 1):
        rng = np.random.default_rng((seed, 0x4A1F, pair))
        for _ in range(TRIES):
            half = frozenset(rng.permutation(n_classes)[: n_classes // 2].tolist())
            if half not in drawn:
                break
        drawn += [half, everything - half]
    held: NDArray[np.bool_] = np.isin(np.arange(n_classes), list(half))
    return held if fold % 2 == 0 else ~held


def _choose(items: Images | Features, chosen: NDArray[np.int64]) -> Images | Features:
    """Items at the indices `chosen` (n,)."""
    if isinstance(items, FileImages):  # the root stays the same: it identifies the token cache
        return FileImages(items.root, items.names.take(chosen))
    names = [items.names[int(i)] for i in chosen]
    if isinstance(items, Features):
        return Features(items.values[chosen], names)
    return ChosenImages(items, chosen, names)
