"""A mixture of directions among unit vectors, with soft membership and balanced sizes.

A sample z of unit length belongs to category k with the probability

    q_k(z) = softmax_k(z . c_k / tau + b_k),        b_k = -balance * log(K * share_k),

where share_k is the mean of q_k over all samples; a labelled sample belongs to its class. The direction c_k of a category is
that of the mean of z weighted by q_k. With balance = 0 this is k-means with soft membership; a large balance makes all
categories the same size. With hard membership, categories stay close to where their first seeds were drawn; with soft
membership they do not.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from newkind.clustering.kmeans import k_means, known_first
from newkind.errors import ConfigError

__all__ = ["Mixture", "fit_mixture", "refine_mixture"]

LEAST_SHARE = 1e-3
"""Lower bound of a category's share, relative to the mean share, in its offset."""
CHUNK = 1 << 22
"""Number of memberships computed at once."""
STILL = 1e-7
"""The iteration ends when no direction moves further than this, squared."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """Categories of unit vectors.

    Parameters
    ----------
    directions : tensor of shape (n_categories, n_features)
        Direction of each category, of unit length, known classes first.
    offsets : tensor of shape (n_categories,)
        Offsets b, which balance the sizes during fitting. Samples are assigned without them, to the nearest direction.
    fit : float
        Mean over all samples of log sum_k exp(z . c_k / tau). Larger is better.
    """

    directions: Tensor
    offsets: Tensor
    fit: float


@torch.no_grad()
def fit_mixture(
    z: Tensor,
    n_categories: int,
    *,
    labels: Tensor,
    n_known: int,
    temperature: float = 0.05,
    balance: float = 4.0,
    n_iter: int = 60,
    n_init: int = 5,
    seed: int = 0,
) -> Mixture:
    """Fit several mixtures, each started from another k-means, and return the one with the best fit.

    Parameters
    ----------
    z : tensor of shape (n_samples, n_features)
        Features of unit length.
    n_categories : int
        Number of categories, known classes included.
    labels : tensor of int64, shape (n_samples,)
        Class of each sample, 0 to `n_known` - 1, or -1 for unlabelled.
    n_known : int
        Number of known classes.
    temperature : float, default=0.05
        Temperature tau of the memberships.
    balance : float, default=4.0
        How strongly sizes are balanced; 0 for not at all.
    n_iter : int, default=60
        Largest number of iterations per mixture.
    n_init : int, default=5
        Number of mixtures.
    seed : int, default=0
        Seed of k-means.

    Returns
    -------
    Mixture
        The mixture with the best fit. Category i < `n_known` is known class i.

    Raises
    ------
    ConfigError
        `fewer-categories-than-classes` if `n_categories` is below `n_known`.
    DataError
        For features that cannot be used.

    Examples
    --------
    >>> z = F.normalize(torch.eye(3).repeat_interleave(4, dim=0) + 0.1, dim=1)
    >>> labels = torch.tensor([-1] * 8 + [0] + [-1] * 3)  # the first sample of the last group is labelled
    >>> found = fit_mixture(z, 3, labels=labels, n_known=1)
    >>> (z @ found.directions.T).argmax(dim=1)[8:].tolist()
    [0, 0, 0, 0]
    """
    if n_categories < n_known:
        raise ConfigError(
            f"`n_categories` is {n_categories}, fewer than the {n_known} known classes.",
            fix="`n_categories` counts known and new categories together.",
            code="fewer-categories-than-classes",
            n_categories=n_categories,
            n_known=n_known,
        )
    found = []
    for restart in range(n_init):
        clusters = k_means(z, n_categories, n_init=1, max_iter=100, seed=seed * 1_000 + restart)
        order = known_first(clusters.labels, labels, n_categories, n_known)
        found.append(
            refine_mixture(
                z, clusters.centers[order], labels=labels, temperature=temperature, balance=balance, n_iter=n_iter
            )
        )
    return max(found, key=lambda mixture: mixture.fit)


@torch.no_grad()
def refine_mixture(
    z: Tensor,
    directions: Tensor,
    *,
    labels: Tensor,
    temperature: float = 0.05,
    balance: float = 4.0,
    n_iter: int = 60,
) -> Mixture:
    """Iterate a mixture from given directions.

    Parameters
    ----------
    z : tensor of shape (n_samples, n_features)
        Features of unit length.
    directions : tensor of shape (n_categories, n_features)
        Directions to start from, of any length, known classes first.
    labels : tensor of int64, shape (n_samples,)
        Class of each sample, or -1 for unlabelled.
    temperature : float, default=0.05
        Temperature tau of the memberships.
    balance : float, default=4.0
        How strongly sizes are balanced; 0 for not at all.
    n_iter : int, default=60
        Largest number of iterations; it ends earlier when the directions no longer move.

    Returns
    -------
    Mixture
        The mixture after the last iteration.
    """
    k, free = len(directions), labels < 0
    given = F.one_hot(labels[~free], k).to(z)  # (labelled, K)
    fixed, fixed_share = given.T @ z[~free], given.sum(dim=0)
    c, b = F.normalize(directions, dim=1), z.new_zeros(k)
    rows = z if bool(free.all()) else z[free]
    for _ in range(n_iter):
        sums, share = fixed.clone(), fixed_share.clone()
        for x in torch.split(rows, max(CHUNK // k, 1)):
            q = torch.addmm(b, x, c.T / temperature).softmax(dim=1)
            sums.addmm_(q.T, x)
            share += q.sum(dim=0)
        before, c = c, F.normalize(sums, dim=1)
        # The step is small enough that b does not oscillate, however large the balance.
        b = b.lerp(-balance * (share * k / len(z)).clamp_min(LEAST_SHARE).log(), 1 / (1 + balance))
        if float((c - before).square().sum(dim=1).max()) < STILL:
            break
    return Mixture(c, b, _fit(z, c, temperature))


def _fit(z: Tensor, c: Tensor, temperature: float) -> float:
    """Mean over samples z (n, d) of log sum_k exp(z . c_k / temperature), for directions c (K, d)."""
    total = 0.0
    for x in torch.split(z, max(CHUNK // len(c), 1)):
        total += float((x @ c.T / temperature).logsumexp(dim=1).sum(dtype=torch.float64))
    return total / max(len(z), 1)
