"""Report: time and size for a run of the size of CUB, and memory for a run of 100,000 images.

The images are synthetic: noise at several scales, which takes about as many bytes as photographs do.
"""

from __future__ import annotations

import argparse
import io
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from newkind.evaluation import evaluate
from newkind.runs.assignments import Assignment, Category, assignments_csv, category_rows
from newkind.runs.run import Run

BAR_SECONDS, BAR_BYTES, BAR_GIGABYTES = 60.0, 15e6, 2.0
N_PICTURES = 400  # Different images; each is used for several files.
DIM = 384


def paint(width: int, height: int) -> list[bytes]:
    """Make JPEGs with detail at every scale."""
    rng = np.random.default_rng(0)
    made = []
    for _ in range(N_PICTURES):
        pixels = 60 * rng.normal(size=(height, width, 3))
        for step in (8, 16, 32, 64, 128):
            coarse = rng.normal(size=(height // step + 2, width // step + 2, 3))
            layer = Image.fromarray(((coarse - coarse.min()) / np.ptp(coarse) * 255).astype(np.uint8))
            pixels += np.asarray(layer.resize((width, height), Image.Resampling.BICUBIC), dtype=np.float64) * step**0.5
        content = io.BytesIO()
        Image.fromarray(((pixels - pixels.min()) / np.ptp(pixels) * 255).astype(np.uint8)).save(
            content, "jpeg", quality=88
        )
        made.append(content.getvalue())
    return made


def make_run(folder: Path, n: int, n_categories: int) -> Run:
    """Write a run of n images: half of the categories known, a quarter of the images labelled, with truth and features."""
    rng = np.random.default_rng(1)
    painted = paint(500, 375) if n < 50_000 else paint(200, 150)
    names = [f"class-{k:03d}/image_{i:06d}.jpg" for i, k in enumerate(rng.integers(0, n_categories, n))]
    for i, name in enumerate(names):
        path = folder / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(painted[i % N_PICTURES] + f"{i}".encode() * (1 + i % 40))  # no duplicates
    true = np.array([int(name[6:9]) for name in names])
    n_known = n_categories // 2
    labelled = (true < n_known) & (rng.random(n) < 0.5)
    best = np.where(~labelled & (rng.random(n) < 0.25), rng.integers(0, n_categories, n), true)
    categories = [
        Category(
            f"class-{k:03d}" if k < n_known else f"new-{k - n_known:03d}",
            "known" if k < n_known else "new",
            k,
            int((~labelled & (best == k)).sum()),
            0.8,
        )
        for k in range(n_categories)
    ]
    confidence = rng.beta(6, 2, n)
    second = rng.integers(0, n_categories, n)
    lines = [
        Assignment(
            names[i],
            categories[best[i]].name,
            "labelled" if labelled[i] else categories[best[i]].status,
            float(confidence[i]),
            categories[second[i]].name,
            float((1 - confidence[i]) * 0.9),
        )
        for i in range(n)
    ]
    run = Run(folder / "run")
    run.folder.mkdir()
    run.write_config({"data": str(folder / "data"), "root": str(folder / "data"), "fingerprint": "x", "config": {}})
    run.write_json(run.categories_file, category_rows(categories))
    run.write_json(run.environment_file, {})
    for epoch in range(1, 201):
        run.append_metrics({"epoch": epoch, **{f"loss/{part}": 5.0 / epoch for part in "abcdef"}, "seconds": 1.0})
    free = ~labelled
    run.write_json(run.scores_file, evaluate(true[free], best[free], true[free] < n_known).to_dict())
    centres = rng.normal(size=(n_categories, DIM)).astype(np.float32)
    run.write_features(centres[best] + 1.5 * rng.standard_normal((n, DIM), dtype=np.float32))
    run.write_text(run.assignments_file, assignments_csv(lines))
    return run


def report(folder: Path) -> None:
    """Write the report and print time, size and peak memory; in a process of its own, because the peak is per process."""
    from newkind.report.write import write_report

    start = time.perf_counter()
    written = write_report(Run.open(folder))
    status = Path("/proc/self/status").read_text().splitlines()
    peak = int(next(line for line in status if line.startswith("VmHWM")).split()[1]) / 1e6
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "bytes": written.stat().st_size, "peak": peak}))


def measure(n: int, n_categories: int) -> dict[str, float]:
    """Time, size and memory of the report of a run."""
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(Path(folder), n, n_categories)
        command = [sys.executable, __file__, "--child", str(run.folder)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(
        f"{n:>10,}{n_categories:>12,}{found['seconds']:>9.1f} s{found['bytes'] / 1e6:>9.1f} MB{found['peak']:>9.2f} GB"
    )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="Use a tenth of the images.")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        report(arguments.child)
        return
    print(f"{'images':>10}{'categories':>12}{'report':>11}{'size':>12}{'memory':>12}")
    part = 10 if arguments.quick else 1
    cub = measure(6000 // part, 200 // part)
    large = measure(100_000 // part, 1000 // part)
    ok = (
        cub["seconds"] < BAR_SECONDS and max(cub["bytes"], large["bytes"]) < BAR_BYTES and large["peak"] < BAR_GIGABYTES
    )
    line = {
        "name": "report",
        "value": round(cub["seconds"], 1),
        "bar": BAR_SECONDS,
        "ok": ok,
        "unit": "seconds for 6,000 images",
    }
    more = {
        "megabytes": round(cub["bytes"] / 1e6, 2),
        "bar_megabytes": BAR_BYTES / 1e6,
        "megabytes_100k": round(large["bytes"] / 1e6, 2),
        "gigabytes_100k": round(large["peak"], 2),
        "bar_gigabytes": BAR_GIGABYTES,
        "seconds_100k": round(large["seconds"], 1),
    }
    print(json.dumps(line | more))


if __name__ == "__main__":
    main()
