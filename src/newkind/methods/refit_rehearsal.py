"""A rehearsal of a refit: a part of the labels is hidden, to see which confidences are right after it.

In each fold, a quarter of the labelled images of every prototype is treated as unlabelled. Frame and mixture are solved again from the present
prototypes, without the hidden images, as a refit does. `rehearsal` starts without prototypes instead, with classes held out, and
counts errors about whole classes, which a person has corrected by then: after 12 simulated decisions about photographs of groceries and 13 about clothing
its confidences were too low by 0.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from newkind.methods.frame import Frame, FrameConfig, refit_prototypes
from newkind.methods.rehearsal import (
    ENOUGH,
    GROUPS,
    LEAST_CLASSES,
    LEAST_IMAGES,
    MOST,
    Fold,
    ReadOut,
    Rehearsal,
    fit_read_out,
)

__all__ = ["PlacedImages", "rehearse_refit"]

MOST_STEPS = 15
"""Largest number of iterations of a fold, which starts near its end; a refit has to be done in seconds."""


@dataclass(frozen=True, eq=False)
class PlacedImages:
    """n images with their present prototypes.

    Parameters
    ----------
    features : Tensor of shape (n, d)
        Their features.
    labels : Tensor of int64, shape (n,)
        Category of labelled images, -1 for others.
    prototype : Tensor of int64, shape (n,)
        Present prototype, -1 for none.
    category_of : Tensor of int64, shape (n_prototypes,)
        Category of each prototype.
    """

    features: Tensor
    labels: Tensor
    prototype: Tensor
    category_of: Tensor

    @property
    def share_new(self) -> float:
        """Share of the images without a label that are in categories without labelled images."""
        own = self.category_of[self.prototype[(self.labels < 0) & (self.prototype >= 0)]]
        n = torch.bincount(self.labels[self.labels >= 0], minlength=int(self.category_of.max()) + 1)
        return float((n[own] == 0).float().mean()) if len(own) else 0.0


@torch.no_grad()
def rehearse_refit(images: PlacedImages, config: FrameConfig, *, temperature: float, seed: int = 0) -> Rehearsal | None:
    """Rehearse a refit with hidden labels.

    Parameters
    ----------
    images : PlacedImages
        All images.
    config : FrameConfig
        Settings of frame and mixture.
    temperature : float
        Temperature before calibration.
    seed : int, default=0
        Seed of the choice of hidden labels.

    Returns
    -------
    Rehearsal or None
        Without new classes; None with too few labelled classes or images.
    """
    found: list[Fold] = []
    quick = replace(config, mixture_steps=min(MOST_STEPS, config.mixture_steps))
    nothing = torch.zeros((0, 2), dtype=torch.int64)
    for hidden in _hidden(images, seed):
        labels, prototype = images.labels.clone(), images.prototype.clone()
        labels[hidden] = prototype[hidden] = -1
        frame = Frame(images.features.shape[1])
        fitted = refit_prototypes(frame, images.features, labels, prototype, quick, forbidden=nothing)
        logits = frame(images.features[hidden]) @ fitted.directions.T
        is_right = images.category_of[logits.argmax(dim=1)] == images.labels[hidden]
        found.append(Fold(logits.numpy(), is_right.numpy(), np.zeros(len(hidden), dtype=bool), logits.shape[1]))
        if len(found) > 1 and sum(len(fold.is_right) for fold in found) >= ENOUGH:
            break
    folds, raw = tuple(found), ReadOut(temperature)
    return Rehearsal(folds, raw, fit_read_out(folds, raw)) if folds else None


def _hidden(images: PlacedImages, seed: int) -> Iterator[Tensor]:
    """Rows whose labels each of up to four folds hides; none with too few labelled classes or images."""
    labelled = torch.nonzero((images.labels >= 0) & (images.prototype >= 0))[:, 0].numpy()
    if len(np.unique(images.labels[labelled])) < LEAST_CLASSES or len(labelled) < LEAST_IMAGES:
        return
    rng = np.random.default_rng((seed, 0x7E7))
    shuffled = rng.permutation(labelled)
    order = shuffled[np.argsort(images.prototype.numpy()[shuffled], kind="stable")]
    own = images.prototype.numpy()[order]
    rank = np.arange(len(own)) - np.searchsorted(own, own)
    is_large = np.bincount(own)[own] >= GROUPS  # every prototype keeps images
    for fold in range(GROUPS):
        rows = order[is_large & (rank % GROUPS == fold)]
        if len(rows):
            yield torch.from_numpy(np.sort(rng.permutation(rows)[:MOST]))
