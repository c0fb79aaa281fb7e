"""Accuracy of `modern` and of k-means on whole sets, with the true and with an estimated number of categories.

    python benchmarks/studies/all_sets.py cub.npz cub-lt.npz
    python benchmarks/studies/all_sets.py GROCERIES CLOTHING FASHION --image-size 112 --efforts quick standard

DATA is anything that `newkind discover` reads and that has a truth; ready features have no views, so their effort does not matter. Every run
is `newkind.discover` without training, seeds 0 to 2. k-means gets the same features, and the same number of categories. Prints Markdown:
mean ± standard deviation over the seeds, in %; and what the estimate costs by name, per seed.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import newkind
from newkind.evaluation import Accuracy

NAMES = {"kmeans": "k-means", "simgcd": "`modern`"}


@dataclass(frozen=True)
class Result:
    """Scores of one run."""

    n_categories: int
    named: Accuracy
    matched: Accuracy
    novelty: float | None
    calibration: float | None


def run(data: str, *, known: bool, seed: int, **options: Any) -> Result:
    """Discover once; the true number of categories is the default."""
    with tempfile.TemporaryDirectory() as folder:
        found = newkind.discover(
            data,
            Path(folder) / "run",
            n_categories=None if known else "auto",
            seed=seed,
            first_answer=False,
            report=False,
            **options,
        )
        assert found.outcome is not None
        scores = found.outcome.evaluation
        assert scores is not None
        assert scores.by_name is not None
        return Result(
            len(found.categories), scores.by_name, scores.accuracy, scores.novelty_auroc, scores.calibration_error
        )


def percent(scores: list[Accuracy]) -> str:
    """All with its standard deviation, Old and New."""
    rows = 100 * np.array([[s.all, s.old, s.new] for s in scores])
    spread = f" ± {rows[:, 0].std(ddof=1):.1f}" if len(rows) > 1 else ""
    return f"{rows[:, 0].mean():.1f}{spread} / {rows[:, 1].mean():.1f} / {rows[:, 2].mean():.1f}"


def cells(results: list[Result]) -> list[str]:
    """By name and matched All."""
    matched = 100 * float(np.mean([r.matched.all for r in results]))
    return [percent([r.named for r in results]), f"{matched:.1f}"]


def mean(values: list[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{np.mean(known):.3f}" if known else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--image-size", type=int)
    parser.add_argument("--efforts", nargs="+", default=["standard"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args()
    print(
        "| set | method | K known: by name All / Old / New | matched All | K estimated (auto): K | by name All / Old / New | "
        "matched All | cost of the estimate | novelty AUROC, calibration error (K known) |"
    )
    print("| :--- | :--- |" + " ---: |" * 7)
    for data in options.data:
        for effort in options.efforts:
            for method, name in NAMES.items():
                given = {"method": method, "effort": effort, "image_size": options.image_size}
                known = [run(data, known=True, seed=seed, **given) for seed in options.seeds]
                auto = [run(data, known=False, seed=seed, **given) for seed in options.seeds]
                costs = [100 * (k.named.all - a.named.all) for k, a in zip(known, auto, strict=True)]
                row = [Path(data).stem, f"{name}, {effort}", *cells(known)]
                row += [", ".join(str(a.n_categories) for a in auto), *cells(auto)]
                row += [", ".join(f"{cost:.1f}" for cost in costs)]
                row += [f"{mean([k.novelty for k in known])}, {mean([k.calibration for k in known])}"]
                print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
