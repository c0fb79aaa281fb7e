"""Timing functions of several benchmarks."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

__all__ = ["best_seconds", "peak_flops"]


def best_seconds(function: Callable[[], object], repeats: int, *, warm_up: bool = True) -> float:
    """Seconds of the fastest of `repeats` calls, which other work on the machine disturbs least."""
    if warm_up:
        function()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def peak_flops(repeats: int = 5, size: int = 4096) -> float:
    """FLOP/s of a large fp32 matrix product, the machine's peak."""
    a, b = torch.randn(size, size), torch.randn(size, size)
    out = torch.empty(size, size)
    return 2 * size**3 / best_seconds(lambda: torch.mm(a, b, out=out), repeats)
