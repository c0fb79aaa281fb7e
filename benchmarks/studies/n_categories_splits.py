"""Estimated numbers of categories on random splits of feature sets: error, and how often the interval holds.

    python benchmarks/studies/n_categories_splits.py FEATURES.npz ... --seeds 10 11 12 --cost

Each FEATURES.npz has `features` (n, d), `labels` and `truth`; only the truth is used. Every seed draws several splits of each
set: half of the classes known, with sizes as they are and falling to 1 : 10; 70 % known with 30 % of their images labelled; 40 %
known. Sets of more than 50 classes are also reduced to 20, 37, 60 and 100 classes. With --edges, splits
are those in which few or nearly all classes are known instead. With --cost, the start of `modern` is also fitted with
the true and with the estimated number: the cost is the difference of All by name. Prints Markdown, and every split to stderr.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from class_sizes import Problem, read, start_of_modern

from newkind.clustering import Estimate, estimate_n_categories
from newkind.evaluation import by_name

TOLERANCE = 0.15


@dataclass(frozen=True)
class Split:
    """How a problem is drawn: classes (None for all), share of known ones, share of their images labelled, 1 : tail sizes."""

    n_classes: int | None = None
    known: float = 0.5
    labelled: float = 0.5
    tail: float = 1.0

    def __str__(self) -> str:
        return f"{self.n_classes or 'all'} classes, known {self.known}, labelled {self.labelled}, 1 : {self.tail:g}"


@dataclass(frozen=True)
class Answer:
    """An estimate and the truth."""

    name: str
    split: Split
    truth: int
    found: Estimate
    cost: float = float("nan")
    """All by name with the true number minus that with the estimated one, in points."""

    @property
    def is_near(self) -> bool:
        return abs(self.found.n_categories / self.truth - 1) <= TOLERANCE

    @property
    def holds(self) -> bool:
        return self.found.low <= self.truth <= self.found.high


FEW = (Split(), Split(tail=10), Split(known=0.7, labelled=0.3), Split(known=0.4))
MANY = (
    *(Split(n_classes=n, tail=tail) for n in (20, 37, 100) for tail in (1, 10)),
    Split(n_classes=60, known=0.3),
    Split(n_classes=60, known=0.7, labelled=0.3, tail=3),
    Split(),
)
EDGES = (
    *(Split(n_classes=20, known=known, tail=tail) for known in (0.15, 0.9) for tail in (1, 10)),
    Split(n_classes=50, tail=10),
    Split(n_classes=50, known=0.2),
    Split(known=0.9),
)
FEW_EDGES = (Split(known=0.3), Split(known=0.9), Split(known=0.3, tail=10), Split(known=0.9, tail=10))


def splits_of(problem: Problem, *, edges: bool) -> tuple[Split, ...]:
    """The splits of a set: the usual ones, or those with few or nearly all classes known."""
    if problem.n_categories > 50:
        return EDGES if edges else MANY
    return FEW_EDGES if edges else FEW


def draw(problem: Problem, split: Split, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Chosen rows, their labels (-1 for unlabelled) and classes, known classes first, in random order."""
    rng = np.random.default_rng(seed)
    classes = rng.permutation(problem.n_categories)[: split.n_classes]
    n_known = max(round(split.known * len(classes)), 3)
    factors = np.geomspace(1, 1 / split.tail, len(classes))[rng.permutation(len(classes))]
    rows, labels, truth = [], [], []
    for new, old in enumerate(classes):
        mine = rng.permutation(np.flatnonzero(problem.truth == old))
        mine = mine[: max(round(factors[new] * len(mine)), 3)]
        n_labelled = max(round(split.labelled * len(mine)), 2) if new < n_known else 0
        rows.append(mine)
        labels.append(np.where(np.arange(len(mine)) < n_labelled, new, -1))
        truth.append(np.full(len(mine), new))
    order = rng.permutation(sum(map(len, rows)))
    return np.concatenate(rows)[order], np.concatenate(labels)[order], np.concatenate(truth)[order]


def named(problem: Problem, n_categories: int) -> float:
    """All by name of the start of `modern`, in %."""
    free = (problem.labels < 0).numpy()
    truth, found = problem.truth[free], start_of_modern(problem, n_categories)[free]
    return 100 * by_name(truth, found, truth < problem.n_known, n_known=problem.n_known).all


def answers(paths: Iterable[Path], seeds: Iterable[int], *, edges: bool, with_cost: bool) -> Iterator[Answer]:
    """Estimates of all splits; each is printed to stderr."""
    for path in paths:
        problem = read(path)
        for seed in seeds:
            for i, split in enumerate(splits_of(problem, edges=edges)):
                rows, labels, truth = draw(problem, split, 1000 * i + seed)
                found = estimate_n_categories(problem.values[rows], labels, n_known=int(labels.max()) + 1)
                answer = Answer(path.stem, split, int(truth.max()) + 1, found)
                if with_cost:
                    drawn = Problem(values=problem.values[rows], labels=torch.from_numpy(labels), truth=truth)
                    answer = replace(answer, cost=named(drawn, answer.truth) - named(drawn, found.n_categories))
                print(
                    f"{path.stem}, {split}, seed {seed}: {found.n_categories} [{found.low}, {found.high}] of {answer.truth}, "
                    f"F1 {found.quality:.2f}, {found.way}, cost {answer.cost:.1f}",
                    file=sys.stderr,
                    flush=True,
                )
                yield answer


def row(name: str, group: list[Answer]) -> str:
    """A row of the table."""
    errors = np.log([a.found.n_categories / a.truth for a in group])
    width = np.median([a.found.high / a.found.low for a in group])
    cells = [
        name,
        str(len(group)),
        f"{np.mean([a.is_near for a in group]):.2f}",
        f"{np.mean([a.holds for a in group]):.2f}",
        f"{errors.mean():+.2f}",
        f"{np.sqrt((errors**2).mean()):.2f}",
        f"{width:.2f}",
        str(sum(a.found.way == "guess" for a in group)),
        f"{np.mean([a.cost for a in group]):.1f}",
        f"{max(a.cost for a in group):.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path, nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 11, 12])
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--edges", action="store_true")
    options = parser.parse_args()
    found = list(answers(options.features, options.seeds, edges=options.edges, with_cost=options.cost))
    print(
        "| | splits | within 15 % | interval holds | bias of log K | rms of log K | median high / low | guesses | mean cost | largest |"
    )
    print("| :--- |" + " ---: |" * 9)
    print(row("**all**", found))
    for name in dict.fromkeys(a.name for a in found):
        print(row(name, [a for a in found if a.name == name]))
    for title, chosen in (
        ("class sizes 1 : 10", [a for a in found if a.split.tail == 10]),
        ("up to 14 classes", [a for a in found if a.truth <= 14]),
        ("more than 14 classes", [a for a in found if a.truth > 14]),
        ("held-out F1 of at least 0.5", [a for a in found if a.found.quality >= 0.5]),
    ):
        if chosen:
            print(row(title, chosen))


if __name__ == "__main__":
    main()
