"""A rehearsal: the start of `modern` on the same images with some labels hidden, to see which confidences are right.

The known classes are divided into four groups at random, up to six times. In each fold one group is treated as new, and a
quarter of the labelled images of the other classes as unlabelled; the unlabelled images take part as they are. Frame and mixture are fitted with the labels that
are left. The hidden labels then say which images are right: of a kept class in its own category, of a held-out class in the
category that it is matched to. Two numbers are chosen, with which the confidences are nearest to what is right: the temperature of
the softmax, and a share that is spread evenly over all categories, for whole classes that are split or merged by accident.

How it was chosen is in docs/confidence.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment, minimize_scalar
from torch import Tensor

from newkind.clustering.sampling import most_rows, sample_rows
from newkind.methods.frame import SAMPLE_STEPS, SEEDS, Frame, FrameConfig, find_prototypes
from newkind.methods.method import AllImages

__all__ = ["Fold", "ReadOut", "Rehearsal", "fit_read_out", "rehearse"]

GROUPS = 4
"""Number of groups of classes, and 1 / share of labelled images that are hidden."""
ROUNDS, ENOUGH, ENOUGH_CLASSES = 6, 1000, 30
"""The groups are drawn at most six times; no further fold is made when so many labels were hidden and so many times a class was
held out. With few classes, whether one of them is split decides much, so many folds are needed: with five classes of Fashion-MNIST, the
calibration error in the rehearsal is 0.098 on average over seeds after 5 folds, 0.065 after 12 and 0.041 after 24."""
MOST_ROWS = 50_000
"""Largest number of images that take part."""
MOST_CELLS = 50_000_000
"""Images times categories of a fold; of more images, a sample takes part."""
MOST = 5000
"""Number of hidden images per fold that are read out."""
LEAST_CLASSES, LEAST_IMAGES = 4, 30
"""With fewer labelled classes or images there is no rehearsal."""
RANGE = 10.0
"""The temperature is changed at most by this factor."""
MOST_SMOOTHING = 0.5
COARSE = 25
"""Number of temperatures at which the search for the best one starts."""


@dataclass(frozen=True)
class ReadOut:
    """How cosines become probabilities: (1 - smoothing) * softmax(cosines / temperature) + smoothing / K.

    Parameters
    ----------
    temperature : float
        Temperature of the softmax.
    smoothing : float, default=0.0
        Share that is spread evenly over all categories.
    """

    temperature: float
    smoothing: float = 0.0


@dataclass(frozen=True, eq=False)
class Fold:
    """Images with hidden labels in one fold.

    Parameters
    ----------
    logits : ndarray of float32, shape (n, K)
        Cosines with the prototypes, kept classes first.
    is_right : ndarray of bool, shape (n,)
        Whether the nearest prototype is the right one, by name.
    is_new : ndarray of bool, shape (n,)
        Whether the class was held out.
    n_kept : int
        Number of kept classes.
    """

    logits: NDArray[np.float32]
    is_right: NDArray[np.bool_]
    is_new: NDArray[np.bool_]
    n_kept: int

    def confidence(self, by: ReadOut) -> NDArray[np.float64]:
        """Probability (n,) of the nearest prototype."""
        highest: NDArray[np.float64] = self._probabilities(by).max(axis=1)
        return highest

    def novelty(self, by: ReadOut) -> NDArray[np.float64]:
        """Probability (n,) of all new categories together."""
        together: NDArray[np.float64] = self._probabilities(by)[:, self.n_kept :].sum(axis=1)
        return together

    def _probabilities(self, by: ReadOut) -> NDArray[np.float64]:
        """(n, K)"""
        below = (self.logits - self.logits.max(axis=1, keepdims=True)).astype(np.float64)
        e: NDArray[np.float64] = np.exp(below / by.temperature)
        e *= (1 - by.smoothing) / e.sum(axis=1, keepdims=True)
        e += by.smoothing / e.shape[1]
        return e


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """What the folds of a rehearsal showed.

    Parameters
    ----------
    folds : tuple of Fold
        At least two.
    raw : ReadOut
        Read-out before calibration.
    fitted : ReadOut
        Read-out with which the confidences of all folds are nearest to what is right.
    """

    folds: tuple[Fold, ...]
    raw: ReadOut
    fitted: ReadOut

    @property
    def is_right(self) -> NDArray[np.bool_]:
        """(n,), of all folds."""
        return np.concatenate([fold.is_right for fold in self.folds])

    @property
    def is_new(self) -> NDArray[np.bool_]:
        """(n,), of all folds."""
        return np.concatenate([fold.is_new for fold in self.folds])

    def confidence(self, by: ReadOut) -> NDArray[np.float64]:
        """Confidence (n,) of all folds."""
        return np.concatenate([fold.confidence(by) for fold in self.folds])

    def held_out_confidence(self) -> NDArray[np.float64]:
        """Confidence (n,), in each fold with the read-out that the other folds give."""
        found = []
        for i, fold in enumerate(self.folds):
            others = self.folds[:i] + self.folds[i + 1 :]
            found.append(fold.confidence(fit_read_out(others, self.raw)))
        return np.concatenate(found)

    def novelty(self) -> NDArray[np.float64]:
        """Novelty (n,) of all folds with the fitted read-out."""
        return np.concatenate([fold.novelty(self.fitted) for fold in self.folds])


def fit_read_out(folds: tuple[Fold, ...], raw: ReadOut) -> ReadOut:
    """Temperature and smoothing with the smallest Brier score of the confidences: the mean of (confidence - right)^2.

    For one temperature the score is a quadratic function of the smoothing, so that only the temperature is searched for.

    Parameters
    ----------
    folds : tuple of Fold
        Folds of a rehearsal.
    raw : ReadOut
        Read-out before calibration; the temperature is between a tenth of its own and ten times as much.

    Returns
    -------
    ReadOut
    """
    right = np.concatenate([fold.is_right for fold in folds]).astype(np.float64)
    even = np.concatenate([np.full(len(fold.is_right), 1 / fold.logits.shape[1]) for fold in folds])

    def score(log_temperature: float) -> tuple[float, ReadOut]:
        plain = ReadOut(float(np.exp(log_temperature)))
        confident = np.concatenate([fold.confidence(plain) for fold in folds])
        above = confident - even
        best = float((confident - right) @ above) / max(float(above @ above), 1e-12)
        smoothing = min(max(best, 0.0), MOST_SMOOTHING)
        error = float(np.square(confident - smoothing * above - right).mean())
        return error, replace(plain, smoothing=smoothing)

    middle, reach = np.log(raw.temperature), np.log(RANGE)
    grid = np.linspace(middle - reach, middle + reach, COARSE)
    i = int(np.argmin([score(t)[0] for t in grid]))
    bounds = (grid[max(i - 1, 0)], grid[min(i + 1, COARSE - 1)])
    found = minimize_scalar(lambda t: score(t)[0], bounds=bounds, method="bounded", options={"xatol": 1e-3})
    return min((score(t) for t in (grid[i], found.x)), key=lambda pair: pair[0])[1]


@torch.no_grad()
def rehearse(
    images: AllImages, config: FrameConfig, *, n_categories: int, temperature: float, device: torch.device
) -> Rehearsal | None:
    """Rehearse the start of `modern` with hidden labels.

    Parameters
    ----------
    images : AllImages
        All images; every process has asked for their features before.
    config : FrameConfig
        Settings of frame and mixture.
    n_categories : int
        Number of categories K of the method.
    temperature : float
        Temperature before calibration.
    device : torch.device
        Device to compute on.

    Returns
    -------
    Rehearsal or None
        None with too few labelled classes or images.
    """
    features, labels = images.features(), images.labels.cpu().numpy()
    most = min(most_rows(n_categories, MOST_CELLS), MOST_ROWS)
    rows = sample_rows(labels, most, seed=images.seed, least_free=SEEDS * n_categories)
    one_start = replace(
        config, mixture_restarts=1
    )  # five take five times as long and calibrate no better than by 0.003
    if rows is not None:
        features, labels = features[torch.from_numpy(rows)], labels[rows]
        one_start = replace(one_start, mixture_steps=min(SAMPLE_STEPS, config.mixture_steps))
    found: list[Fold] = []
    n_hidden = n_held_out = 0
    for part in _parts(features, labels, images.seed):
        frame = Frame(features.shape[1]).to(device)
        directions = find_prototypes(frame, features, part, one_start, n_categories).directions
        logits = (frame(features[torch.from_numpy(part.hidden)].to(device)) @ directions.T).cpu().numpy()
        truth = part.truth[part.hidden]
        is_right = _is_right(truth, logits.argmax(axis=1), part.n_known, n_categories)
        found.append(Fold(logits, is_right, truth >= part.n_known, part.n_known))
        n_hidden, n_held_out = n_hidden + len(truth), n_held_out + int(part.truth.max()) + 1 - part.n_known
        if len(found) > 1 and n_hidden >= ENOUGH and n_held_out >= ENOUGH_CLASSES:
            break
    folds = tuple(found)
    if not folds:
        return None
    raw = ReadOut(temperature)
    return Rehearsal(folds, raw, fit_read_out(folds, raw))


@dataclass(eq=False)
class _Part:
    """All images with the labels that a fold leaves; implements `AllImages`."""

    values: Tensor
    """(n, d): features, averaged over views."""
    labels: Tensor
    """(n,): places of kept classes, -1 for unlabelled and hidden."""
    n_known: int
    """Number of kept classes."""
    seed: int
    truth: NDArray[np.int64]
    """(n,): kept classes first, then held-out ones; -1 for unlabelled images."""
    hidden: NDArray[np.int64]
    """Images whose labels are hidden; at most MOST."""

    def features(self) -> Tensor:
        return self.values


def _parts(features: Tensor, labels: NDArray[np.int64], seed: int) -> Iterator[_Part]:
    """All images, with features (n, d) and labels (n,), as each fold sees them; no fold with too few classes or images."""
    classes = np.unique(labels[labels >= 0])
    if len(classes) < LEAST_CLASSES or (labels >= 0).sum() < LEAST_IMAGES:
        return
    for number in range(ROUNDS * GROUPS):
        drawn, fold = divmod(number, GROUPS)
        group = np.random.default_rng((seed, 0x7E5, drawn)).permutation(np.arange(len(classes)) % GROUPS)
        rng = np.random.default_rng((seed, 0x7E6, number))
        ordered = np.concatenate([classes[group != fold], classes[group == fold]])
        n_kept = int((group != fold).sum())
        place = np.full(int(classes.max()) + 1, -1)
        place[ordered] = np.arange(len(ordered))
        truth = np.where(labels >= 0, place[np.maximum(labels, 0)], -1)
        left = np.full(len(labels), -1)
        for kept in range(n_kept):
            own = rng.permutation(np.flatnonzero(truth == kept))
            left[own[: max(len(own) - max(len(own) // GROUPS, 1), 1)]] = kept
        hidden = np.flatnonzero((truth >= 0) & (left < 0))
        if len(hidden) > MOST:
            hidden = np.sort(rng.choice(hidden, MOST, replace=False))
        yield _Part(features, torch.from_numpy(left), n_kept, seed, truth, hidden)


def _is_right(truth: NDArray[np.int64], best: NDArray[np.int64], n_kept: int, n_categories: int) -> NDArray[np.bool_]:
    """Whether each image (n,) is right by name: kept classes in their own category, others in the matched new one."""
    counts = np.zeros((int(truth.max()) + 1, n_categories), dtype=np.int64)
    np.add.at(counts, (truth, best), 1)
    own = np.arange(len(counts))
    own[n_kept:] = -1
    rows, columns = linear_sum_assignment(-counts[n_kept:, n_kept:])
    own[n_kept + rows] = n_kept + columns
    is_right: NDArray[np.bool_] = own[truth] == best
    return is_right
