"""SimGCD on real data over several seeds, beside k-means on the same frozen features: All/Old/New and the time of each part.

    python benchmarks/studies/simgcd.py cub:DATA --seeds 0 1 2 --epochs 200

Runs are kept in --runs and go on where they stopped; a finished one is not run again. The table is Markdown on standard output.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize

from newkind.backbone.preparing import TrunkConfig, prepare_cache, prepare_trunk
from newkind.config import configure
from newkind.data.catalog import Collection
from newkind.data.opening import open_data
from newkind.discovering import discover
from newkind.evaluation import Accuracy, accuracy
from newkind.training.engine import TrainingConfig


def k_means(collection: Collection, trunk: TrunkConfig, seed: int) -> Accuracy:
    """scikit-learn's k-means with 10 starts on the frozen backbone's features of all images."""
    prepared = prepare_trunk(trunk, say=lambda _: None)
    cache = prepare_cache(collection, trunk, prepared, say=lambda _: None)
    assert cache is not None
    assert collection.truth is not None
    n = len(collection.catalog)
    batches = (np.arange(i, min(i + 256, n)) for i in range(0, n, 256))
    with torch.no_grad():
        features = torch.cat([prepared.tuned(tokens) for tokens in cache.evaluation_batches(batches)]).numpy()
    found = KMeans(len(collection.truth.class_names), n_init=10, random_state=seed).fit_predict(normalize(features))
    free = ~collection.catalog.is_labelled
    return accuracy(collection.truth.labels[free], found[free], collection.truth.is_old[free])


def run_seed(
    data: str, collection: Collection, folder: Path, trunk: TrunkConfig, epochs: int, seed: int, recipe: str
) -> dict[str, object]:
    """The scores and seconds of one seed, from its run folder if it is finished."""
    result = folder / "result.json"
    if not result.exists():
        training = TrainingConfig(epochs=epochs, seed=seed, evaluate_every=max(epochs // 10, 1))
        config = configure(collection, training=training, trunk=trunk, recipe=recipe, benchmark=data.partition(":")[0])
        outcome = discover(
            collection,
            folder / "run",
            config,
            on_epoch=lambda r, s: print(r.epoch, s and s.all, flush=True) if s else None,
        )
        assert outcome is not None
        assert outcome.scores is not None
        scores = outcome.scores
        kept = {
            "seed": seed,
            "all": scores.all,
            "old": scores.old,
            "new": scores.new,
            "seconds": outcome.seconds,
            "threads": torch.get_num_threads(),
        }
        result.write_text(json.dumps(kept))
    found: dict[str, object] = json.loads(result.read_text())
    return found


def row(name: str, values: list[list[float]]) -> str:
    mean, spread = 100 * np.mean(values, axis=0), 100 * np.std(values, axis=0)
    return (
        f"| {name} | "
        + " | ".join(f"{m:.1f} ± {s:.1f}" for m, s in zip(mean, spread, strict=True))
        + f" | {len(values)} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--views", type=int, default=8)
    parser.add_argument("--recipe", default="release")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    arguments = parser.parse_args()
    collection = open_data(arguments.data)
    trunk = TrunkConfig(image_size=arguments.image_size, n_views=arguments.views)
    name = f"{os.path.basename(arguments.data).replace(':', '-')}-{arguments.image_size}-V{arguments.views}-{arguments.epochs}-{arguments.recipe}"
    found = []
    for seed in arguments.seeds:
        folder = arguments.runs / name / f"seed-{seed}"
        folder.mkdir(parents=True, exist_ok=True)
        found.append(run_seed(arguments.data, collection, folder, trunk, arguments.epochs, seed, arguments.recipe))
    floor = [k_means(collection, trunk, seed) for seed in arguments.seeds]
    print(
        f"\n{collection.origin}: {trunk.backbone}, {trunk.image_size} pixels, V = {trunk.n_views}, {arguments.epochs} epochs, {arguments.recipe} recipe,"
    )
    print("known K, one matching over all unlabelled images, last epoch, mean ± standard deviation over seeds.\n")
    print("| method | All | Old | New | seeds |\n|---|---|---|---|---|")
    print(row("k-means", [[f.all, f.old, f.new] for f in floor]))
    print(row("SimGCD", [[float(f[key]) for key in ("all", "old", "new")] for f in found]))  # type: ignore[arg-type]
    for f in found:
        parts = ", ".join(f"{part} {seconds:.0f} s" for part, seconds in f["seconds"].items())  # type: ignore[attr-defined]
        print(f"\nseed {f['seed']} ({f['threads']} threads): {parts}", end="")
    print()


if __name__ == "__main__":
    main()
