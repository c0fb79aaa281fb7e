"""Seconds for the accuracy of a million samples of a thousand classes, compared with the published code.

The published code adds the samples to the confusion matrix one by one in a Python loop; the matching is the same.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from newkind.evaluation import accuracy

N_SAMPLES, N_CLASSES, BAR = 1_000_000, 1_000, 1.0

Scores = tuple[float, float, float]


def ours(y_true: NDArray[Any], y_pred: NDArray[Any], is_old: NDArray[np.bool_]) -> Scores:
    result = accuracy(y_true, y_pred, is_old)
    return result.all, result.old, result.new


def plain(y_true: NDArray[Any], y_pred: NDArray[Any], is_old: NDArray[np.bool_]) -> Scores:
    size = int(max(y_true.max(), y_pred.max())) + 1
    matrix = np.zeros((size, size), dtype=int)
    for i in range(y_pred.size):
        matrix[y_pred[i], y_true[i]] += 1
    clusters, classes = linear_sum_assignment(matrix.max() - matrix)
    cluster_of = dict(zip(classes.tolist(), clusters.tolist(), strict=True))

    def share(chosen: set[int]) -> float:
        return float(sum(matrix[cluster_of[c], c] for c in chosen) / sum(matrix[:, c].sum() for c in chosen))

    old, new = set(y_true[is_old].tolist()), set(y_true[~is_old].tolist())
    return share(old | new), share(old), share(new)


def timed(score: Callable[[], Scores], repeats: int) -> tuple[float, Scores]:
    """Median of the seconds, and the scores."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        scores = score()
        seconds.append(time.perf_counter() - start)
    return median(seconds), scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="Run the plain version once instead of three times.")
    repeats = 1 if parser.parse_args().quick else 3
    rng = np.random.default_rng(0)
    print(f"{N_SAMPLES:,} samples, {N_CLASSES:,} classes\n")
    print(f"{'predictor':<12}{'accuracy':>9}{'ours, s':>10}{'plain, s':>10}{'ratio':>8}")
    slowest, ratio = 0.0, float("inf")
    for name, share_right in [("random", 0.0), ("half right", 0.5), ("all right", 1.0)]:
        y_true = rng.integers(0, N_CLASSES, N_SAMPLES)
        chance = rng.integers(0, N_CLASSES, N_SAMPLES)
        y_pred = rng.permutation(N_CLASSES)[np.where(rng.random(N_SAMPLES) < share_right, y_true, chance)]
        data = (y_true, y_pred, y_true < N_CLASSES // 2)
        seconds, result = timed(partial(ours, *data), 5)
        plain_seconds, expected = timed(partial(plain, *data), repeats)
        # Old and New may differ where two matchings are equally good; All may not.
        if abs(result[0] - expected[0]) > 1e-12:
            raise SystemExit(f"{name}: ours gives {result}, the plain version {expected}.")
        print(f"{name:<12}{result[0]:>9.4f}{seconds:>10.4f}{plain_seconds:>10.3f}{plain_seconds / seconds:>7.0f}x")
        slowest, ratio = max(slowest, seconds), min(ratio, plain_seconds / seconds)
    print("\nvalue: the slowest of ours; ratio: the smallest")
    line = {"name": "accuracy", "value": round(slowest, 4), "bar": BAR, "ok": slowest < BAR, "unit": "s"}
    print(json.dumps({**line, "ratio": round(ratio, 1)}))


if __name__ == "__main__":
    main()
