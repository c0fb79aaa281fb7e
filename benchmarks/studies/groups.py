"""Images in groups that share a category: what the evidence of a group gains, and how it is combined best.

    python benchmarks/studies/groups.py FEATURES.npz --seeds 3

FEATURES.npz has `features` (n, d), `labels` (-1 for unlabelled) and `truth`. Unlabelled images of one class are put into groups:
at random, or each image with the most similar ones of its class, as in a burst, where images make the same mistakes. With
--mixed, some images are then moved to a random group, as a wrong time stamp would do. Prints Markdown: accuracy by name and
matched, in %, mean over seeds. The number of categories is the true one.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from class_sizes import Problem, read, split
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from newkind.evaluation import accuracy, by_name
from newkind.methods.modern import Modern, ModernConfig
from newkind.training.group_evidence import GroupEvidence
from newkind.training.network import Network

Groups = NDArray[np.int64]


def make_groups(problem: Problem, size: int, *, similar: bool, mixed: float) -> Groups:
    """Groups of `size` unlabelled images of one class; the last of a class may be smaller. -1 for labelled images."""
    rng = np.random.default_rng((problem.seed, size))
    unit = F.normalize(problem.values, dim=1)
    groups, number = np.full(len(problem.truth), -1, dtype=np.int64), 0
    free = problem.labels.numpy() < 0
    for k in range(problem.n_categories):
        left = rng.permutation(np.flatnonzero(free & (problem.truth == k)))
        while len(left):
            near = (unit[left] @ unit[left[0]]).argsort(descending=True).numpy() if similar else np.arange(len(left))
            groups[left[near[:size]]] = number
            left, number = left[np.sort(near[size:])], number + 1
    moved = np.flatnonzero(free & (rng.random(len(groups)) < mixed))
    groups[moved] = rng.integers(0, number, len(moved))
    return groups


def probabilities(problem: Problem, values: Tensor) -> Tensor:
    """Probabilities (n, K) of `modern` without training, fitted on `values` (n, d) and calibrated."""
    fitted = Problem(values=values, labels=problem.labels, truth=problem.truth, seed=problem.seed)
    method = Modern(values.shape[1], problem.n_categories, ModernConfig())
    method.start(fitted)
    method.calibrate(fitted)
    with torch.no_grad():
        return Network(None, method).eval().category_probabilities(values)


def by_mean_of_logarithms(p: Tensor, groups: Groups, labels: Tensor) -> Tensor:
    """What `discover` does."""
    evidence, everything = GroupEvidence(groups, labels), slice(0, len(p))
    evidence.add(p, everything)
    return evidence.share(p, everything)


def _group_means(values: Tensor, groups: Groups) -> Tensor:
    """Rows (n, k) replaced by the mean of their group."""
    own = np.where(groups < 0, groups.max() + 1 + np.arange(len(groups)), groups)
    _, inverse, counts = np.unique(own, return_inverse=True, return_counts=True)
    number = torch.from_numpy(inverse)
    sums = torch.zeros(len(counts), values.shape[1]).index_add_(0, number, values)
    means: Tensor = sums / torch.from_numpy(counts)[:, None]
    return means[number]


def by_mean(p: Tensor, groups: Groups, _: Tensor) -> Tensor:
    return _group_means(p, groups)


def by_votes(p: Tensor, groups: Groups, _: Tensor) -> Tensor:
    """Majority of the single answers; the mean probability decides between equal numbers."""
    return _group_means(F.one_hot(p.argmax(dim=1), p.shape[1]).float() + 1e-3 * p, groups)


def scores(problem: Problem, p: Tensor) -> NDArray[np.float64]:
    """Accuracy by name (All, Old, New), matched All, and mean confidence minus accuracy by name of known classes."""
    free = problem.labels.numpy() < 0
    best, truth = p.argmax(dim=1).numpy()[free], problem.truth[free]
    is_old = truth < problem.n_known
    named = by_name(truth, best, is_old, n_known=problem.n_known)
    top = p.max(dim=1).values.numpy()[free]
    gap = top.mean() - named.all
    return np.array([named.all, named.old, named.new, accuracy(truth, best, is_old).all, gap])


COMBINED: dict[str, Callable[[Tensor, Groups, Tensor], Tensor]] = {
    "mean of logarithms (`discover`)": by_mean_of_logarithms,
    "mean of probabilities": by_mean,
    "votes": by_votes,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[2, 5])
    parser.add_argument("--mixed", type=float, nargs="+", default=[0.0, 0.1])
    parser.add_argument("--mean-features", action="store_true", help="Also fit on the mean features of groups.")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found: dict[tuple[str, str], list[NDArray[np.float64]]] = {}
    for seed in range(options.seeds):
        problem = split(read(options.features), seed=seed, long_tail=1)
        single = probabilities(problem, problem.values)
        found.setdefault(("none", "each image alone"), []).append(scores(problem, single))
        for size in options.sizes:
            for mixed in options.mixed:
                for similar in (False, True):
                    groups = make_groups(problem, size, similar=similar, mixed=mixed)
                    what = f"{size} {'similar' if similar else 'random'}"
                    what += f", {mixed:.0%} in a wrong group" if mixed else ""
                    for name, combine in COMBINED.items():
                        shared = combine(single, groups, problem.labels)
                        found.setdefault((what, name), []).append(scores(problem, shared))
                    if options.mean_features:
                        fitted = probabilities(problem, _group_means(problem.values, groups))
                        found.setdefault((what, "mean features, fitted"), []).append(scores(problem, fitted))
    print("| groups | combined by | by name All / Old / New | matched All | confidence - accuracy |")
    print("| :--- | :--- | ---: | ---: | ---: |")
    for (what, name), rows in found.items():
        mean = 100 * np.mean(rows, axis=0)
        spread = 100 * np.std([row[0] for row in rows], ddof=1)
        shown = f"{mean[0]:.1f} ± {spread:.1f} / {mean[1]:.1f} / {mean[2]:.1f}"
        print(f"| {what} | {name} | {shown} | {mean[3]:.1f} | {mean[4]:+.1f} |")


if __name__ == "__main__":
    main()
