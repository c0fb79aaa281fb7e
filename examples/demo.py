"""`make demo`: discover the categories of real photographs with real weights, in a few minutes on two cores."""

from __future__ import annotations

import time
from pathlib import Path

from groceries import fetch_groceries

import newkind
from newkind.progress import duration

FOLDER = Path("demo")
OPTIONS = {"image_size": 112}
INTRODUCTION = f"""\
Newkind demo: 1,393 photographs of 14 kinds of fruit. 7 kinds are known, and half of their images are labelled.
The other images are assigned to the known kinds or to new categories.
Backbone DINOv2 ViT-S/14 at {OPTIONS["image_size"]} pixels, method modern, effort standard. A first answer comes before the final one.
"""
NEXT = """
Try next:
  .venv/bin/newkind sort demo/run --to demo/sorted --mode symlink
  .venv/bin/newkind predict demo/run demo/groceries/images/0000.jpg
  .venv/bin/newkind estimate-k demo/groceries --image-size 112
  .venv/bin/newkind discover MY_IMAGES --out my_run"""


def main() -> None:
    """Run the demo and print what it found."""
    start = time.perf_counter()
    print(INTRODUCTION, flush=True)
    groceries = fetch_groceries(FOLDER / "groceries")
    run = newkind.discover(groceries, FOLDER / "run", verbose=True, **OPTIONS)
    baseline = newkind.discover(groceries, FOLDER / "kmeans", method="kmeans", report=False, **OPTIONS)
    print_result(run, baseline)
    print(f"\nIt took {duration(time.perf_counter() - start)}. Assignments: {run.run.assignments_file}")
    print(f"Report to look at: {run.run.report_file}")
    print(NEXT)


def print_result(run: newkind.Discovery, baseline: newkind.Discovery) -> None:
    """Print the number of new categories, and the accuracy beside that of k-means on the same features."""
    assert run.outcome is not None
    n_new, n_known = run.outcome.count("new"), run.outcome.count("known")
    n_categories = run.outcome.n_new_categories
    print(f"\nOf {n_known + n_new:,} unlabelled images, {n_new:,} were assigned to {n_categories} new categories.")
    print(f"\n{'accuracy, %':28}{'All':>7}{'Old':>7}{'New':>7}")
    for name, found in (("k-means, same features", baseline), ("SimGCD modern", run)):
        assert found.outcome is not None
        assert found.outcome.scores is not None
        scores = found.outcome.scores
        print(f"{name:28}{100 * scores.all:>7.1f}{100 * scores.old:>7.1f}{100 * scores.new:>7.1f}")
    print("(one matching over all unlabelled images)")


if __name__ == "__main__":
    main()
