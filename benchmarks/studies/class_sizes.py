"""The start of `modern` on balanced and unbalanced classes: matched and by name, on frozen features.

    python benchmarks/studies/class_sizes.py FEATURES.npz ... --seeds 3 --splits 4 --long-tail 10

Each FEATURES.npz has `features` (n, d), `labels` (-1 for unlabelled) and `truth`. "As given" uses its labels. A random split
draws other known classes (half of them) and labels half of their images; with --long-tail R, class sizes fall geometrically to
1/R in random class order first. Prints Markdown: mean over seeds or splits, in %.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from problem import LabelledProblem
from torch import Tensor
from torch.nn import functional as F

from newkind.clustering.kmeans import k_means, known_first
from newkind.data import Features, open_data
from newkind.evaluation import accuracy, by_name
from newkind.methods.modern import Modern, ModernConfig


@dataclass(kw_only=True)
class Problem(LabelledProblem):
    """Features with labels and truth, known classes first; implements `newkind.methods.method.AllImages`."""

    values: Tensor

    def features(self) -> Tensor:
        return self.values


AnyProblem = TypeVar("AnyProblem", bound=Problem)


def read(path: Path) -> Problem:
    """The problem as given; classes are numbered with the known ones first."""
    collection = open_data(path)
    items, truth = collection.catalog.items, collection.truth
    if not isinstance(items, Features) or truth is None:
        raise SystemExit(f"{path} needs features and truth.")
    values = torch.from_numpy(np.ascontiguousarray(items.values, dtype=np.float32))
    labels = torch.from_numpy(collection.catalog.labels.astype(np.int64))
    return Problem(values=values, labels=labels, truth=truth.labels.astype(np.int64))


def split(problem: AnyProblem, *, seed: int, long_tail: float) -> AnyProblem:
    """Other known classes, half of their images labelled, and sizes that fall to 1 / long_tail."""
    rng = np.random.default_rng(seed)
    classes = rng.permutation(problem.n_categories)
    factors = np.geomspace(1, 1 / long_tail, len(classes))[rng.permutation(len(classes))]
    rows, truth, labels = [], [], []
    for new, old in enumerate(classes):
        mine = rng.permutation(np.flatnonzero(problem.truth == old))
        mine = mine[: max(round(factors[new] * len(mine)), 3)]
        known = np.arange(len(mine)) % 2 == 0 if new < len(classes) // 2 else np.zeros(len(mine), dtype=bool)
        rows.append(mine)
        truth.append(np.full(len(mine), new))
        labels.append(np.where(known, new, -1))
    order = rng.permutation(sum(map(len, rows)))
    chosen = torch.from_numpy(np.concatenate(rows)[order])
    return replace(
        problem,
        values=problem.values[chosen],
        labels=torch.from_numpy(np.concatenate(labels)[order]),
        truth=np.concatenate(truth)[order],
        seed=seed,
    )


def start_of_modern(problem: Problem, n_categories: int | None = None) -> NDArray[np.int64]:
    """Categories of all images; the true number of categories by default."""
    method = Modern(problem.values.shape[1], n_categories or problem.n_categories, ModernConfig())
    method.start(problem)
    with torch.no_grad():
        return method.logits(problem.values).argmax(dim=1).numpy()


def plain_k_means(problem: Problem) -> NDArray[np.int64]:
    k = problem.n_categories
    found = k_means(F.normalize(problem.values, dim=1), k, n_init=10, seed=problem.seed)
    return known_first(found.labels, problem.labels, k, problem.n_known).argsort()[found.labels].numpy()


def nearest_known_mean(problem: Problem) -> NDArray[np.int64]:
    """Nearest mean of a known class in the frame of `modern`: the ceiling of Old by name."""
    method = Modern(problem.values.shape[1], problem.n_categories, ModernConfig())
    z = method.frame.fit(problem.values, problem.labels, shrinkage=ModernConfig.frame_shrinkage)
    means = torch.stack([z[problem.labels == c].mean(dim=0) for c in range(problem.n_known)])
    return (z @ F.normalize(means, dim=1).T).argmax(dim=1).numpy()


WAYS = {"k-means": plain_k_means, "nearest known mean": nearest_known_mean, "start of modern": start_of_modern}


def table(problems: list[Problem]) -> Iterator[str]:
    """One row per way: matched and by-name All / Old / New, with the standard deviation of All by name."""
    for name, way in WAYS.items():
        matched: list[list[float]] = []
        named: list[list[float]] = []
        for problem in problems:
            free = (problem.labels < 0).numpy()
            truth, found = problem.truth[free], way(problem)[free]
            is_old = truth < problem.n_known
            for scores, kept in (
                (accuracy(truth, found, is_old), matched),
                (by_name(truth, found, is_old, n_known=problem.n_known), named),
            ):
                kept.append([100 * scores.all, 100 * scores.old, 100 * scores.new])
        texts = [" / ".join(f"{value:.1f}" for value in np.mean(kept, axis=0)) for kept in (matched, named)]
        yield f"| {name} | {texts[0]} | {texts[1]} ± {np.std(named, axis=0, ddof=1)[0]:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path, nargs="+")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--long-tail", type=float, default=10.0)
    options = parser.parse_args()
    for path in options.features:
        given = read(path)
        cases = {
            "as given": [replace(given, seed=seed) for seed in range(options.seeds)],
            "random splits": [split(given, seed=seed, long_tail=1.0) for seed in range(options.splits)],
            f"random splits, sizes 1 : {options.long_tail:g}": [
                split(given, seed=seed, long_tail=options.long_tail) for seed in range(options.splits)
            ],
        }
        for title, problems in cases.items():
            print(f"\n**{path.stem}, {title}** ({len(problems)} runs, K = {given.n_categories})\n")
            print("| | matched All / Old / New | by name All / Old / New |\n| :--- | ---: | ---: |")
            for row in table(problems):
                print(row, flush=True)


if __name__ == "__main__":
    main()
