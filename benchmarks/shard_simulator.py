"""How long many workers take for a division into parts, with stragglers and failures: a simulation, not a measurement.

Each worker has a speed of its own (log-normal), some are several times slower, and workers fail at random and come back after a while. Two
ways to divide the work are compared: *fixed*, where worker I of N computes the parts I, I + N, ... (`--shard I/N`), and *queue*, where a free
worker takes the next part (as Ray or a Slurm array with more tasks than machines does). A failed worker repeats what it had not yet
written: at most one part. The value is the time relative to N equal workers that never fail. It also prints the plan of docs/scale.md.
"""

from __future__ import annotations

import argparse
import heapq
import json
from dataclasses import dataclass

import numpy as np

BAR = 1.25
MEASURED = {112: 52.0, 224: 14.0}
"""Views per second of ViT-S/14 on two cores, at each image size (pixels), from reading the file to writing the feature: two views of each image
divided by the difference in time of `standard` and `quick` in results/effort.md (groceries, clothing and Fashion-MNIST 52 to 53; CUB 14)."""
GPU_TIMES = 150.0
"""Assumed views per second of a GPU, as a multiple of two cores. Nothing was measured on a GPU."""
CORE_PRICE, GPU_PRICE = 0.02, 1.0
"""Assumed prices per core-hour and GPU-hour, in US dollars."""
FEATURE_BYTES, TOKEN_BYTES = 384 * 4, {112: 64 * 384 * 2, 224: 256 * 384 * 2}
"""Bytes per view: of a feature, and of the patch tokens of 112 and 224 pixels in half precision."""
IMAGE_BYTES = 100_000
"""Assumed size of an image file."""
VIEWS = {"quick": 1, "standard": 3, "thorough": 5}


@dataclass(frozen=True)
class Fleet:
    """Workers of a simulation.

    Parameters
    ----------
    n_workers, n_parts : int
        Number of workers, and of parts of equal work.
    part_hours : float
        Hours that a worker of speed 1 needs for a part.
    spread : float
        Standard deviation of the logarithm of the speeds.
    slow_share, slow_factor : float
        Share of stragglers, and how many times slower they are.
    hours_between_failures, hours_to_return : float
        Mean time to a failure of one worker, and the time until it is back.
    """

    n_workers: int
    n_parts: int
    part_hours: float
    spread: float = 0.1
    slow_share: float = 0.02
    slow_factor: float = 3.0
    hours_between_failures: float = 100.0
    hours_to_return: float = 0.25

    @property
    def ideal_hours(self) -> float:
        """Hours of equal workers that never fail and share the work evenly."""
        return self.n_parts * self.part_hours / self.n_workers


def part_duration(fleet: Fleet, speed: float, rng: np.random.Generator) -> float:
    """Hours until a worker has written a part, with failures, each of which loses the unfinished part."""
    needed, total = fleet.part_hours / speed, 0.0
    while (until_failure := rng.exponential(fleet.hours_between_failures)) < needed:
        total += until_failure + fleet.hours_to_return
    return total + needed


def simulate(fleet: Fleet, *, queue: bool, seed: int) -> float:
    """Hours until all parts are written."""
    rng = np.random.default_rng(seed)
    speeds = np.exp(rng.normal(0, fleet.spread, fleet.n_workers))
    speeds[rng.random(fleet.n_workers) < fleet.slow_share] /= fleet.slow_factor
    if not queue:
        own = [len(range(i, fleet.n_parts, fleet.n_workers)) for i in range(fleet.n_workers)]
        return max(sum(part_duration(fleet, s, rng) for _ in range(n)) for s, n in zip(speeds, own, strict=True))
    free = [(0.0, i) for i in range(fleet.n_workers)]
    last = 0.0
    for _ in range(fleet.n_parts):
        at, worker = heapq.heappop(free)
        end = at + part_duration(fleet, float(speeds[worker]), rng)
        last = max(last, end)
        heapq.heappush(free, (end, worker))
    return last


def relative(fleet: Fleet, *, queue: bool, n_times: int) -> float:
    """Mean time relative to the ideal one."""
    return float(np.mean([simulate(fleet, queue=queue, seed=i) for i in range(n_times)])) / fleet.ideal_hours


def print_plan() -> None:
    """Print the plan: views, time, disk and money for each effort, image size and number of images."""
    print(
        f"\n{'images':>12}{'px':>5} {'effort':<9}{'core-h':>12}{'GPU-h':>9}{'stored TB':>11}{'read TB':>9}{'$ CPU':>11}{'$ GPU':>9}"
    )
    for n in (1_000_000, 10_000_000, 100_000_000):
        for size, rate in MEASURED.items():
            for effort, views in VIEWS.items():
                hours = n * views / rate / 3600  # of two cores
                each = TOKEN_BYTES[size] + FEATURE_BYTES if effort == "thorough" else FEATURE_BYTES
                core_hours, gpu_hours = 2 * hours, hours / GPU_TIMES
                print(
                    f"{n:>12,}{size:>5} {effort:<9}{core_hours:>12,.0f}{gpu_hours:>9,.1f}{n * views * each / 1e12:>11.2f}"
                    f"{n * IMAGE_BYTES / 1e12:>9.1f}{core_hours * CORE_PRICE:>11,.0f}{gpu_hours * GPU_PRICE:>9,.0f}"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="Repeat each simulation 3 times instead of 20.")
    n_times = 3 if parser.parse_args().quick else 20
    calm = Fleet(64, 64 * 10, 0.5, spread=0.0, slow_share=0.0, hours_between_failures=1e12)
    assert abs(relative(calm, queue=False, n_times=1) - 1) < 1e-9
    assert abs(relative(calm, queue=True, n_times=1) - 1) < 1e-9
    print(
        "Time relative to equal workers that never fail (simulated; 2 % stragglers, a failure per worker and 100 hours)"
    )
    print(f"{'workers':>8}{'parts per worker':>18}{'part, hours':>13}{'fixed':>8}{'queue':>8}")
    worst = 0.0
    for n_workers in (16, 256):
        for per_worker, part_hours in ((4, 5.0), (40, 0.5), (400, 0.05)):
            fleet = Fleet(n_workers, n_workers * per_worker, part_hours)
            fixed, queue = (relative(fleet, queue=way, n_times=n_times) for way in (False, True))
            print(f"{n_workers:>8}{per_worker:>18}{part_hours:>13}{fixed:>8.2f}{queue:>8.2f}")
            worst = max(worst, queue) if per_worker == 400 else worst
    print_plan()
    line = {"name": "shard_simulator", "value": round(worst, 3), "bar": BAR, "ok": worst < BAR}
    print(json.dumps({**line, "unit": "times the ideal time, with a queue of small parts (simulated)"}))


if __name__ == "__main__":
    main()
