"""`newkind discover` on a million ready features with an unknown number of categories: minutes, memory, and cost per image.

The features are generated with a known truth: 1,000 classes of a long-tailed distribution (32,000 to 190 images), in groups of similar
classes, 384 dimensions. Half of the classes are known, and two fifths of their images are labelled. The same command is run on a tenth of
the images, to see whether the cost per image grows.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

DIM, PART = 384, 50_000
BAR_MINUTES, BAR_GIGABYTES, BAR_GROWTH = 15.0, 6.0, 1.2
LABELLED, NUISANCE = 0.4, 48


@dataclass(frozen=True)
class Cost:
    """What one run took, and what it found."""

    n: int
    seconds: float
    cpu_seconds: float
    gigabytes: float
    estimate: int
    accuracy: dict[str, float]

    @property
    def per_image(self) -> float:
        """Milliseconds per image."""
        return 1e3 * self.seconds / self.n


def class_sizes(n: int, k: int) -> NDArray[np.int64]:
    """Sizes (k,) that fall with the rank as 1 / (rank + 5) and add up to n."""
    share = 1 / (np.arange(k) + 6)
    sizes: NDArray[np.int64] = np.maximum((n * share / share.sum()).astype(np.int64), 2)
    sizes[0] += n - sizes.sum()
    return sizes


def write(folder: Path, n: int, k: int) -> None:
    """Write features.npy (n, 384) and table.csv with the columns label and truth."""
    rng = np.random.default_rng(0)
    groups, own = rng.standard_normal((k // 10, DIM)), rng.standard_normal((k, DIM))
    centers = (0.8 * groups[np.arange(k) % (k // 10)] + 0.6 * own) / DIM**0.5
    directions = np.linalg.qr(rng.standard_normal((DIM, NUISANCE)))[0].T  # what classes do not differ in
    truth = rng.permutation(np.repeat(np.arange(k), class_sizes(n, k)))
    is_known = rng.permutation(k) < k // 2
    features = np.lib.format.open_memmap(folder / "features.npy", mode="w+", dtype=np.float32, shape=(n, DIM))
    with open(folder / "table.csv", "w", encoding="utf-8") as table:
        table.write("label,truth\n")
        for start in range(0, n, PART):
            y = truth[start : start + PART]
            within = rng.standard_normal((len(y), NUISANCE), dtype=np.float32) @ directions * (0.9 / NUISANCE**0.5)
            noise = rng.standard_normal((len(y), DIM), dtype=np.float32) * (0.8 / DIM**0.5)
            features[start : start + PART] = centers[y] + within + noise
            is_given = is_known[y] & (rng.random(len(y)) < LABELLED)
            table.writelines(f"{f'c{c}' if given else ''},c{c}\n" for c, given in zip(y, is_given, strict=True))
    features.flush()


def measure(folder: Path, n: int, k: int) -> Cost:
    """Run the command on n generated features, in a process of its own."""
    folder.mkdir()
    write(folder, n, k)
    arguments = [str(folder / "features.npy"), "--labels", str(folder / "table.csv"), "--n-categories", "auto"]
    command = [sys.executable, "-m", "newkind", "discover", *arguments, "--out", str(folder / "run")]
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - started
    if status or not (folder / "run" / "report.html").exists():
        raise SystemExit(f"The run of {n:,} features failed with status {status}.")
    scores = json.loads((folder / "run" / "scores.json").read_text())
    estimate = json.loads((folder / "run" / "estimate-k.json").read_text())
    shutil.rmtree(folder)
    found = {name: round(float(value), 4) for name, value in scores["accuracy"].items()}
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(n, seconds, cpu, usage.ru_maxrss / 1e6, int(estimate["n_categories"]), found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="Use 2,000 and 20,000 features of 50 classes.")
    parser.add_argument("--sizes", type=int, nargs="+", help="Other numbers of features.")
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--keep", type=Path, help="Only write the data of the first size to this folder.")
    arguments = parser.parse_args()
    sizes, k = ((2_000, 20_000), 50) if arguments.quick else ((100_000, 1_000_000), arguments.classes)
    sizes = tuple(arguments.sizes or sizes)
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
        write(arguments.keep, sizes[0], k)
        return
    print(f"{k:,} classes, {k // 2:,} known; the number of categories is estimated")
    print(f"{'images':>10}{'minutes':>9}{'CPU min':>9}{'GB':>7}{'ms/image':>10}{'categories':>12}{'accuracy':>10}")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for n in sizes:
            cost = measure(Path(folder) / str(n), n, k)
            print(
                f"{n:>10,}{cost.seconds / 60:>9.2f}{cost.cpu_seconds / 60:>9.2f}{cost.gigabytes:>7.2f}"
                f"{cost.per_image:>10.3f}{cost.estimate:>12,}{cost.accuracy['all']:>10.3f}",
                flush=True,
            )
            found.append(cost)
    last = found[-1]
    minutes, growth = last.seconds / 60, last.per_image / found[0].per_image
    is_met = minutes < BAR_MINUTES and last.gigabytes < BAR_GIGABYTES and growth < BAR_GROWTH
    line = {"name": "million", "value": round(minutes, 2), "bar": BAR_MINUTES, "ok": is_met, "unit": "minutes"}
    more = {"n": last.n, "gigabytes": round(last.gigabytes, 2), "growth_per_image": round(growth, 3)}
    print(json.dumps({**line, **more, "n_categories": last.estimate, "accuracy": last.accuracy}))


if __name__ == "__main__":
    main()
