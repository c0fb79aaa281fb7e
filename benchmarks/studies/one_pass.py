"""Which features of one pass are best: the start of `modern`, known K, matched and by name.

    python benchmarks/studies/one_pass.py FEATURES.npz ... --kinds "class" "class & windows" "class + mean patch"

Each FEATURES.npz comes from one_pass_features.py or trunk_features.py. `a & b` is the mean of two features, `a + b` puts one
beside the other, each of unit length. Cases: held out (labelled images alone; some known classes play new ones, 12 splits), the
labels as given (3 seeds), and random splits (6). Choose by the first case. Prints Markdown: the mean cosine of the features with
those of the first kind (unless their dimensions differ) and, per case, All by name, matched All in brackets, and the difference
by name from the first kind on the same splits with its standard error.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from averaged_views import scores
from class_sizes import Problem, split
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

HELD_OUT, SEEDS, SPLITS = 12, 3, 6


def features_of(kind: str, stored: Mapping[str, NDArray[Any]]) -> Tensor:
    """Features (n, d) of a kind, which may combine several."""
    beside = [part.strip() for part in kind.split(" + ")]
    if len(beside) > 1:
        return torch.cat([F.normalize(features_of(part, stored), dim=1) for part in beside], dim=1)
    return torch.stack([torch.from_numpy(stored[part.strip()]).float() for part in kind.split(" & ")]).mean(dim=0)


def problems(given: Problem) -> dict[str, list[Problem]]:
    """The cases of a set."""
    known = torch.nonzero(given.labels >= 0)[:, 0]
    labelled = replace(given, values=given.values[known], labels=given.labels[known], truth=given.labels[known].numpy())
    return {
        "held out": [split(labelled, seed=seed, long_tail=1.0) for seed in range(HELD_OUT)],
        "as given": [replace(given, seed=seed) for seed in range(SEEDS)],
        "random splits": [split(given, seed=seed, long_tail=1.0) for seed in range(SPLITS)],
    }


def cell(named: list[float], matched: list[float], first: list[float]) -> str:
    """All by name, matched All, and the paired difference by name from the first kind with its standard error."""
    difference = np.subtract(named, first)
    error = difference.std(ddof=1) / len(difference) ** 0.5
    return f"{np.mean(named):.1f} ({np.mean(matched):.1f}) {difference.mean():+.1f} ± {error:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path, nargs="+")
    parser.add_argument("--kinds", nargs="+", default=["class"])
    options = parser.parse_args()
    print("| set | features | cosine | held out | as given | random splits |")
    print("| :--- | :--- | ---: | ---: | ---: | ---: |")
    for path in options.features:
        stored = np.load(path)
        labels, truth = torch.from_numpy(stored["labels"].astype(np.int64)), stored["truth"].astype(np.int64)
        base = features_of(options.kinds[0], stored)
        first: dict[str, list[float]] = {}
        for kind in options.kinds:
            values, cells = features_of(kind, stored), []
            cosine = f"{float(F.cosine_similarity(values, base).mean()):.4f}" if values.shape == base.shape else ""
            for title, case in problems(Problem(values=values, labels=labels, truth=truth)).items():
                named, matched = scores(case)
                cells.append(cell(named, matched, first.setdefault(title, named)))
            print(f"| {path.stem} | {kind} | {cosine} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
