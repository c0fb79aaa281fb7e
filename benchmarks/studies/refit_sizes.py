"""Which sizes a refit should keep categories at: estimated from labels, or present ones; scored on images that nobody touched.

A simulated person tells the true category of some images of a finished run. Frame and mixture are solved again. New categories are
matched to new classes once, before.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from newkind.clustering.known_sizes import estimate_known_sizes
from newkind.clustering.mixture import TargetSizes, refine_mixture, target_sizes
from newkind.data import read_truth
from newkind.methods.frame import Frame
from newkind.runs.answer import Answer
from newkind.runs.current_answer import current_answer
from newkind.runs.run import Run

Ints = NDArray[np.int64]
BALANCES = (0.0, 0.5, 2.0, 8.0)
SEEDS = 3


@dataclass(frozen=True, eq=False)
class Problem:
    """Features (n, d), present and true categories (n,), and given labels (n,) of a run."""

    features: Tensor
    present: Ints
    truth: Ints
    given: Ints
    n_categories: int

    @property
    def free(self) -> Ints:
        return np.flatnonzero(self.given < 0)


def true_categories(answer: Answer, names: list[str]) -> Ints:
    """Category (n,) of the true class of each image; new classes are matched to new categories."""
    classes, given = sorted(set(names)), {state.id for state in answer.categories if state.given}
    new_classes = [name for name in classes if name not in given]
    new = [k for k, state in enumerate(answer.categories) if not state.given]
    array = np.array(names)
    overlap = np.array([[int(((array == name) & (answer.category == k)).sum()) for k in new] for name in new_classes])
    rows, columns = linear_sum_assignment(-overlap)
    own = {name: answer.position[name] for name in classes if name in given}
    own |= {new_classes[i]: new[j] for i, j in zip(rows, columns, strict=True)}
    return np.array([own.get(name, -1) for name in names])


def told_images(problem: Problem, mode: str, confidence: NDArray[np.float32], seed: int) -> Ints:
    """Images whose true category is told: random ones, the least confident ones, or all of half of the categories."""
    rng, free = np.random.default_rng(seed), problem.free
    kind, _, number = mode.partition(" ")
    if kind == "random":
        return rng.choice(free, int(number), replace=False)
    if kind == "unsure":
        return free[np.argsort(confidence[free] + 0.02 * rng.normal(size=len(free)))][: int(number)]
    chosen = rng.permutation(problem.n_categories)[: problem.n_categories // 2]
    return free[np.isin(problem.present[free], chosen)]


def solve(problem: Problem, labels: Ints, category: Ints, balance: float | None) -> Ints:
    """Categories (n,) after a refit; `balance` None for sizes that are estimated from labels."""
    k = problem.n_categories
    is_known = np.isin(np.arange(k), labels)
    order = np.argsort(~is_known, kind="stable")
    place = np.argsort(order)
    own, own_labels = place[category], np.where(labels >= 0, place[labels], -1)
    if balance is None:
        known = estimate_known_sizes(problem.features, own_labels, n_known=int(is_known.sum()), n_categories=k)
        sizes = target_sizes(known, k, int((labels < 0).sum()))
    else:
        target = torch.from_numpy(np.maximum(np.bincount(own, minlength=k), 1)).float()
        sizes = TargetSizes(target, torch.full((k,), balance), np.zeros(0))
    z = Frame(problem.features.shape[1]).fit(problem.features, torch.from_numpy(own_labels), shrinkage=0.3)
    start = torch.zeros(k, z.shape[1]).index_add_(0, torch.from_numpy(own), z)
    found = refine_mixture(z, start, labels=torch.from_numpy(own_labels), sizes=sizes)
    best: Ints = order[(z @ found.directions.T).argmax(dim=1).numpy()]
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="A finished run.")
    parser.add_argument("truth", type=Path, help="Table of the true classes.")
    args = parser.parse_args()
    run = Run.open(args.run)
    answer, table, features = current_answer(run), read_truth(args.truth), run.features()
    assert features is not None
    problem = Problem(
        features=torch.from_numpy(np.asarray(features, dtype=np.float32)),
        present=answer.category,
        truth=true_categories(answer, [table[name] for name in answer.files]),
        given=np.where(answer.status == "labelled", answer.category, -1),
        n_categories=len(answer.categories),
    )
    print("| told | before | estimated sizes |" + "".join(f" present, {b:g} |" for b in BALANCES))
    print("|---|" + "---:|" * (2 + len(BALANCES)))
    for mode in ("random 50", "random 200", "unsure 50", "unsure 200", "half of the categories"):
        scores: list[list[float]] = []
        for seed in range(SEEDS):
            told = told_images(problem, mode, answer.confidence, seed)
            labels, category = problem.given.copy(), problem.present.copy()
            labels[told] = category[told] = problem.truth[told]
            rest = np.setdiff1d(problem.free, told)
            answers = [category, *(solve(problem, labels, category, b) for b in (None, *BALANCES))]
            scores.append([float((best == problem.truth)[rest].mean()) for best in answers])
        print(f"| {mode} | " + " | ".join(f"{100 * score:.1f}" for score in np.mean(scores, axis=0)) + " |", flush=True)


if __name__ == "__main__":
    main()
