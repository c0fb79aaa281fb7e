"""Confidences, novelty threshold and outliers of the start of `modern`, on frozen features.

    python benchmarks/studies/confidence.py FEATURES.npz ... --seeds 3 --splits 4
    python benchmarks/studies/confidence.py FEATURES.npz --development

Each FEATURES.npz has `views` (n_views, n, d) with the evaluation view first, or `features` (n, d), and `labels` (-1 for unlabelled)
and `truth`. The start is fitted to the mean over views, which is also read out. Cases are those of class_sizes.py: as
given, random splits, and random splits with class sizes that fall to 1 / 10. With several files, images of the others are
injected as outliers. --development compares rehearsals on problems made of labelled images alone. Prints Markdown.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from class_sizes import Problem as Features
from class_sizes import split
from numpy.typing import NDArray

from newkind.evaluation import calibration_error, match, match_by_name
from newkind.methods import rehearsal
from newkind.methods.modern import Modern, ModernConfig
from newkind.pipeline.confidence import confidence_card

N_FOREIGN = 3
"""Foreign images, and noise images, that are injected into a fit."""


@dataclass(kw_only=True)
class Problem(Features):
    """A problem whose images can be chosen."""

    def part(self, rows: NDArray[np.int64], labels: NDArray[np.int64], truth: NDArray[np.integer[Any]]) -> Problem:
        """Some of the images with other labels and classes."""
        chosen, given = torch.from_numpy(rows), torch.from_numpy(labels)
        return replace(self, values=self.values[chosen], labels=given, truth=truth)


def read(path: Path) -> Problem:
    content = np.load(path)
    views = content["views"] if "views" in content else content["features"][None]
    x = torch.from_numpy(views.astype(np.float32))
    labels = torch.from_numpy(content["labels"].astype(np.int64))
    return Problem(values=x.mean(dim=0), labels=labels, truth=content["truth"].astype(np.int64))


def started(problem: Problem, n_categories: int) -> Modern:
    method = Modern(problem.values.shape[1], n_categories, ModernConfig())
    method.start(problem)
    return method


@torch.no_grad()
def read_out(method: Modern, problem: Problem) -> tuple[Any, NDArray[np.bool_]]:
    """Cosines of unlabelled images as a Fold, and whether they are of new classes."""
    free = (problem.labels < 0).numpy()
    logits = method.logits(problem.values).numpy()[free]
    truth, best, n_known = problem.truth[free], logits.argmax(axis=1), problem.n_known
    named = match_by_name(match(truth, best, truth < n_known), n_known=n_known)
    return rehearsal.Fold(logits, named.is_correct(truth, best), truth >= n_known, n_known), free


def confidence_row(title: str, problems: list[Problem]) -> str:
    """Accuracy and calibration errors on the truth and in the rehearsal, and the novelty threshold."""
    rows: list[list[float]] = []
    for problem in problems:
        method = started(problem, problem.n_categories)
        method.calibrate(problem)
        card, (fold, _) = confidence_card(method), read_out(method, problem)
        raw = rehearsal.ReadOut(ModernConfig.student_temperature)
        mine = rehearsal.ReadOut(method.temperature, method.smoothing)
        row = [100 * fold.is_right.mean(), mine.temperature, mine.smoothing]
        row += [calibration_error(fold.confidence(by), fold.is_right) for by in (raw, mine)]
        limit = card.get("novelty")
        row += [card[name] for name in ("raw_calibration_error", "calibration_error")] if limit else [np.nan] * 2
        if limit:
            above = fold.novelty(mine) >= limit["threshold"]
            row += [limit["threshold"], 100 * limit["false_known"], 100 * limit["false_new"]]
            row += [100 * (~above[fold.is_new]).mean(), 100 * above[~fold.is_new].mean()]
        rows.append(row if limit else row + [np.nan] * 5)
    a, t, w, raw_error, error, raw_held, held, limit, *rates = np.nanmean(rows, axis=0)
    spread = np.nanstd(np.array(rows)[:, 4], ddof=1)
    return (
        f"| {title} | {a:.1f} | {t:.3f} | {w:.3f} | {raw_held:.3f} | {held:.3f} | {raw_error:.3f} | {error:.3f} ± {spread:.3f} | "
        f"{limit:.2f} | {rates[0]:.0f} / {rates[1]:.0f} | {rates[2]:.0f} / {rates[3]:.0f} |"
    )


def outlier_row(title: str, problem: Problem, other: Problem, repeats: int) -> str:
    """Share of ordinary, of injected and of predicted images that are flagged, in %."""
    found: list[list[float]] = []
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        classes = rng.permutation(other.n_categories)[:N_FOREIGN]
        rows = torch.tensor([int(rng.choice(np.flatnonzero(other.truth == c))) for c in classes])
        draw = torch.randn(300, problem.values.shape[1], generator=torch.Generator().manual_seed(seed))
        noise = problem.values.mean(dim=0) + problem.values.std(dim=0) * draw
        extra = 2 * N_FOREIGN
        joined = replace(
            problem,
            values=torch.cat([problem.values, other.values[rows], noise[:N_FOREIGN]]),
            labels=torch.cat([problem.labels, torch.full((extra,), -1)]),
            truth=np.concatenate([problem.truth, np.zeros(extra, dtype=np.int64)]),
            seed=seed,
        )
        method = started(joined, problem.n_categories)
        method.calibrate(joined)
        flags = [method.is_outlier(x) for x in (joined.values, other.values, noise[N_FOREIGN:])]
        seen, predicted, random = (flag.numpy() for flag in flags if flag is not None)
        ordinary = seen[:-extra][(problem.labels < 0).numpy()]
        groups = (ordinary, seen[-extra:-N_FOREIGN], seen[-N_FOREIGN:], predicted, random)
        found.append([100 * group.mean() for group in groups])
    return f"| {title} | " + " | ".join(f"{value:.1f}" for value in np.mean(found, axis=0)) + " |"


def development(problem: Problem) -> Iterator[tuple[str, Problem]]:
    """Problems made of labelled images alone: 14 to all of the known classes, half of them new."""
    labels = problem.labels.numpy()
    for n_classes in (14, 20, 40, problem.n_known):
        for seed in range(4 if n_classes < problem.n_known else 2):
            chosen = np.sort(np.random.default_rng((n_classes, seed)).permutation(problem.n_known)[:n_classes])
            rows = np.flatnonzero(np.isin(labels, chosen))
            classes = np.searchsorted(chosen, labels[rows])
            base = problem.part(rows, classes, classes)
            for long_tail in (1.0, 4.0):
                yield f"{n_classes} classes, 1 : {long_tail:g}", split(base, seed=seed, long_tail=long_tail)


def development_table(problem: Problem) -> Iterator[str]:
    """Calibration error on the development problems: one temperature for all of them, and fitted by rehearsals."""
    fixed, ways = (0.05, 0.06, 0.07, 0.08, 0.1), ("a quarter", "half", "a quarter, labelled images only")
    found: dict[str, dict[str, list[float]]] = {}
    for name, case in development(problem):
        method = started(case, case.n_categories)
        fold, free = read_out(method, case)
        read_outs = {f"{t:g} for all": rehearsal.ReadOut(t) for t in fixed}
        for way in ways:
            rehearsal.GROUPS = 2 if way == "half" else 4
            labelled, k = case, case.n_categories
            if way.endswith("only"):
                labelled, k = (
                    case.part(np.flatnonzero(~free), case.labels.numpy()[~free], case.truth[~free]),
                    case.n_known,
                )
            seen = rehearsal.rehearse(
                labelled, ModernConfig(), n_categories=k, temperature=0.05, device=torch.device("cpu")
            )
            read_outs[f"held out: {way}"] = rehearsal.ReadOut(0.05) if seen is None else seen.fitted
        for way, by in read_outs.items():
            errors = found.setdefault(way, {}).setdefault(name, [])
            errors.append(calibration_error(fold.confidence(by), fold.is_right))
    names = list(next(iter(found.values())))
    yield "| temperature | " + " | ".join(names) + " | mean |\n| :--- |" + " ---: |" * (len(names) + 1)
    for way, cases in found.items():
        means = [float(np.mean(cases[name])) for name in names]
        yield f"| {way} | " + " | ".join(f"{value:.3f}" for value in [*means, float(np.mean(means))]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path, nargs="+")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--development", action="store_true")
    options = parser.parse_args()
    given = {path.stem: read(path) for path in options.features}
    if options.development:
        for problem in given.values():
            print(*development_table(problem), sep="\n")
        return
    print(
        "| | accuracy by name | temperature | smoothing | held out, raw | held out | truth, raw | truth | threshold | expected | true |"
    )
    print("| :--- |" + " ---: |" * 10)
    for name, problem in given.items():
        cases = {
            "as given": [replace(problem, seed=seed) for seed in range(options.seeds)],
            "random splits": [split(problem, seed=seed + 100, long_tail=1.0) for seed in range(options.splits)],
            "1 : 10": [split(problem, seed=seed + 100, long_tail=10.0) for seed in range(options.splits)],
        }
        for title, problems in cases.items():
            print(confidence_row(f"{name}, {title}", problems), flush=True)
    print("\n| outliers | ordinary | foreign, in the fit | noise, in the fit | foreign, predicted | noise, predicted |")
    print("| :--- |" + " ---: |" * 5)
    for name, problem in given.items():
        for other, foreign in given.items():
            if other != name and foreign.values.shape[1] == problem.values.shape[1]:
                repeats = 1 if problem.n_categories > 100 else 4
                print(outlier_row(f"{other} into {name}", problem, foreign, repeats), flush=True)


if __name__ == "__main__":
    main()
