"""How fast `newkind inspect` reads 10,000 photographs, against a plain loop that decodes each with Pillow in full."""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from newkind.data import read_folder
from newkind.data.inspection import inspect_collection
from newkind.progress import quiet


def make_photographs(root: Path, n: int) -> None:
    """JPEGs of 500 x 375 pixels with the smooth colours and the noise of a photograph; all different."""
    rng = np.random.default_rng(0)
    for i in range(n):
        folder = root / f"class{i % 10}"
        folder.mkdir(exist_ok=True)
        coarse = Image.fromarray(rng.integers(0, 255, (12, 16, 3), dtype=np.uint8)).resize(
            (500, 375), Image.Resampling.BICUBIC
        )
        noisy = np.asarray(coarse).astype(np.int16) + rng.integers(-8, 8, (375, 500, 1), dtype=np.int16)
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(folder / f"{i}.jpg", quality=90)


def plain(root: Path) -> None:
    for path in root.rglob("*.jpg"):
        hashlib.blake2b(path.read_bytes()).digest()
        with Image.open(path) as image:
            image.convert("RGB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    n = 1_000 if parser.parse_args().quick else 10_000
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        make_photographs(root, n)
        start = time.perf_counter()
        seen = inspect_collection(read_folder(root), advance=quiet)
        ours = time.perf_counter() - start
        start = time.perf_counter()
        plain(root)
        loop = time.perf_counter() - start
    assert seen.n_labelled == n
    print(f"{n:,} JPEGs of 500 x 375")
    print(f"newkind inspect   {ours:8.2f} s  {n / ours:8,.0f} images/s")
    print(f"plain loop        {loop:8.2f} s  {n / loop:8,.0f} images/s")
    ratio = round(loop / ours, 2)
    print(
        json.dumps(
            {"name": "inspect_images", "value": ratio, "bar": 2.0, "ok": ratio >= 2.0, "unit": "times the plain loop"}
        )
    )


if __name__ == "__main__":
    main()
