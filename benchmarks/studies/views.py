"""Does training on V cached views per image lose accuracy compared with new views in every epoch?

    python benchmarks/studies/views.py DATA --image-size 112 --views 2 4 8 16 --epochs 60 --seeds 0 1
    python benchmarks/studies/views.py DATA --image-size 56 --views 8 --online --epochs 40 --subset 512

One cache with the largest V is built; a smaller V draws from its first views, which equal those of a smaller cache.
`--online` adds a row with new views in every epoch, with the same number of steps. `--subset` uses that many random images.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from newkind.backbone.loader import load_backbone
from newkind.backbone.sources import open_cache, open_source
from newkind.backbone.tokens import TokenSource
from newkind.config import BackboneConfig, TrainingConfig
from newkind.data import Collection, open_data
from newkind.evaluation import accuracy
from newkind.methods.simgcd import SimGCD, simgcd_recipe
from newkind.training.data import TrainingData
from newkind.training.network import Network
from newkind.training.trainer import Trainer


def score(
    collection: Collection, config: BackboneConfig, source: TokenSource, training: TrainingConfig, images: np.ndarray
) -> tuple[list[float], float]:
    """All/Old/New after the last epoch, and the seconds of training."""
    truth, catalog = collection.truth, collection.catalog
    assert truth is not None
    backbone = load_backbone(config)
    torch.manual_seed(training.seed)
    method = SimGCD(
        backbone.trunk.dim, len(truth.class_names), simgcd_recipe("release", benchmark=collection.benchmark)
    )
    labels = catalog.labels[images]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            Network(backbone.tuned, method),
            TrainingData(source, images, labels, catalog.n_known_classes),
            training,
            device=torch.device("cpu"),
            checkpoint=Path(folder) / "c.safetensors",
            fingerprint="",
        )
        trainer.train(lambda _: None)
        seconds = time.perf_counter() - start
        best = trainer.read_out(final=True).predictions.best
    free = labels < 0
    result = accuracy(truth.labels[images][free], best[free], truth.is_old[images][free])
    return [result.all, result.old, result.new], seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--image-size", type=int, default=112)
    parser.add_argument("--views", type=int, nargs="+", default=[2, 4, 8, 16])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--subset", type=int)
    parser.add_argument("--online", action="store_true")
    arguments = parser.parse_args()
    collection = open_data(arguments.data)
    config = BackboneConfig(image_size=arguments.image_size, views=max(arguments.views), device="cpu")
    backbone = load_backbone(config)
    cache = open_cache(collection, config, backbone)
    images = np.flatnonzero(cache.usable)
    if arguments.subset:
        images = np.sort(np.random.default_rng(0).choice(images, arguments.subset, replace=False))
    print(
        f"\n{len(images):,} images of {collection.origin}, {config.name}, {config.image_size} pixels, "
        f"{arguments.epochs} epochs, recipe release"
    )
    print("\n| views | All | Old | New | training |\n|---|---|---|---|---|")
    for n_views in [*arguments.views, *([0] if arguments.online else [])]:
        source: TokenSource = cache
        if n_views:
            cache.n_views = n_views
        else:
            source = open_source(collection, config, backbone, online=True)
        trainings = [TrainingConfig(epochs=arguments.epochs, seed=seed) for seed in arguments.seeds]
        results = [score(collection, config, source, training, images) for training in trainings]
        mean = 100 * np.mean([r[0] for r in results], axis=0)
        spread = 100 * np.std([r[0] for r in results], axis=0)
        cells = " | ".join(f"{m:.1f} ± {s:.1f}" for m, s in zip(mean, spread, strict=True))
        print(f"| {n_views or 'new in every epoch'} | {cells} | {np.mean([r[1] for r in results]):.0f} s |", flush=True)


if __name__ == "__main__":
    main()
