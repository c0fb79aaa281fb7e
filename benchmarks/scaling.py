"""How the time to assign features grows with the number of samples N and of categories K.

The paper states O(N_u K d) for prototypes, and O(N^2 d + N K d t) for semi-supervised k-means with its seeding (t iterations). The
slope of log time over log N, with K fixed, and over log K, with N fixed, is the exponent. Three ways are measured on the same
generated vectors: the nearest prototype; semi-supervised k-means of Newkind; and, on the smaller sizes, a plain version of the
published algorithm, whose k-means++ computes the distances to all centres again for each centre that it draws. Both k-means have
one start of ten iterations.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional as F

from measure import best_seconds
from newkind.backbone.allocator import keep_large_blocks
from newkind.clustering import k_means
from semi_supervised_kmeans import distances, features, plain_seeds

DIM, ITERATIONS, BAR = 384, 10, 1.3
WAYS = ("prototypes", "k-means", "plain k-means")


@dataclass(frozen=True)
class Sizes:
    """Numbers of samples and of clusters of both sweeps, and the largest N * K * K for the plain version."""

    n: Sequence[int]
    k_of_n: int
    k: Sequence[int]
    n_of_k: int
    plain: float


FULL = Sizes(n=(5000, 10_000, 20_000, 40_000), k_of_n=100, k=(50, 100, 200, 400, 800), n_of_k=10_000, plain=4e8)
QUICK = Sizes(n=(1000, 2000, 4000), k_of_n=40, k=(20, 40, 80), n_of_k=2000, plain=1.3e7)


def measure(n: int, k: int, *, with_plain: bool, repeats: int) -> dict[str, float]:
    """Seconds of each way."""
    x, labels = features(n, DIM, k)
    prototypes, unlabelled = F.normalize(torch.randn(k, DIM)), x[labels < 0]

    def plain() -> None:
        centers = plain_seeds(x, labels, k, torch.Generator().manual_seed(0))
        for _ in range(ITERATIONS):
            found = torch.where(labels < 0, distances(x, centers).argmin(dim=1), labels)
            sums = torch.zeros_like(centers).index_add_(0, found, x)
            centers = sums / torch.bincount(found, minlength=k).clamp_min(1)[:, None]

    ways: dict[str, Callable[[], object]] = {
        "prototypes": lambda: (unlabelled @ prototypes.T).argmax(dim=1),
        "k-means": lambda: k_means(x, k, labels=labels, n_init=1, max_iter=ITERATIONS, tol=0.0),
    }
    if with_plain:
        ways["plain k-means"] = plain
    return {
        way: best_seconds(function, 1 if way == "plain k-means" else repeats, warm_up=way != "plain k-means")
        for way, function in ways.items()
    }


def slope(sizes: Sequence[int], seconds: Sequence[float | None]) -> float | None:
    """Slope of log time over log size; None with fewer than three measurements."""
    pairs = [(size, second) for size, second in zip(sizes, seconds, strict=True) if second is not None]
    if len(pairs) < 3:
        return None
    logs = np.log(np.array(pairs))
    return round(float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0]), 2)


def sweep(pairs: Sequence[tuple[int, int]], sizes: Sequence[int], *, plain: float, repeats: int) -> dict[str, float]:
    """Measure all pairs of N and K, print them, and the slope of each way over `sizes`."""
    rows = []
    for n, k in pairs:
        found = measure(n, k, with_plain=n * k * k <= plain, repeats=repeats)
        rows.append(found)
        cells = "".join(f"{1000 * found[way]:>13.1f} ms" if way in found else f"{'-':>16}" for way in WAYS)
        print(f"{n:>9,}{k:>7}{cells}{found['k-means'] / found['prototypes']:>13.0f}x", flush=True)
    slopes = {way: slope(sizes, [row.get(way) for row in rows]) for way in WAYS}
    print(f"{'slope':>16}" + "".join(f"{'-' if value is None else value:>16}" for value in slopes.values()) + "\n")
    return {way: value for way, value in slopes.items() if value is not None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="Use at most 4,000 samples and 80 clusters.")
    quick = parser.parse_args().quick
    sizes = QUICK if quick else FULL
    keep_large_blocks()
    print(f"{DIM} features, {ITERATIONS} iterations, {torch.get_num_threads()} threads\n")
    print(f"{'N':>9}{'K':>7}" + "".join(f"{way:>16}" for way in WAYS) + f"{'k-means/prot.':>14}")
    options = {"plain": sizes.plain, "repeats": 2 if quick else 3}
    over_n = sweep([(n, sizes.k_of_n) for n in sizes.n], sizes.n, **options)  # type: ignore[arg-type]
    over_k = sweep([(sizes.n_of_k, k) for k in sizes.k], sizes.k, **options)  # type: ignore[arg-type]
    value = over_n["k-means"]
    line = {"name": "scaling", "value": value, "bar": BAR, "ok": value <= BAR, "unit": "slope of k-means over N"}
    print(json.dumps({**line, "over_n": over_n, "over_k": over_k}))


if __name__ == "__main__":
    main()
