"""Categories as directions among unit vectors, with soft membership: a mixture whose parts are of about equal size.

A sample z (of unit length) belongs to category k with the probability

    q_k(z) = softmax_k(z . c_k / tau + b_k),        b_k = -balance * log(K * share_k),

where share_k is the mean of q_k over all samples; a labelled sample belongs to its class. A category's direction c_k is that
of the mean of z weighted by q_k. With balance = 0 this is k-means with soft membership; a large balance makes all categories
of one size. Hard membership leaves categories where their first seeds happened to fall; this does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from newkind.clustering.kmeans import k_means, known_first

__all__ = ["Mixture", "fit_mixture", "refine_mixture"]

LEAST_SHARE = 1e-3
"""Of the mean share: an empty category is drawn to samples no more than one of this size."""
CHUNK = 1 << 22
"""Memberships that are held at once."""
STILL = 1e-7
"""Squared: directions that move less than this have arrived."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """K categories of unit vectors."""

    directions: Tensor
    """(K, d), of unit length, known classes first."""
    offsets: Tensor
    """(K,): b. They shape the directions; a sample is read out without them, by the nearest direction."""
    fit: float
    """The mean of log sum_k exp(z . c_k / tau): the larger, the nearer samples are to categories."""


@torch.no_grad()
def fit_mixture(
    z: Tensor,
    n_categories: int,
    *,
    labels: Tensor,
    n_known: int,
    temperature: float,
    balance: float,
    n_iter: int,
    n_init: int,
    seed: int,
) -> Mixture:
    """The best fitting of `n_init` mixtures, each started from another k-means. z (n, d), labels (n,), -1 for unlabelled."""
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
    z: Tensor, directions: Tensor, *, labels: Tensor, temperature: float, balance: float, n_iter: int
) -> Mixture:
    """From directions (K, d), of any length, to where they come to rest (or to `n_iter` steps)."""
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
        # The step is small enough not to swing about the b that it aims at, however large the balance.
        b = b.lerp(-balance * (share * k / len(z)).clamp_min(LEAST_SHARE).log(), 1 / (1 + balance))
        if float((c - before).square().sum(dim=1).max()) < STILL:
            break
    return Mixture(c, b, _fit(z, c, temperature))


def _fit(z: Tensor, c: Tensor, temperature: float) -> float:
    total = 0.0
    for x in torch.split(z, max(CHUNK // len(c), 1)):
        total += float((x @ c.T / temperature).logsumexp(dim=1).sum(dtype=torch.float64))
    return total / max(len(z), 1)
