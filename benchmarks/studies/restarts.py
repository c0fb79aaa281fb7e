"""How many restarts of the mixture of `modern` are worth their time: accuracy by name, and how often the most likely mixture is missed.

    python benchmarks/studies/restarts.py VIEWS.npz ... --restarts 5 20 60 --views-averaged 0

Each VIEWS.npz is as for `averaged_views.py`; the named views are averaged. Cases: the labels as given (3 seeds), random splits (6), random
splits with class sizes that fall to 1 : 10 (4), and labelled images alone, some of whose classes play new ones (8). A mixture misses if
its mean log-likelihood is more than 0.001 below that of the largest number of restarts. Prints Markdown.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from averaged_views import problems
from class_sizes import Problem, split
from torch.nn import functional as F

from newkind.evaluation import by_name
from newkind.methods.frame import Frame, find_prototypes
from newkind.methods.modern import ModernConfig

HELD_OUT = 8
MISSED = 1e-3


@dataclass(frozen=True)
class Result:
    """All by name in %, mean log-likelihood, and seconds."""

    score: float
    fit: float
    seconds: float


def cases_of(given: Problem) -> dict[str, list[Problem]]:
    """Problems with the truth in sight, and of labelled images alone."""
    known = given.labels >= 0
    labels = given.labels[known]
    labelled = Problem(values=given.values[known], labels=labels, truth=labels.numpy())
    return problems(given) | {"held out": [split(labelled, seed=seed, long_tail=1.0) for seed in range(HELD_OUT)]}


def run(problem: Problem, restarts: int) -> Result:
    """The start of `modern` with so many restarts."""
    frame, k = Frame(problem.values.shape[1]), problem.n_categories
    started = time.perf_counter()
    found = find_prototypes(frame, problem.values, problem, ModernConfig(mixture_restarts=restarts), k)
    seconds = time.perf_counter() - started
    free = (problem.labels < 0).numpy()
    truth, best = problem.truth[free], (frame(problem.values) @ found.directions.T).argmax(dim=1).numpy()[free]
    score = by_name(truth, best, truth < problem.n_known, n_known=problem.n_known).all
    return Result(100 * score, found.fit, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("views", type=Path, nargs="+")
    parser.add_argument("--restarts", type=int, nargs="+", default=[5, 20, 60])
    parser.add_argument("--views-averaged", default="0", help="Numbers, with commas.")
    options = parser.parse_args()
    chosen = [int(number) for number in options.views_averaged.split(",")]
    rows: dict[int, list[Result]] = {n: [] for n in options.restarts}
    print("| set | case |" + "".join(f" {n} |" for n in options.restarts))
    print("| :--- | :--- |" + " ---: |" * len(options.restarts))
    for path in options.views:
        stored = np.load(path)
        values = F.normalize(torch.from_numpy(stored["views"][chosen].astype(np.float32)), dim=2).mean(dim=0)
        given = Problem(
            values=values,
            labels=torch.from_numpy(stored["labels"].astype(np.int64)),
            truth=stored["truth"].astype(np.int64),
        )
        for title, case in cases_of(given).items():
            cells = []
            for n, results in rows.items():
                found = [run(replace(problem), n) for problem in case]
                results += found
                cells.append(f"{np.mean([r.score for r in found]):.1f}")
            print(f"| {path.stem} | {title} | {' | '.join(cells)} |", flush=True)
    most = [r.fit for r in rows[max(rows)]]
    missed = [np.mean([m - r.fit > MISSED for r, m in zip(found, most, strict=True)]) for found in rows.values()]
    print("| mean | |" + "".join(f" {np.mean([r.score for r in found]):.1f} |" for found in rows.values()))
    print("| missed, % | |" + "".join(f" {100 * share:.0f} |" for share in missed))
    print("| seconds | |" + "".join(f" {np.mean([r.seconds for r in found]):.2f} |" for found in rows.values()))


if __name__ == "__main__":
    main()
