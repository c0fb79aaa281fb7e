"""A rehearsal with the labelled images alone: half of the known classes are taken for new ones, and their labels are the truth.

Whatever is measured on it needs no label that a user does not have. The images that nobody labelled have no part in it, nor has
the truth of the data, if it carries one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from newkind.data import Catalog, Collection, Features, FileImages, Images, Truth, find_obstacles
from newkind.errors import ConfigError, DataError

__all__ = ["ChosenImages", "pretend"]

LEAST_CLASSES = 4
"""Two stay known, without which there is nothing to learn from, and two are held out."""
TRIES = 100
"""Draws of a half that was not drawn before; of very few classes there are not many halves."""


@dataclass(frozen=True)
class ChosenImages:
    """Some of a source's images."""

    images: Images
    chosen: NDArray[np.int64]
    """Their numbers in `images`."""
    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.chosen)

    def content(self, index: int) -> bytes:
        return self.images.content(int(self.chosen[index]))

    def open(self, index: int) -> Image.Image:
        return self.images.open(int(self.chosen[index]))


def pretend(collection: Collection, *, fold: int, seed: int) -> Collection:
    """The labelled images, as if half of the known classes were new: half of the other classes' images keep their label.

    Folds 0 and 1 hold out complementary halves of the classes, as do 2 and 3, and so on. Tokens are found in the cache of the
    whole collection: the images come from the same place.
    """
    if fold < 0 or seed < 0:
        raise ConfigError(f"fold and seed are 0 or larger; got {fold} and {seed}.")
    catalog = collection.catalog
    _check(catalog)
    classes = np.flatnonzero(catalog.counts())
    is_new = _held_out(len(classes), fold=fold, seed=seed)
    ordered, n_known = [*classes[~is_new], *classes[is_new]], int((~is_new).sum())
    place = np.full(catalog.n_known_classes, -1, dtype=np.int32)
    place[ordered] = np.arange(len(ordered))
    images = np.flatnonzero(catalog.is_labelled)
    truth = place[catalog.labels[images]]  # (n,): the known classes, then the pretended ones
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
    )


def _check(catalog: Catalog) -> None:
    if not catalog.is_labelled.any():
        raise find_obstacles(catalog.labels, catalog.class_names)[0]
    counts = catalog.counts()
    n_classes, n_several = int((counts > 0).sum()), int((counts > 1).sum())
    if n_classes < LEAST_CLASSES:
        raise DataError(
            f"{n_classes} labelled {'class is' if n_classes == 1 else 'classes are'} too few to take half of them for new ones.",
            fix=f"Label images of at least {LEAST_CLASSES} classes.",
        )
    if n_several < LEAST_CLASSES:
        raise DataError(
            f"Only {n_several} of the {n_classes} known classes have two labelled images or more: too few to hold any out.",
            fix=f"Label at least two images of {LEAST_CLASSES} classes; ten or more of each tell much more.",
        )


def _held_out(n_classes: int, *, fold: int, seed: int) -> NDArray[np.bool_]:
    """(n_classes,): which ones are taken for new in this fold."""
    drawn: list[frozenset[int]] = []
    everyone = frozenset(range(n_classes))
    half = frozenset[int]()
    for pair in range(fold // 2 + 1):
        rng = np.random.default_rng((seed, 0x4A1F, pair))
        for _ in range(TRIES):
            half = frozenset(rng.permutation(n_classes)[: n_classes // 2].tolist())
            if half not in drawn:
                break
        drawn += [half, everyone - half]
    held: NDArray[np.bool_] = np.isin(np.arange(n_classes), list(half))
    return held if fold % 2 == 0 else ~held


def _choose(items: Images | Features, chosen: NDArray[np.int64]) -> Images | Features:
    if isinstance(items, FileImages):  # the root stays: it is what a token cache goes by
        return FileImages(items.root, items.names.take(chosen))
    names = [items.names[int(i)] for i in chosen]
    if isinstance(items, Features):
        return Features(items.values[chosen], names)
    return ChosenImages(items, chosen, names)
