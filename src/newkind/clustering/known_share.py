"""Share of the unlabelled samples that belong to known classes, counted with mixtures.

A mixture (`newkind.clustering.mixture`) assigns samples to known classes and new categories. How often it is right is measured in
the same fit, with known classes and labelled samples that it does not know of:

- a third of the known classes is held out, so its samples play new classes. The *false-alarm rate* is the share of them that are
  assigned to a known class;
- a quarter of the labelled samples of the other classes is treated as unlabelled. The *hit rate* is the share of them that are
  assigned to a known class.

With the share h of unlabelled samples that are assigned to a known class, the share of these classes is
(h - false alarms) / (hits - false alarms), the adjusted count of quantification. A mixture of somewhat more categories than there are
is used: with fewer, new classes hide in known ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from newkind.clustering.class_sized_clusters import whiten
from newkind.clustering.known_sizes import estimate_known_sizes
from newkind.clustering.mixture import fit_mixture, target_sizes

__all__ = ["count_known"]

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

CLASS_FOLDS, SAMPLE_FOLDS = 3, 4
STEPS = 25
"""Iterations of a mixture; more do not change the count."""
LEAST_GAP = 0.1
"""Lower bound of the hit rate minus the false-alarm rate."""


@dataclass(frozen=True, eq=False)
class _Fold:
    """What one mixture is fitted to."""

    labels: Ints
    """(n,): classes renumbered without the held-out ones, or -1."""
    n_known: int
    """Number of classes that are not held out."""
    is_hidden: Flags
    """(n,): labelled samples of these classes that are treated as unlabelled."""
    is_new: Flags
    """(n,): labelled samples of the held-out classes."""


@torch.no_grad()
def count_known(
    features: Tensor, labels: Ints, *, n_known: int, n_categories: int, shrinkage: float = 0.3, seed: int = 0
) -> float:
    """Estimate the share of unlabelled samples that belong to known classes.

    Parameters
    ----------
    features : tensor of shape (n_samples, n_features)
        Features on the CPU, not whitened.
    labels : ndarray of int64, shape (n_samples,)
        Class of each sample, 0 to `n_known` - 1, or -1 for unlabelled. Every class has a labelled sample.
    n_known : int
        Number of known classes, at least 2.
    n_categories : int
        Number of categories of the mixtures.
    shrinkage : float, default=0.3
        Shrinkage of the whitening, as in `within_class_whitening`.
    seed : int, default=0
        Seed of the folds and of the mixtures.

    Returns
    -------
    float
        Between 0.01 and 0.99.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat(np.arange(8), 30)
    >>> x = torch.from_numpy(rng.normal(size=(8, 16))[truth] + 0.3 * rng.normal(size=(240, 16))).float()
    >>> labels = np.where((truth < 4) & (np.arange(240) % 2 == 0), truth, -1)  # 60 of 180 unlabelled are of known classes
    >>> 0.2 < count_known(x, labels, n_known=4, n_categories=10) < 0.46
    True
    """
    rng = np.random.default_rng(seed)
    fold_of = rng.permutation(np.arange(n_known) % min(CLASS_FOLDS, n_known))
    part = _parts(labels, n_known, rng)
    folds = np.unique(fold_of)
    total = 0.0
    for fold in folds:
        problem = _hold_out(labels, fold_of == fold, part == fold)
        is_known = _assigned_to_known(features, problem, n_categories, shrinkage, seed + int(fold))
        alarms = is_known[problem.is_new].mean()
        hits = is_known[problem.is_hidden].mean() if problem.is_hidden.any() else 1.0
        total += np.clip((is_known[labels < 0].mean() - alarms) / max(hits - alarms, LEAST_GAP), 0.01, 0.99)
    return float(np.clip(total / (len(folds) - 1), 0.01, 0.99))  # each class is counted in all folds but one


def _parts(labels: Ints, n_known: int, rng: np.random.Generator) -> Ints:
    """Part (n,) of each labelled sample within its class, -1 for unlabelled ones."""
    part = np.full(len(labels), -1)
    for c in range(n_known):
        mine = np.flatnonzero(labels == c)
        part[mine] = (rng.permutation(len(mine)) + rng.integers(SAMPLE_FOLDS)) % SAMPLE_FOLDS
    return part


def _hold_out(labels: Ints, is_held: Flags, may_hide: Flags) -> _Fold:
    """Hold out classes (n_known,), and hide labels (n,) of the others where every class keeps one."""
    kept = np.flatnonzero(~is_held)
    number = np.full(len(is_held), -1)
    number[kept] = np.arange(len(kept))
    shown = np.where(labels >= 0, number[labels], -1)
    is_hidden = (shown >= 0) & may_hide
    left = np.bincount(shown[(shown >= 0) & ~is_hidden], minlength=len(kept))
    is_hidden &= left[shown] > 0
    return _Fold(np.where(is_hidden, -1, shown), len(kept), is_hidden, (labels >= 0) & (shown < 0))


def _assigned_to_known(features: Tensor, problem: _Fold, n_categories: int, shrinkage: float, seed: int) -> Flags:
    """Whether a mixture assigns each sample (n,) to a known class that is not held out."""
    labels, given = problem.labels, torch.from_numpy(problem.labels >= 0)
    z = whiten(features, features.mean(dim=0), features[given], labels[labels >= 0], shrinkage=shrinkage)
    known = estimate_known_sizes(
        features, labels, n_known=problem.n_known, n_categories=n_categories, shrinkage=shrinkage, seed=seed
    )
    sizes = target_sizes(known, n_categories, int((labels < 0).sum()))
    found = fit_mixture(z, labels=torch.from_numpy(labels), sizes=sizes, n_iter=STEPS, n_init=1, seed=seed)
    is_known: Flags = ((z @ found.directions.T).argmax(dim=1) < problem.n_known).numpy()
    return is_known
