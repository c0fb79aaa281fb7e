"""Peak memory of `newkind predict` into a folder of parts: 100,000 small images against 10,000. It should not grow with their number."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

BAR = 1.05
N_FILES = 500  # Different images; the list names each of them many times.
TINY: dict[str, Any] = {"backbone": "vit_tiny_patch16_224", "random_weights": True, "image_size": 32, "device": "cpu"}


def make_run(root: Path) -> Path:
    """Write small images and a run of them."""
    import newkind

    rng = np.random.default_rng(0)
    for i in range(N_FILES):
        folder = root / "images" / ("unlabelled" if i % 3 else f"class{i % 2}")
        folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 120, (40, 40, 3)) + 60 * (i % 2)
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{i:04d}.jpg")
    newkind.discover(root / "images", root / "run", n_categories=4, effort="quick", report=False, **TINY)
    return root / "run"


def peak(run: Path, n: int) -> tuple[float, float]:
    """Gigabytes and seconds of a prediction of n images, in a process of its own."""
    names = [str(path) for path in sorted((run.parent / "images").rglob("*.jpg"))]
    listed, out = run.parent / f"{n}.txt", run.parent / f"parts-{n}"
    with open(listed, "w", encoding="utf-8") as file:
        file.writelines(f"{names[i % len(names)]}\n" for i in range(n))
    command = [sys.executable, "-m", "newkind", "predict", str(run), str(listed), "--out", f"{out}/", "--device", "cpu"]
    started = time.perf_counter()
    process = subprocess.Popen([*command, "--part-size", "2000"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status or len(list(out.glob("part-*.parquet"))) != -(-n // 2000):
        raise SystemExit(f"The prediction of {n:,} images failed with status {status}.")
    return usage.ru_maxrss / 1e6, time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="Use 2,000 and 8,000 images.")
    few, many = (2_000, 8_000) if parser.parse_args().quick else (10_000, 100_000)
    with tempfile.TemporaryDirectory() as folder:
        run = make_run(Path(folder))
        found = {n: peak(run, n) for n in (few, many)}
    print(f"{'images':>10}{'GB':>8}{'seconds':>10}")
    for n, (gigabytes, seconds) in found.items():
        print(f"{n:>10,}{gigabytes:>8.3f}{seconds:>10.1f}")
    value = found[many][0] / found[few][0]
    line = {"name": "predict_memory", "value": round(value, 3), "bar": BAR, "ok": value < BAR}
    more = {"gigabytes": {str(n): round(gigabytes, 3) for n, (gigabytes, _) in found.items()}}
    print(json.dumps({**line, "unit": "times the peak memory of a tenth of the images", **more}))


if __name__ == "__main__":
    main()
