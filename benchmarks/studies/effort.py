"""Time, disk space and accuracy of the three efforts.

    python benchmarks/studies/effort.py DATA --image-size 112 --weights FILE
    python benchmarks/studies/effort.py DATA --image-size 112 --seeds 3 --cache FOLDER
    python benchmarks/studies/effort.py DATA --image-size 112 --seeds 3 --cache FOLDER --efforts thorough --patch-tokens 32
    python benchmarks/studies/effort.py DATA --image-size 112 --seeds 3 --cache FOLDER --efforts thorough --tuned-blocks 2

DATA has a truth. The first form times one run per effort, each from an empty cache; FILE has the weights of the backbone, since the
cache that usually holds them is empty here. The second form measures accuracy over seeds; runs share a cache, so it prints neither
time nor disk space. The third does so with merged tokens, the last one with two tuned blocks. What `discover` did by default before there were efforts is `--efforts
thorough --views 8 --epochs 40 --head-rate 0.1 --patch-tokens 0 --trunk-precision fp32 --no-first-answer`. Prints Markdown.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import newkind

EFFORTS = ("quick", "standard", "thorough")
TRAINING = ("views", "epochs", "patch_tokens", "tuned_blocks")
"""Settings of `thorough` that can be asked for."""


def size_of(folder: Path) -> float:
    """Megabytes below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def scores_of(data: str, out: Path, **settings: Any) -> list[float]:
    """All, Old and New by name, then matched, of one run, in percent."""
    run = newkind.discover(data, out, report=False, **settings)
    assert run.outcome is not None
    assert run.outcome.evaluation is not None
    scores = (run.outcome.evaluation.by_name, run.outcome.evaluation.accuracy)
    return [100 * getattr(score, part) for score in scores for part in ("all", "old", "new")]


def shown(runs: list[list[float]]) -> str:
    """Cells of by name and matched: means, and the standard deviation of All if there are several runs."""
    mean, spread = np.mean(runs, axis=0), np.std(runs, axis=0, ddof=1) if len(runs) > 1 else None
    cells = []
    for first in (0, 3):
        more = "" if spread is None else f" ± {spread[first]:.1f}"
        cells.append(f"{mean[first]:.1f}{more} / {mean[first + 1]:.1f} / {mean[first + 2]:.1f}")
    return " | ".join(cells)


def training_of(asked: argparse.Namespace, effort: str) -> dict[str, Any]:
    """Settings of `thorough` that were asked for."""
    if effort != "thorough":
        return {}
    given = {name: getattr(asked, name) for name in TRAINING}
    settings = {} if asked.head_rate is None else {"settings": {"head_rate": asked.head_rate}}
    return {name: value for name, value in given.items() if value is not None} | settings


def time_effort(asked: argparse.Namespace, effort: str) -> str:
    """Row of one run from an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NEWKIND_CACHE"] = str(Path(folder) / "cache")
        started = time.perf_counter()
        scores = scores_of(
            asked.data,
            Path(folder) / "run",
            effort=effort,
            image_size=asked.image_size,
            weights=asked.weights,
            trunk_precision=asked.trunk_precision,
            first_answer=not asked.no_first_answer,
            **training_of(asked, effort),
        )
        seconds = time.perf_counter() - started
        disk = size_of(Path(folder) / "cache")
    return f"| `{effort}` | {seconds:.0f} | {disk:,.1f} | {shown([scores])} |"


def score_effort(asked: argparse.Namespace, effort: str) -> str:
    """Row of several seeds on a cache that stays."""
    os.environ["NEWKIND_CACHE"] = str(asked.cache)
    with tempfile.TemporaryDirectory() as folder:
        runs = [
            scores_of(
                asked.data,
                Path(folder) / str(seed),
                effort=effort,
                image_size=asked.image_size,
                weights=asked.weights,
                trunk_precision=asked.trunk_precision,
                seed=seed,
                first_answer=False,
                **training_of(asked, effort),
            )
            for seed in range(asked.seeds)
        ]
    return f"| `{effort}` | – | – | {shown(runs)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--weights", help="Required without --cache.")
    parser.add_argument("--trunk-precision", default="auto", choices=("auto", "fp32", "bf16", "int8"))
    parser.add_argument("--efforts", nargs="+", default=list(EFFORTS), choices=EFFORTS)
    parser.add_argument("--cache", type=Path, help="Cache to use and keep; then accuracy is measured, not time.")
    parser.add_argument("--seeds", type=int, default=3)
    for name in TRAINING:
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, help="Of `thorough`.")
    parser.add_argument("--head-rate", type=float, help="Of `thorough`.")
    parser.add_argument("--no-first-answer", action="store_true", help="With a time, compute the final answer alone.")
    asked = parser.parse_args()
    print("| effort | seconds | disk, MB | by name All / Old / New | matched All / Old / New |")
    print("| :--- | ---: | ---: | ---: | ---: |")
    for effort in asked.efforts:
        print(time_effort(asked, effort) if asked.cache is None else score_effort(asked, effort), flush=True)


if __name__ == "__main__":
    main()
