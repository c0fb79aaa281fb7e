"""`make demo`: real photographs, real weights, from a pile to sorted categories in a few minutes on two cores."""

from __future__ import annotations

import time
from pathlib import Path

from groceries import fetch_groceries

from newkind.cli.discover import EpochLines
from newkind.config import BackboneConfig, TrainingConfig, configure
from newkind.data import Collection, open_data
from newkind.evaluation import Accuracy
from newkind.pipeline.discover import discover
from newkind.progress import duration
from newkind.report.write import try_report

FOLDER = Path("demo")
TRUNK = BackboneConfig(image_size=112, views=4)
TRAINING = TrainingConfig(epochs=40)


def k_means(collection: Collection) -> Accuracy:
    """The floor: k-means (10 starts) on the frozen backbone's features of the same images."""
    config = configure(collection, training=TRAINING, trunk=TRUNK, method="kmeans")
    outcome = discover(collection, FOLDER / "kmeans", config)
    assert outcome is not None
    assert outcome.scores is not None
    return outcome.scores


def main() -> None:
    start = time.perf_counter()
    print(
        "Newkind demo: 1,393 photographs of fruit, 14 kinds. 7 kinds are known, and half of their images are labelled;"
    )
    print("the others, and 7 kinds that nobody has named, are to be sorted.")
    print(
        f"DINOv2 ViT-S/14 at {TRUNK.image_size} pixels, {TRUNK.n_views} random views an image, {TRAINING.epochs} epochs, the recipe modern.\n"
    )
    collection = open_data(fetch_groceries(FOLDER / "groceries"))
    run = FOLDER / "run"
    config = configure(collection, training=TRAINING, trunk=TRUNK)
    with EpochLines(TRAINING.epochs, None, show=True) as lines:
        outcome = discover(collection, run, config, on_epoch=lines.show)
    assert outcome is not None
    assert outcome.scores is not None
    page = try_report(outcome.run, collection=collection)
    floor = k_means(collection)
    print(
        f"\nOf {outcome.n_known + outcome.n_new:,} unlabelled images, {outcome.n_new:,} went into {outcome.n_new_categories} new categories."
    )
    print(f"\n{'accuracy, %':28}{'All':>7}{'Old':>7}{'New':>7}")
    for name, scores in (("k-means, same features", floor), ("SimGCD", outcome.scores)):
        print(f"{name:28}{100 * scores.all:>7.1f}{100 * scores.old:>7.1f}{100 * scores.new:>7.1f}")
    print("(one matching over all unlabelled images, last epoch)")
    print(f"\nIt took {duration(time.perf_counter() - start)}. Results: {run}/assignments.csv and beside it.")
    print(f"Look at it: {page}\nTry next:")
    print(f"  .venv/bin/newkind sort {run} --to demo/sorted")
    print(f"  .venv/bin/newkind predict {run} demo/groceries/images/0000.jpg")
    print("  .venv/bin/newkind estimate-k demo/groceries --image-size 112 --views 4")
    print("  .venv/bin/newkind discover MY_IMAGES --out my_run")


if __name__ == "__main__":
    main()
