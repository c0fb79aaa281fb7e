"""Which views of an image to average: the start of `modern` on means over several views, matched and by name.

    python benchmarks/studies/averaged_views.py VIEWS.npz ... --choices 0 0,1 0,2 0,2,3 0,1,2 0,1,2,3

Each VIEWS.npz has `views` (n_views, n, d), the evaluation view first, `labels` (-1 for unlabelled) and `truth`, known classes first.
Choices name the views to average. Cases: the labels as given (3 seeds), random splits (6), and random splits with class sizes that
fall to 1 : 10 (4). Prints Markdown: All by name, its standard deviation, and matched All.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from class_sizes import Problem, split, start_of_modern
from torch.nn import functional as F

from newkind.evaluation import accuracy, by_name

SEEDS, SPLITS, LONG_TAILED = 3, 6, 4


def problems(given: Problem) -> dict[str, list[Problem]]:
    """The cases of a set."""
    return {
        "as given": [replace(given, seed=seed) for seed in range(SEEDS)],
        "random splits": [split(given, seed=seed, long_tail=1.0) for seed in range(SPLITS)],
        "random splits, 1 : 10": [split(given, seed=seed, long_tail=10.0) for seed in range(LONG_TAILED)],
    }


def scores(case: list[Problem]) -> tuple[list[float], list[float]]:
    """All by name and matched All of each problem, in %."""
    named, matched = [], []
    for problem in case:
        free = (problem.labels < 0).numpy()
        truth, found = problem.truth[free], start_of_modern(problem)[free]
        is_old = truth < problem.n_known
        named.append(100 * by_name(truth, found, is_old, n_known=problem.n_known).all)
        matched.append(100 * accuracy(truth, found, is_old).all)
    return named, matched


def cell(case: list[Problem]) -> str:
    """All by name with its standard deviation, and matched All."""
    named, matched = scores(case)
    return f"{np.mean(named):.1f} ± {np.std(named):.1f} ({np.mean(matched):.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("views", type=Path, nargs="+")
    parser.add_argument("--choices", nargs="+", default=["0", "0,1", "0,2", "0,2,3", "0,1,2", "0,1,2,3"])
    options = parser.parse_args()
    print("| set | views | as given | random splits | random splits, 1 : 10 |\n| :--- | :--- | ---: | ---: | ---: |")
    for path in options.views:
        stored = np.load(path)
        views, labels, truth = stored["views"], stored["labels"], stored["truth"]
        for choice in options.choices:
            chosen = [int(number) for number in choice.split(",")]
            if max(chosen) < len(views):
                values = F.normalize(torch.from_numpy(views[chosen].astype(np.float32)), dim=2).mean(dim=0)
                given = Problem(
                    values=values, labels=torch.from_numpy(labels.astype(np.int64)), truth=truth.astype(np.int64)
                )
                cells = [cell(case) for case in problems(given).values()]
                print(f"| {path.stem} | {choice} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
