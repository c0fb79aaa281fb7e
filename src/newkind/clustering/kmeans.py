"""k-means and semi-supervised k-means: labelled samples stay in their class, the others go to the nearest centre.

Vaze et al., Generalized Category Discovery, 2022: known classes start at the means of their labelled samples, the other
centres are drawn by k-means++ from the unlabelled ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from newkind.clustering.capacity import capped
from newkind.clustering.lloyd import Sums, inertia, lloyd, nearest, sums_of
from newkind.clustering.rows import Rows, centred_rows
from newkind.clustering.seeding import plus_plus
from newkind.errors import ConfigError, DataError

__all__ = ["Clusters", "assign", "k_means", "known_first"]

Array = Tensor | NDArray[Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Clusters:
    """K clusters of N samples of d features."""

    centers: Tensor
    """(K, d), known classes first"""
    labels: Tensor
    """(N,) int64, a given label where there is one, else the nearest centre's number"""
    inertia: float
    """The sum of squared distances of all samples to their centres"""
    n_iter: int
    """Iterations of the best restart"""


def k_means(
    x: Array,
    n_clusters: int,
    *,
    labels: Array | None = None,
    n_known: int | None = None,
    n_init: int = 10,
    max_iter: int = 200,
    tol: float = 1e-4,
    greedy: bool | None = None,
    size_cap: float | None = None,
    init: Array | None = None,
    seed: int | torch.Generator = 0,
    device: torch.device | str | None = None,
) -> Clusters:
    """The best of `n_init` restarts, by inertia.

    x: (N, d), a tensor, an array or a memory map; it is worked on in chunks of rows, and more than 1 GiB of it is never
    copied. labels: (N,), -1 for unlabelled, else 0 ... n_known - 1; centre i < n_known stays class i. n_known: the largest
    label + 1 unless given; a known class that no sample is labelled with is seeded like a new one.
    tol: ends when the squared shift of the centres is at most tol times the features' mean variance.
    greedy: several candidates for each seed; unless given, only where no sample is labelled.
    size_cap: no cluster holds more than ceil(size_cap * N / K) samples, or its labelled ones if they are more.
    init: (K0, d), K0 <= K, centres to start with; the rest is seeded. seed: a number, or a generator on the CPU.
    device: where to compute; unless given, where x is.
    """
    device = _device(x, device)
    rows = centred_rows(x, device)
    _check(len(rows), n_clusters, n_init=n_init, max_iter=max_iter, tol=tol, size_cap=size_cap)
    given = _known(labels, n_known, len(rows), n_clusters).to(device)
    is_free = given < 0
    n_labelled = len(rows) - int(is_free.sum())
    free = rows.subset(is_free.nonzero().squeeze(1)) if n_labelled else rows
    fixed = sums_of(rows.subset((~is_free).nonzero().squeeze(1)), given[~is_free], n_clusters)
    starts = _starts(
        free if len(free) else rows,
        fixed,
        init,
        n_restarts=n_init,
        greedy=not n_labelled if greedy is None else greedy,
        generator=seed if isinstance(seed, torch.Generator) else torch.Generator().manual_seed(int(seed)),
    )
    tolerance = tol * float(rows.squares.mean(dtype=torch.float64)) / rows.dim
    limit = None
    if size_cap is not None:
        size = math.ceil(
            min(size_cap, n_clusters) * len(rows) / n_clusters - 1e-9
        )  # 1.1 * 100 / 10 is a little more than 11
        limit = capped((size - fixed.counts).clamp(min=0))

    def run(start: Tensor) -> Clusters:
        centers, found, n_iter = lloyd(free, fixed, start, max_iter=max_iter, tolerance=tolerance, assign=limit)
        everyone = given.masked_scatter(is_free, found)
        return Clusters(centers=centers, labels=everyone, inertia=inertia(rows, centers, everyone), n_iter=n_iter)

    best = min(map(run, starts), key=lambda clusters: clusters.inertia)
    return replace(best, centers=(best.centers.double() + rows.shift).to(rows.shift.dtype))


def _device(x: Array, device: torch.device | str | None) -> torch.device:
    if device is None:
        device = x.device if isinstance(x, Tensor) else "cpu"
    try:
        chosen = torch.zeros(1, device=device).device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"The device '{device}' cannot be used ({reason}).", fix="Take 'cpu'.") from None
    return torch.device("cpu") if chosen.type == "mps" else chosen  # which has no float64


def _tensor(values: Array) -> Tensor:
    """Also of an array that may not be written to."""
    return values.detach() if isinstance(values, Tensor) else torch.from_numpy(np.array(values))


def assign(x: Array, centers: Array, *, device: torch.device | str | None = None) -> tuple[Tensor, Tensor]:
    """The nearest centre of each sample, (N,) int64, and the squared distance to it, (N,) float32.

    x: (N, d), as for k_means. centers: (K, d).
    """
    device = _device(x, device)
    x = x if isinstance(x, Tensor) else np.asanyarray(x)
    to = _tensor(centers).to(device, torch.float64)
    if to.ndim != 2 or x.ndim != 2 or to.shape[1] != x.shape[1]:
        raise DataError(
            f"Centres (K, d) and samples (N, d) must have the same d; got {tuple(to.shape)} and {tuple(x.shape)}."
        )
    rows = centred_rows(x, device, shift=to.mean(dim=0))
    relative = (to - rows.shift).float()
    found = nearest(rows, relative)
    return found.labels, found.distances(rows, relative)


def _known(labels: Array | None, n_known: int | None, n_samples: int, n_clusters: int) -> Tensor:
    """The given labels (N,) int64, checked; -1 everywhere if there are none."""
    if labels is None:
        given = torch.full((n_samples,), -1)
    else:
        given = _tensor(labels)
        if given.shape != (n_samples,) or given.is_floating_point() or given.is_complex() or given.dtype == torch.bool:
            raise DataError(
                f"labels must be one whole number a sample, -1 for unlabelled; got {given.dtype} of shape "
                f"{tuple(given.shape)} for {n_samples} samples."
            )
        given = given.to(torch.int64)
    largest = int(given.max())
    if n_known is None:
        n_known = largest + 1
    if int(given.min()) < -1 or largest >= n_known:
        raise DataError(
            f"labels must lie between -1 and {n_known - 1} for {n_known} known classes; got {int(given.min())} to {largest}."
        )
    if n_clusters < n_known:
        raise DataError(
            f"{n_clusters} clusters are fewer than the {n_known} known classes.", fix="Ask for more clusters."
        )
    return given


def _check(n_samples: int, n_clusters: int, *, n_init: int, max_iter: int, tol: float, size_cap: float | None) -> None:
    if not isinstance(n_clusters, int | np.integer) or not 1 <= n_clusters <= n_samples:
        raise DataError(
            f"n_clusters must be a whole number between 1 and the number of samples, {n_samples}; got {n_clusters}."
        )
    if n_init < 1 or max_iter < 1 or not tol >= 0:
        raise ConfigError(
            f"n_init and max_iter must be 1 or more and tol 0 or more; got {n_init}, {max_iter} and {tol}."
        )
    if size_cap is not None and not size_cap >= 1:
        raise ConfigError(f"size_cap must be 1 (all clusters alike) or more; got {size_cap}.")


def _starts(
    rows: Rows,
    fixed: Sums,
    init: Array | None,
    *,
    n_restarts: int,
    greedy: bool,
    generator: torch.Generator,
) -> Tensor:
    """Centres to start with, (R, K, d): those of init, then labelled classes' means, the others drawn from the rows."""
    n_clusters = len(fixed.counts)
    means = fixed.features / fixed.counts.clamp(min=1)[:, None]
    is_set = fixed.counts > 0  # (K,)
    if init is not None:
        first = _tensor(init).to(rows.device, torch.float64)
        if first.ndim != 2 or first.shape[1] != rows.dim or len(first) > n_clusters or not first.isfinite().all():
            raise DataError(
                f"init must hold at most {n_clusters} finite centres of {rows.dim} features; got shape {tuple(first.shape)}."
            )
        means[: len(first)] = first - rows.shift
        is_set[: len(first)] = True
    means = means.float()
    if is_set.all():
        return means[None]
    drawn = plus_plus(
        rows, means[is_set], int((~is_set).sum()), n_restarts=n_restarts, greedy=greedy, generator=generator
    )
    starts = means.repeat(n_restarts, 1, 1)
    starts[:, ~is_set] = drawn
    return starts


def known_first(clusters: Tensor, labels: Tensor, n_clusters: int, n_known: int) -> Tensor:
    """(K,): an order of the clusters in which cluster i < n_known is that of known class i, by the best matching.

    clusters (n,): of each sample; labels (n,): -1 for unlabelled.
    """
    given = (labels >= 0).cpu()
    pairs = labels.cpu()[given].numpy() * n_clusters + clusters.cpu()[given].numpy()
    counts = np.bincount(pairs, minlength=n_known * n_clusters).reshape(n_known, n_clusters)
    own = linear_sum_assignment(counts, maximize=True)[1]
    return torch.from_numpy(np.concatenate([own, np.setdiff1d(np.arange(n_clusters), own)]))
