"""How many decisions a review needs: a simulated reviewer, against labelling images one by one and against no refit.

    python benchmarks/studies/reviewer.py FEATURES.npz ... --seeds 0 1 2 --out benchmarks/results/reviewer.json

Each FEATURES.npz has `views` (n_views, n, d), `labels` (-1 for unlabelled), `truth` and `class_names` (known classes first). A
run is made from the mean over views, without training. The reviewer follows the queue of `newkind review`, knows the true
class of an image that is looked at, and decides through the log of the run. benchmarks/results/reviewer.md says what counts.
Prints Markdown and writes curves as JSON; reviewer_plot.py draws them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from simulated_reviewer import TARGET, Review, Reviewer, Truth, label_one_by_one

import newkind
from newkind.data import from_features
from newkind.runs.answer import LABELLED
from newkind.runs.run import Run

LONG = 200
"""Of a curve with more points, only every tenth is written."""


def make_run(path: Path, folder: Path, n_categories: str, seed: int) -> tuple[Run, Truth]:
    """Run on frozen features, and its truth."""
    content = np.load(path)
    names = [str(name) for name in content["class_names"]]
    labels = content["labels"]
    data = from_features(
        content["views"].astype(np.float32).mean(axis=0), [names[i] if i >= 0 else None for i in labels]
    )
    k: Any = len(names) if n_categories == "true" else "auto"
    found = (
        newkind.load(folder)
        if folder.exists()
        else newkind.discover(data, folder, n_categories=k, seed=seed, report=False)
    )
    assert [int(name.rsplit("/")[-1].split(".")[0]) for name in found.answer.files] == list(range(len(labels)))
    known = names[: int(labels.max()) + 1]
    return found.run, Truth(np.array(names)[content["truth"]], found.answer.status != LABELLED, known)


def summary(review: Review, *, least: float = TARGET) -> dict[str, Any]:
    """Figures of one review."""
    reached = next((point for point in review.curve if point["accuracy"] >= least), None)
    step = 10 if len(review.curve) > LONG else 1
    curve = [point for i, point in enumerate(review.curve) if i % step == 0 or point in (reached, review.curve[-1])]
    return {"curve": curve, "refits": review.refits, "kinds": dict(review.kinds), "reached": reached}


def measure(path: Path, args: argparse.Namespace, seed: int) -> dict[str, Any]:
    """All three ways on one run."""
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        kept = None if args.runs is None else args.runs / f"{path.stem}-{args.n_categories}-{seed}"
        first, truth = make_run(path, kept or Path(folder) / "run", args.n_categories, seed)
        for way in args.ways:
            shutil.copytree(first.folder, Path(folder) / way)
            review = Review(Run.open(Path(folder) / way), truth, args.most)
            if way == "labels":
                label_one_by_one(
                    review, refit_every=args.labels_per_refit or max(20, len(review.answer.categories) // 2)
                )
            else:
                every = args.actions_per_refit or max(10, len(review.answer.categories) // 10)
                refit_every = every if way == "review" else 0
                Reviewer(review, seed=seed, refit_every=refit_every, split_impure=args.split_impure).work()
            results[way] = summary(review)
            print_row(path.stem, seed, way, results[way])
    return results


def print_row(name: str, seed: int, way: str, result: dict[str, Any]) -> None:
    """Print one line about one review."""
    first, last, reached = result["curve"][0], result["curve"][-1], result["reached"]
    moved = [sum(refit[key] for refit in result["refits"]) for key in ("untouched", "before", "after")]
    print(
        f"| {name} | {seed} | {way} | {100 * first['accuracy']:.1f} | {100 * last['accuracy']:.1f} | {last['actions']} | "
        f"{last['looks']} | {reached['actions'] if reached else '-'} | {reached['looks'] if reached else '-'} | "
        f"{last['settled'] / max(last['actions'], 1):.1f} | {100 * last['precision']:.1f} | {moved} | {result['kinds']} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path, nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--n-categories", choices=("true", "auto"), default="true")
    parser.add_argument(
        "--ways", nargs="+", choices=("review", "labels", "no-refit"), default=["review", "labels", "no-refit"]
    )
    parser.add_argument("--actions-per-refit", type=int, help="Default: 10, or a tenth of the number of categories.")
    parser.add_argument("--labels-per-refit", type=int, help="Default: 20, or half of the number of categories.")
    parser.add_argument("--split-impure", action="store_true", help="Split more readily, which needs more actions.")
    parser.add_argument("--most", type=int, default=4000, help="Largest number of actions per review.")
    parser.add_argument("--runs", type=Path, help="Folder in which runs are kept, to be used again.")
    parser.add_argument("--out", type=Path, required=True, help="JSON file, to which results are added.")
    args = parser.parse_args()
    for path in args.features:
        for seed in args.seeds:
            found = measure(path, args, seed)
            content = json.loads(args.out.read_text()) if args.out.exists() else {}
            content.setdefault(
                f"{path.stem} {args.n_categories}{' split-impure' if args.split_impure else ''}", {}
            ).setdefault(str(seed), {}).update(found)
            args.out.write_text(json.dumps(content))


if __name__ == "__main__":
    main()
