"""What is known about the images of a run that continues another one, before its categories are solved again."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from newkind.clustering.n_categories import estimate_n_categories
from newkind.data.wording import count
from newkind.errors import ConfigError
from newkind.methods.frame import FrameConfig, place_images
from newkind.pipeline.continued_images import ContinuedImages
from newkind.runs.answer import APPROVED, JUNK, LABELLED, UNSURE, Answer, CategoryState
from newkind.runs.decision import Event
from newkind.runs.resolve import new_ids

__all__ = ["FEWEST", "given_labels", "n_used", "open_categories", "start_answer"]

logger = logging.getLogger(__name__)
FEWEST = 2
"""Smallest number of new images per category that opens."""


def start_answer(images: ContinuedImages, model_before: Answer) -> Answer:
    """Answer about the images from the run before: labels as they are now, and decisions. New images have no category.

    A label that an image did not have before is used, whatever was decided. Classes are those categories that have their
    id or name; others become known classes.

    Parameters
    ----------
    images : ContinuedImages
        The images.
    model_before : Answer
        Answer of the model of the run before, without decisions, which says what was labelled.

    Returns
    -------
    Answer
    """
    before, row, n = images.before, images.row, len(images)
    states, place = _with_classes(before, images.collection.catalog.class_names)
    label = place[images.collection.catalog.labels]  # (n,): -1 for unlabelled
    was_label = np.where(model_before.status == LABELLED, _by_id(model_before, before), -1)[row]
    known = row >= 0
    category = np.where(known, before.category[row], -1)
    status = np.where(known, before.status[row], UNSURE)
    lost = (status == LABELLED) & (label < 0)
    status[lost] = np.array([*(state.status for state in states), UNSURE])[category[lost]]
    changed = (label >= 0) & ((label != was_label) | ~known)
    category[changed], status[changed] = label[changed], LABELLED
    rejected = {}
    for i, r in enumerate(row.tolist()):
        ids = before.rejected.get(r, frozenset()) - ({states[label[i]].id} if changed[i] else set())
        if ids:
            rejected[i] = ids
    confirmed = known & ~changed & (status == LABELLED) & np.isin(row, list(before.confirmed))
    return Answer(
        files=tuple(images.names),
        category=category.astype(np.int64),
        status=status.astype("<U10"),
        confidence=np.where(known, before.confidence[row], 0).astype(np.float32),
        second=np.full(n, -1),
        second_confidence=np.zeros(n, dtype=np.float32),
        novelty=np.full(n, np.nan, dtype=np.float32),
        outlier=None,
        categories=states,
        merged=dict(before.merged),
        rejected=rejected,
        confirmed=frozenset(np.flatnonzero(confirmed).tolist()),
        notes=before.notes,
    )


def given_labels(images: ContinuedImages, start: Answer) -> NDArray[np.int64]:
    """Label (n,) of each image as an index into the categories of `start`, also if a person decided against it; -1 for none."""
    place = _with_classes(start, images.collection.catalog.class_names)[1]  # it has all of them
    return place[images.collection.catalog.labels]


def _with_classes(before: Answer, names: Sequence[str]) -> tuple[tuple[CategoryState, ...], NDArray[np.int64]]:
    """Categories of an answer with classes that it does not have, and the category (n_classes + 1,) of each; the last is -1."""
    by_name = {state.name: k for k, state in enumerate(before.categories)}
    states, place = list(before.categories), []
    for name in names:
        k = before.position.get(name, by_name.get(name))
        if k is None:
            k = len(states)
            states.append(CategoryState(name, name, "known", given=True))
        states[k] = replace(states[k], given=True)
        place.append(k)
    return tuple(states), np.array([*place, -1], dtype=np.int64)


def _by_id(model: Answer, answer: Answer) -> NDArray[np.int64]:
    """Categories (n,) of the model's answer, as indices into those of another answer about the same images."""
    place = np.array([*(answer.position.get(state.id, -1) for state in model.categories), -1], dtype=np.int64)
    return place[model.category]


def open_categories(
    start: Answer,
    features: NDArray[np.float16],
    events: Sequence[Event],
    config: FrameConfig,
    *,
    n_open: int | None,
    seed: int,
) -> Answer:
    """Answer in which new images have a category too: one that exists, or one that opens for them.

    The number of those that open is estimated with all present categories as known classes, of which the images of the run
    before are labelled samples. On photographs of groceries and clothing, no category opened for up to 400 new images of
    the present categories; a new class was noticed when it had about as many images as the others.

    Parameters
    ----------
    start : Answer
        As from `start_answer`.
    features : ndarray of float16, shape (n, d)
        Features of all images.
    events : sequence of Event
        Decisions about the run before; ids that they used are not used again.
    config : FrameConfig
        Settings of frame and mixture.
    n_open : int or None
        Number of categories that open; None to estimate it.
    seed : int
        Seed of the estimate and of categories that open.

    Returns
    -------
    Answer
    """
    rows = np.flatnonzero(start.status != JUNK)
    own = start.category[rows]
    used = np.unique(own[own >= 0])
    compact = torch.from_numpy(np.where(own >= 0, np.searchsorted(used, own), -1))
    x = torch.from_numpy(features[rows].astype(np.float32))
    labels = torch.where(torch.from_numpy(np.isin(start.status[rows], (LABELLED, APPROVED))), compact, -1)
    n_open = _estimate(x, compact, n_used=len(used), seed=seed) if n_open is None else n_open
    _check_number(n_open, n_used=len(used), n_new=int((compact < 0).sum()))
    found = place_images(x, labels, compact, config, n_categories=len(used) + n_open, seed=seed).numpy()
    ids = new_ids(n_open, start, events)
    places = np.concatenate([used, len(start.categories) + np.arange(n_open)])
    category = start.category.copy()
    category[rows] = places[found]
    opened = tuple(CategoryState(name, name, "new") for name in ids)
    return replace(start, category=category, categories=(*start.categories, *opened))


def n_used(start: Answer) -> int:
    """Number of categories that have images."""
    return len(np.unique(start.category[(start.status != JUNK) & (start.category >= 0)]))


def _check_number(n_open: int, *, n_used: int, n_new: int) -> None:
    """Raise if this number of categories cannot open for the new images."""
    if not 0 <= n_open <= n_new // FEWEST:
        raise ConfigError(
            f"`n_categories` is {n_used + n_open}, but there are {count(n_used, 'category', 'categories')} and "
            f"{count(n_new, 'new image')}.",
            fix="It counts present and new categories together; each new one needs at least two new images.",
            code="too-few-categories" if n_open < 0 else "too-many-categories",
            setting="n_categories",
        )


def _estimate(x: torch.Tensor, category: torch.Tensor, *, n_used: int, seed: int) -> int:
    """Number of categories to open for the images (n, d) without a category."""
    n_new = int((category < 0).sum())
    if n_new < FEWEST:
        return 0
    estimate = estimate_n_categories(x, category.numpy(), n_known=n_used, seed=seed)
    if estimate.way == "guess":
        logger.info("Too few images to estimate how many categories are new, so none opens; see `n_categories`.")
        return 0
    return min(estimate.n_categories - n_used, n_new // FEWEST)
