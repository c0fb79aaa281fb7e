"""Time, disk space and accuracy of the three efforts, each from an empty cache.

    python benchmarks/studies/effort.py DATA --image-size 112 --weights FILE

DATA has a truth. FILE has the weights of the backbone, since the cache that usually holds them is empty here. `thorough` is what
`discover` did by default before there were efforts. Prints Markdown.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import newkind

EFFORTS = ("quick", "standard", "thorough")


def size_of(folder: Path) -> float:
    """Megabytes below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--efforts", nargs="+", default=list(EFFORTS), choices=EFFORTS)
    options = parser.parse_args()
    print("| effort | seconds | disk, MB | by name All / Old / New | matched All / Old / New |")
    print("| :--- | ---: | ---: | ---: | ---: |")
    for effort in options.efforts:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["NEWKIND_CACHE"] = str(Path(folder) / "cache")
            started = time.perf_counter()
            run = newkind.discover(
                options.data,
                Path(folder) / "run",
                effort=effort,
                image_size=options.image_size,
                weights=options.weights,
                report=False,
            )
            seconds = time.perf_counter() - started
            assert run.outcome is not None
            assert run.outcome.evaluation is not None
            scores = (run.outcome.evaluation.by_name, run.outcome.evaluation.accuracy)
            parts = [" / ".join(f"{100 * getattr(s, k):.1f}" for k in ("all", "old", "new")) for s in scores]
            disk = size_of(Path(folder) / "cache")
            print(f"| `{effort}` | {seconds:.0f} | {disk:,.1f} | {parts[0]} | {parts[1]} |", flush=True)


if __name__ == "__main__":
    main()
