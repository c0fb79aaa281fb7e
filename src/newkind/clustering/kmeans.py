"""k-means and semi-supervised k-means.

In semi-supervised k-means (Vaze et al., Generalized Category Discovery, 2022) labelled samples stay in their class and the
others go to the nearest centre. Known classes start at the means of their labelled samples; the other centres are drawn by
k-means++ from the unlabelled samples.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from newkind.clustering.lloyd import Sums, inertia, lloyd, nearest, sums_of
from newkind.clustering.rows import Rows, centred_rows
from newkind.clustering.seeding import plus_plus
from newkind.device import choose_device
from newkind.errors import ConfigError, DataError

__all__ = ["Clusters", "assign", "k_means", "known_first"]

Array = Tensor | NDArray[Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Clusters:
    """Result of k-means.

    Parameters
    ----------
    centers : tensor of shape (n_clusters, n_features)
        Cluster centres, known classes first.
    labels : tensor of int64, shape (n_samples,)
        The given label of a labelled sample, and the number of the nearest centre of any other.
    inertia : float
        Sum of squared distances of all samples to their centres.
    n_iter : int
        Number of iterations of the best restart.
    """

    centers: Tensor
    labels: Tensor
    inertia: float
    n_iter: int


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
    init: Array | None = None,
    seed: int | torch.Generator = 0,
    device: torch.device | str | None = None,
) -> Clusters:
    """Cluster samples by k-means, or by semi-supervised k-means if some are labelled.

    Parameters
    ----------
    x : tensor or ndarray of shape (n_samples, n_features)
        Features; also a memory map. They are read in chunks of rows, and more than 1 GiB of them is never copied.
    n_clusters : int
        Number of clusters, known classes included.
    labels : tensor or ndarray of int, shape (n_samples,), optional
        Class of each sample, 0 to `n_known` - 1, or -1 for unlabelled. Cluster i < `n_known` stays class i.
    n_known : int, optional
        Number of known classes. Default: the largest label plus 1. One without labelled samples is seeded like a new one.
    n_init : int, default=10
        Number of restarts; the one with the lowest inertia is returned.
    max_iter, tol : int and float, default=200 and 1e-4
        End of a restart: iterations, or squared shift of all centres as a multiple of the mean variance of the features.
    greedy : bool, optional
        Draw several candidates per centre and keep the best. Default: only if no sample is labelled.
    init : tensor or ndarray of shape (n_first, n_features), optional
        First centres to start from, at most `n_clusters`; the others are seeded.
    seed : int or torch.Generator, default=0
        Seed, or a generator on the CPU.
    device : torch.device or str, optional
        Where to compute, "auto" for a GPU if there is one. Default: where `x` is.

    Returns
    -------
    Clusters

    Raises
    ------
    DataError, ConfigError
        For features, labels, centres, settings or a device that cannot be used, or more clusters than samples.

    Examples
    --------
    >>> x = torch.tensor([[0.0], [1.0], [10.0], [11.0], [20.0], [21.0]])
    >>> found = k_means(x, 3, labels=torch.tensor([-1, -1, 0, -1, -1, -1]))  # sample 2 is labelled as class 0
    >>> found.labels.tolist()[2:4], round(found.inertia, 6)
    ([0, 0], 1.5)
    """
    rows = centred_rows(x, _device(x, device))
    _check(len(rows), n_clusters, n_init=n_init, max_iter=max_iter, tol=tol)
    samples = _Samples.of(rows, _known(labels, n_known, len(rows), n_clusters), n_clusters)
    starts = _starts(samples, init, n_restarts=n_init, greedy=greedy, seed=seed)
    return samples.best_clusters(starts, max_iter=max_iter, tol=tol)


@dataclass(frozen=True, eq=False)
class _Samples:
    """Samples of which some stay in their class.

    Parameters
    ----------
    rows : Rows
        All N samples.
    given : tensor of int64, shape (N,)
        Class of each sample, or -1 for unlabelled.
    free : Rows
        The unlabelled samples.
    fixed : Sums
        Sums and counts of the labelled samples of each of the K clusters.
    """

    rows: Rows
    given: Tensor
    free: Rows
    fixed: Sums

    @classmethod
    def of(cls, rows: Rows, labels: Tensor, n_clusters: int) -> _Samples:
        """Split all samples by their labels (N,)."""
        given = labels.to(rows.device)
        is_free = given < 0
        free = rows if is_free.all() else rows.subset(is_free.nonzero().squeeze(1))
        return cls(
            rows, given, free, sums_of(rows.subset((~is_free).nonzero().squeeze(1)), given[~is_free], n_clusters)
        )

    def best_clusters(self, starts: Tensor, *, max_iter: int, tol: float) -> Clusters:
        """The clusters with the lowest inertia, of one restart of k-means per start (R, K, d)."""
        rows = self.rows
        tolerance = tol * float(rows.squares.mean(dtype=torch.float64)) / rows.dim
        found = (self._clusters(start, max_iter, tolerance) for start in starts)
        best = min(found, key=lambda clusters: clusters.inertia)
        return replace(best, centers=(best.centers.double() + rows.shift).to(rows.shift.dtype))

    def _clusters(self, start: Tensor, max_iter: int, tolerance: float) -> Clusters:
        """One restart of k-means from centres (K, d)."""
        found = lloyd(self.free, self.fixed, start, max_iter=max_iter, tolerance=tolerance)
        labels = self.given.masked_scatter(self.given < 0, found.labels)
        cost = inertia(self.rows, found.centers, labels)
        return Clusters(centers=found.centers, labels=labels, inertia=cost, n_iter=found.n_iter)


def assign(x: Array, centers: Array, *, device: torch.device | str | None = None) -> tuple[Tensor, Tensor]:
    """Find the nearest centre of each sample.

    Parameters
    ----------
    x : tensor or ndarray of shape (n_samples, n_features)
        Features, as for `k_means`.
    centers : tensor or ndarray of shape (n_clusters, n_features)
        Cluster centres.
    device : torch.device or str, optional
        Where to compute. Default: where `x` is.

    Returns
    -------
    labels : tensor of int64, shape (n_samples,)
        Number of the nearest centre.
    distances : tensor of float32, shape (n_samples,)
        Squared distance to it.

    Raises
    ------
    DataError
        `centres-shape` if samples and centres have different numbers of features.

    Examples
    --------
    >>> import numpy as np
    >>> labels, distances = assign(np.array([[0.0], [4.0]]), np.array([[1.0], [5.0]]))
    >>> labels.tolist(), distances.tolist()
    ([0, 1], [1.0, 1.0])
    """
    device = _device(x, device)
    x = x if isinstance(x, Tensor) else np.asanyarray(x)
    to = _tensor(centers).to(device, torch.float64)
    if to.ndim != 2 or x.ndim != 2 or to.shape[1] != x.shape[1]:
        raise DataError(
            f"Centres (K, d) and samples (N, d) must have the same d; got shapes {tuple(to.shape)} and {tuple(x.shape)}.",
            code="centres-shape",
        )
    rows = centred_rows(x, device, shift=to.mean(dim=0))
    relative = (to - rows.shift).float()
    found = nearest(rows, relative)
    return found.labels, found.distances(rows, relative)


def known_first(clusters: Tensor, labels: Tensor, n_clusters: int, n_known: int) -> Tensor:
    """Order clusters so that cluster i < `n_known` is that of known class i, by the best matching of labelled samples.

    Parameters
    ----------
    clusters : tensor of int, shape (n_samples,)
        Cluster of each sample.
    labels : tensor of int, shape (n_samples,)
        Class of each sample, or -1 for unlabelled.
    n_clusters : int
        Number of clusters.
    n_known : int
        Number of known classes, at most `n_clusters`.

    Returns
    -------
    tensor of int64, shape (n_clusters,)
        Numbers of the clusters in the new order.

    Examples
    --------
    >>> known_first(torch.tensor([2, 2, 0, 1]), torch.tensor([0, 0, 1, -1]), n_clusters=3, n_known=2).tolist()
    [2, 0, 1]
    """
    given = (labels >= 0).cpu()
    pairs = labels.cpu()[given].numpy() * n_clusters + clusters.cpu()[given].numpy()
    counts = np.bincount(pairs, minlength=n_known * n_clusters).reshape(n_known, n_clusters)
    own = linear_sum_assignment(counts, maximize=True)[1]
    return torch.from_numpy(np.concatenate([own, np.setdiff1d(np.arange(n_clusters), own)]))


def _device(x: Array, device: torch.device | str | None) -> torch.device:
    """The device to compute on, checked."""
    if device is None:
        device = x.device if isinstance(x, Tensor) else "cpu"
    chosen = choose_device(device)
    return torch.device("cpu") if chosen.type == "mps" else chosen  # MPS has no float64


def _tensor(values: Array) -> Tensor:
    """A tensor, also of a read-only array."""
    return values.detach() if isinstance(values, Tensor) else torch.from_numpy(np.array(values))


def _known(labels: Array | None, n_known: int | None, n_samples: int, n_clusters: int) -> Tensor:
    """The given labels (N,) int64, checked; -1 everywhere if there are none."""
    if labels is None:
        given = torch.full((n_samples,), -1)
    else:
        given = _tensor(labels)
        if given.shape != (n_samples,) or given.is_floating_point() or given.is_complex() or given.dtype == torch.bool:
            raise DataError(
                f"`labels` must be one integer per sample, -1 for unlabelled; got {given.dtype} of shape "
                f"{tuple(given.shape)} for {n_samples} samples.",
                code="labels-shape",
            )
        given = given.to(torch.int64)
    smallest, largest = int(given.min()), int(given.max())
    if n_known is None:
        n_known = largest + 1
    if smallest < -1 or largest >= n_known:
        raise DataError(
            f"`labels` must be between -1 and {n_known - 1} for {n_known} known classes; got {smallest} to {largest}.",
            code="labels-range",
            n_known=n_known,
        )
    if n_clusters < n_known:
        raise DataError(
            f"`n_clusters` is {n_clusters}, fewer than the {n_known} known classes.",
            fix="Increase `n_clusters`.",
            code="fewer-clusters-than-classes",
            n_clusters=n_clusters,
            n_known=n_known,
        )
    return given


def _check(n_samples: int, n_clusters: int, *, n_init: int, max_iter: int, tol: float) -> None:
    """Raise for settings that cannot be used."""
    if not isinstance(n_clusters, int | np.integer) or not 1 <= n_clusters <= n_samples:
        raise DataError(
            f"`n_clusters` must be an integer between 1 and the number of samples, {n_samples}; got {n_clusters}.",
            code="n-clusters-range",
            n_clusters=n_clusters,
            n_samples=n_samples,
        )
    if n_init < 1 or max_iter < 1 or not tol >= 0:
        raise ConfigError(
            f"`n_init` and `max_iter` must be at least 1 and `tol` at least 0; got {n_init}, {max_iter} and {tol}.",
            code="kmeans-settings",
        )


def _starts(
    samples: _Samples, init: Array | None, *, n_restarts: int, greedy: bool | None, seed: int | torch.Generator
) -> Tensor:
    """Centres to start from, (R, K, d): those of `init`, then means of labelled classes, the others drawn from the rows."""
    rows, fixed = samples.free if len(samples.free) else samples.rows, samples.fixed
    greedy = len(samples.free) == len(samples.rows) if greedy is None else greedy
    generator = seed if isinstance(seed, torch.Generator) else torch.Generator().manual_seed(int(seed))
    n_clusters = len(fixed.counts)
    means = fixed.features / fixed.counts.clamp(min=1)[:, None]
    is_set = fixed.counts > 0  # (K,)
    if init is not None:
        first = _tensor(init).to(rows.device, torch.float64)
        if first.ndim != 2 or first.shape[1] != rows.dim or len(first) > n_clusters or not first.isfinite().all():
            raise DataError(
                f"`init` must hold at most {n_clusters} finite centres of {rows.dim} features; got shape "
                f"{tuple(first.shape)}.",
                code="init-unusable",
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
