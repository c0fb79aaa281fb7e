"""Resident memory of k-means on features in a file: as many samples as ImageNet has images, a thousand clusters."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

BAR = 4.0
N_SAMPLES, DIM, N_CLUSTERS = 1_280_000, 768, 1000


def peak_gigabytes() -> float:
    """Peak resident memory of this process."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1e6


def write(path: Path, n: int) -> None:
    """Features (n, 768) float32 around a thousand centres."""
    rng = np.random.default_rng(0)
    file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, DIM))
    centers = rng.standard_normal((N_CLUSTERS, DIM), dtype=np.float32)
    for start in range(0, n, 10_000):
        size = min(10_000, n - start)
        noise = rng.standard_normal((size, DIM), dtype=np.float32)
        file[start : start + size] = centers[rng.integers(0, N_CLUSTERS, size)] + 2 * noise
    file.flush()


def cluster(path: Path) -> None:
    """Cluster the features; in its own process, because the peak is counted per process."""
    from newkind.clustering import rows
    from newkind.clustering.kmeans import k_means

    x = np.load(path, mmap_mode="r")
    rows.HOLD_BYTES = rows.HOLD_BYTES * len(x) // N_SAMPLES  # read a smaller file the way the large one is read
    start = time.perf_counter()
    found = k_means(x, N_CLUSTERS, n_init=1, max_iter=1)
    first = time.perf_counter() - start
    start = time.perf_counter()
    found = k_means(x, N_CLUSTERS, init=found.centers, max_iter=2, tol=0)
    passes = found.n_iter + 1  # one more pass for the labels at the end
    seconds = (time.perf_counter() - start) / passes
    print(json.dumps({"peak": peak_gigabytes(), "first": first, "iteration": seconds, "inertia": found.inertia}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="Use 100,000 samples.")
    parser.add_argument("--child", type=Path)
    arguments = parser.parse_args()
    if arguments.child:
        cluster(arguments.child)
        return
    n = 100_000 if arguments.quick else N_SAMPLES
    gigabytes = 4 * n * DIM / 1e9
    with tempfile.TemporaryDirectory() as folder:
        if shutil.disk_usage(folder).free < 1.1e9 * gigabytes:
            raise SystemExit(
                f"{folder} has no room for {gigabytes:.1f} GB of features. Set TMPDIR to a folder on another disk."
            )
        print(f"{n:,} samples of {DIM} features ({gigabytes:.1f} GB, in {folder}), {N_CLUSTERS:,} clusters")
        write(Path(folder) / "features.npy", n)
        command = [sys.executable, __file__, "--child", str(Path(folder) / "features.npy")]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result = json.loads(done.stdout.splitlines()[-1])
    print(f"{'peak resident memory':26}{result['peak']:>8.2f} GB")
    print(f"{'per iteration':26}{result['iteration'] / 60:>8.2f} min")
    print(f"{'seeds and one iteration':26}{result['first'] / 60:>8.2f} min")
    value = round(result["peak"], 2)
    line = {"name": "kmeans_memory", "value": value, "bar": BAR, "ok": value < BAR, "unit": "GB resident"}
    print(json.dumps({**line, "n": n, "minutes_per_iteration": round(result["iteration"] / 60, 3)}))


if __name__ == "__main__":
    main()
