"""A mixture of directions among unit vectors, with soft membership and target sizes.

A sample z of unit length belongs to category k with the probability

    q_k(z) = softmax_k(z . c_k / tau + b_k),        b_k = -beta_k log(size_k / target_k),

where size_k is the sum of q_k over all samples; a labelled sample belongs to its class. The direction c_k of a category is that of
the mean of z weighted by q_k. With beta = 0 this is k-means with soft membership; a large beta keeps categories at their target
sizes. Targets of known classes are their estimated sizes (`known_sizes`); new categories share the rest, and their beta falls with
the spread of the known classes' sizes: strong where known classes are alike, nearly none where they are not.

A fit starts with known classes that keep their expected number of nearest samples. New categories are seeded among the others only.
Of several restarts, the one with the highest likelihood *with* offsets is used: without offsets, splitting a large class always pays
(by-name accuracy over restarts correlates with the likelihood at 0.69 with offsets, at 0.30 without; docs/modern.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from newkind.clustering.kmeans import k_means
from newkind.clustering.known_sizes import KnownSizes, class_means
from newkind.clustering.membership import FreeRows, UnitRows, labelled_sums, membership_sums, row_pairs, rows_at_once
from newkind.errors import ConfigError

__all__ = ["Mixture", "TargetSizes", "fit_mixture", "refine_mixture", "target_sizes"]

KNOWN_BALANCE = 8.0
"""beta of known classes, whose sizes are known to about a fifth."""
NEW_BALANCE, MOST_BALANCE = 0.2, 8.0
"""beta of new categories is NEW_BALANCE / (variance of log sizes), at most MOST_BALANCE."""
LEAST_SIZE = 1e-3
"""Lower bound of a category's size, relative to its target, in its offset."""
STILL = 1e-7
"""The iteration ends when no direction moves further than this, squared."""
FIRST_STEPS = 20
"""Iterations of a mixture of new categories alone, before the joint one."""


@dataclass(frozen=True, eq=False)
class TargetSizes:
    """Sizes that categories are drawn to.

    Parameters
    ----------
    target : tensor of shape (n_categories,)
        Target size of each category, labelled samples included, known classes first.
    balance : tensor of shape (n_categories,)
        How strongly each category is kept at its target; 0 for not at all.
    expected : ndarray of shape (n_known,)
        Expected number of unlabelled samples of each known class.
    """

    target: Tensor
    balance: Tensor
    expected: NDArray[np.float64]

    def scaled(self, labels: Tensor, n_rows: int) -> TargetSizes:
        """Return the sizes among all samples, from those among a random sample.

        Parameters
        ----------
        labels : tensor of int64, shape (n_samples,)
            Class of each of all samples, or -1 for unlabelled.
        n_rows : int
            Number of samples that these sizes were estimated from.

        Returns
        -------
        TargetSizes
        """
        n_known, times = len(self.expected), len(labels) / n_rows
        expected = self.expected * times
        given = torch.bincount(labels[labels >= 0], minlength=n_known).cpu()
        known = given + torch.from_numpy(expected)
        return TargetSizes(torch.cat([known.to(self.target), self.target[n_known:] * times]), self.balance, expected)


@dataclass(frozen=True, eq=False)
class Mixture:
    """Categories of unit vectors.

    Parameters
    ----------
    directions : tensor of shape (n_categories, n_features)
        Direction of each category, of unit length, known classes first.
    offsets : tensor of shape (n_categories,)
        Offsets b, which set the sizes during fitting. Samples are assigned without them, to the nearest direction.
    fit : float
        Mean log-likelihood of all samples, with offsets; labelled samples count under their class. Larger is better.
    """

    directions: Tensor
    offsets: Tensor
    fit: float


def target_sizes(
    known: KnownSizes, n_categories: int, n_unlabelled: int, *, balance: float | None = None
) -> TargetSizes:
    """Target sizes of known classes and new categories.

    Parameters
    ----------
    known : KnownSizes
        Estimated sizes of the known classes.
    n_categories : int
        Number of categories, known classes included.
    n_unlabelled : int
        Number of unlabelled samples.
    balance : float, optional
        How strongly new categories are kept at one size. Default: from the spread of the known classes' sizes.

    Returns
    -------
    TargetSizes

    Examples
    --------
    >>> known = KnownSizes(np.array([10.0, 20.0]), np.array([10.0, 20.0]), 0.5, 0.5, 0.1)
    >>> found = target_sizes(known, 4, 90)
    >>> found.target.tolist(), [round(strength, 1) for strength in found.balance.tolist()]
    ([20.0, 40.0, 30.0, 30.0], [8.0, 8.0, 0.8, 0.8])
    """
    n_known = len(known.unlabelled)
    n_new = n_categories - n_known
    if n_new < 0:
        raise ConfigError(
            f"`n_categories` is {n_categories}, fewer than the {n_known} known classes.",
            fix="`n_categories` counts known and new categories together.",
            code="fewer-categories-than-classes",
            n_categories=n_categories,
            n_known=n_known,
        )
    rest = max(float(n_unlabelled - known.unlabelled.sum()), 1.0)
    target = np.concatenate([known.labelled + known.unlabelled, np.full(n_new, rest / max(n_new, 1))])
    new_balance = min(NEW_BALANCE / known.spread**2, MOST_BALANCE) if balance is None else balance
    return TargetSizes(
        torch.from_numpy(target).float(),
        torch.tensor([KNOWN_BALANCE] * n_known + [new_balance] * n_new),
        known.unlabelled,
    )


@torch.no_grad()
def fit_mixture(
    z: Tensor,
    *,
    labels: Tensor,
    sizes: TargetSizes,
    temperature: float = 0.05,
    n_iter: int = 60,
    n_init: int = 5,
    seed: int = 0,
) -> Mixture:
    """Fit several mixtures, each with other seeds of the new categories, and return the most likely one.

    Parameters
    ----------
    z : tensor of shape (n_samples, n_features)
        Features of unit length.
    labels : tensor of int64, shape (n_samples,)
        Class of each sample, or -1 for unlabelled.
    sizes : TargetSizes
        Target sizes of all categories.
    temperature : float, default=0.05
        Temperature tau of the memberships.
    n_iter : int, default=60
        Largest number of iterations per mixture.
    n_init : int, default=5
        Number of mixtures.
    seed : int, default=0
        Seed of the new categories.

    Returns
    -------
    Mixture
        Category i < n_known is known class i.

    Examples
    --------
    >>> z = F.normalize(torch.eye(3).repeat_interleave(4, dim=0) + 0.1, dim=1)
    >>> labels = torch.tensor([-1] * 8 + [0, 0] + [-1] * 2)  # two samples of the last group are labelled
    >>> known = KnownSizes(np.array([2.0]), np.array([2.0]), 0.5, 0.5, 0.1)
    >>> found = fit_mixture(z, labels=labels, sizes=target_sizes(known, 3, 10))
    >>> (z @ found.directions.T).argmax(dim=1)[8:].tolist()
    [0, 0, 0, 0]
    """
    n_known = len(sizes.expected)
    n_new = len(sizes.target) - n_known
    known, is_new = _keep_known(z, labels.cpu().numpy(), sizes.expected, n_new)
    others = z[torch.from_numpy(is_new).to(z.device)]
    nobody = torch.full((len(others),), -1, device=z.device)
    equal = TargetSizes(torch.full((n_new,), len(others) / max(n_new, 1)), sizes.balance[n_known:], sizes.expected[:0])
    found = []
    for restart in range(n_init if n_new else 1):
        start = known
        if n_new:
            seeds = k_means(others, n_new, n_init=1, max_iter=100, seed=seed * 1_000 + restart).centers.to(z)
            first = refine_mixture(
                others, seeds, labels=nobody, sizes=equal, temperature=temperature, n_iter=FIRST_STEPS
            )
            start = torch.cat([known, first.directions])
        found.append(refine_mixture(z, start, labels=labels, sizes=sizes, temperature=temperature, n_iter=n_iter))
    return max(found, key=lambda mixture: mixture.fit)


@torch.no_grad()
def refine_mixture(
    z: UnitRows,
    start: Tensor | Mixture,
    *,
    labels: Tensor,
    sizes: TargetSizes,
    temperature: float = 0.05,
    n_iter: int = 60,
    forbidden: Tensor | None = None,
) -> Mixture:
    """Iterate a mixture from given directions.

    Parameters
    ----------
    z : tensor or UnitRows of shape (n_samples, n_features)
        Features of unit length.
    start : tensor of shape (n_categories, n_features), or Mixture
        Directions to start from, of any length, known classes first; or a mixture, whose offsets are used, too.
    labels : tensor of int64, shape (n_samples,)
        Class of each sample, or -1 for unlabelled.
    sizes : TargetSizes
        Target sizes of all categories.
    temperature : float, default=0.05
        Temperature tau of the memberships.
    n_iter : int, default=60
        Largest number of iterations; it ends earlier when the directions no longer move.
    forbidden : tensor of int64, shape (n_pairs, 2), optional
        Pairs of an unlabelled sample and a category that it does not belong to; not all categories of a sample.

    Returns
    -------
    Mixture
        The mixture after the last iteration.

    Examples
    --------
    >>> z = torch.eye(2).repeat_interleave(3, dim=0)
    >>> sizes = TargetSizes(torch.tensor([3.0, 3.0]), torch.zeros(2), np.zeros(0))
    >>> start = torch.tensor([[1.0, 0.5], [0.5, 1.0]])
    >>> found = refine_mixture(z, start, labels=torch.full((6,), -1), sizes=sizes)
    >>> (z @ found.directions.T).argmax(dim=1).tolist()
    [0, 0, 0, 1, 1, 1]
    """
    begin = start if isinstance(start, Mixture) else Mixture(start, start.new_zeros(len(start)), 0.0)
    directions, b = begin.directions, begin.offsets
    k, free = len(directions), labels < 0
    target, balance = sizes.target.to(directions), sizes.balance.to(directions)
    fixed, fixed_sizes = labelled_sums(z, labels, directions)
    c = F.normalize(directions, dim=1)
    rows = FreeRows(z, free)
    never = row_pairs(forbidden, free)
    # Small enough that offsets do not oscillate about their aim, however large the balance.
    step = 1 / (1 + float(balance.max())) if k else 1.0
    for _ in range(n_iter):
        sums, members = membership_sums(rows, c, b, temperature, never)
        before, c = c, F.normalize(fixed + sums, dim=1)
        b = b.lerp(-balance * ((fixed_sizes + members) / target).clamp_min(LEAST_SIZE).log(), step)
        if float((c - before).square().sum(dim=1).max()) < STILL:
            break
    return Mixture(c, b, _likelihood(z, labels, c, b, temperature))


def _likelihood(z: UnitRows, labels: Tensor, c: Tensor, b: Tensor, temperature: float) -> float:
    """Mean over samples of log sum_k exp(z . c_k / tau + b_k), or of its own term for a labelled sample."""
    total, rows = 0.0, rows_at_once(len(c))
    for start in range(0, len(z), rows):
        x, y = z[start : start + rows], labels[start : start + rows]
        logits = torch.addmm(b, x, c.T / temperature)
        own = logits.gather(1, y.clamp_min(0)[:, None])[:, 0]
        total += float(torch.where(y >= 0, own, logits.logsumexp(dim=1)).cpu().sum(dtype=torch.float64))
    return total / max(len(z), 1)


def _keep_known(
    z: Tensor, labels: NDArray[np.int64], expected: NDArray[np.float64], n_new: int
) -> tuple[Tensor, NDArray[np.bool_]]:
    """Directions of known classes (n_known, d) that keep their nearest samples, and which samples (n,) they do not keep."""
    given, free, n_known = np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0), len(expected)
    is_new = np.zeros(len(labels), dtype=bool)
    if n_known == 0:
        return z[:0], ~is_new
    cosines = (z[free] @ class_means(z[given], labels[given], n_known).T).max(dim=1)
    near, nearest = cosines.values.cpu().numpy(), cosines.indices.cpu().numpy()
    order = np.lexsort((-near, nearest))
    first = np.searchsorted(nearest[order], np.arange(n_known))
    rank = np.empty(len(free), dtype=np.int64)
    rank[order] = np.arange(len(free)) - first[nearest[order]]
    is_new[free[rank >= np.round(expected[nearest])]] = True
    if is_new.sum() < 2 * n_new:  # too few are left for the new categories: use those furthest from any class
        is_new[free[np.argsort(near)[: 3 * n_new]]] = True
    kept = free[~is_new[free]]
    rows = np.concatenate([given, kept])
    classes = np.concatenate([labels[given], nearest[~is_new[free]]])
    return class_means(z[rows], classes, n_known), is_new
