"""The question that decides the design: does training on V cached views cost accuracy against fresh views?

    python benchmarks/studies/views.py DATA --image-size 112 --views 2 4 8 16 --epochs 60 --seeds 0 1
    python benchmarks/studies/views.py DATA --image-size 56 --views 8 --online --epochs 40 --subset 512

One cache with the largest V is built; a smaller V draws from its first views, which are the same as those of a smaller cache.
`--online` adds a row with fresh views every epoch, at equal steps. `--subset` takes that many images, drawn at random.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from newkind.backbone.loader import prepare_cache, prepare_trunk
from newkind.backbone.online import OnlineTokens
from newkind.backbone.tokens import TokenSource
from newkind.config import BackboneConfig, TrainingConfig, configure
from newkind.data import Collection, Features, open_data
from newkind.evaluation import accuracy
from newkind.methods.simgcd import SimGCD, SimGCDConfig
from newkind.training.inference import predict_images
from newkind.training.network import Network
from newkind.training.trainer import train


def score(
    collection: Collection,
    source: TokenSource,
    trunk: BackboneConfig,
    method: SimGCDConfig,
    epochs: int,
    seed: int,
    images: np.ndarray,
) -> tuple[list[float], float]:
    """All/Old/New of the last epoch, and the seconds of training."""
    assert collection.truth is not None
    tuned = prepare_trunk(trunk).tuned
    torch.manual_seed(seed)
    network = Network(tuned, SimGCD(tuned.dim, method))
    labels, device = collection.catalog.labels[images], torch.device("cpu")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        train(
            network,
            source,
            labels,
            TrainingConfig(epochs=epochs, seed=seed),
            images=images,
            device=device,
            checkpoint=Path(folder) / "c.safetensors",
            fingerprint="",
            after_epoch=lambda _: None,
        )
    seconds = time.perf_counter() - start
    found = predict_images(
        network, source, images, labels=labels, n_known=collection.catalog.n_known_classes, device=device
    )
    free = labels < 0
    result = accuracy(collection.truth.labels[images][free], found.best[free], collection.truth.is_old[images][free])
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
    items = collection.catalog.items
    assert not isinstance(items, Features)
    trunk = BackboneConfig(image_size=arguments.image_size, views=max(arguments.views), device="cpu")
    prepared = prepare_trunk(trunk)
    cache = prepare_cache(collection, trunk, prepared)
    assert cache is not None
    images = np.flatnonzero(cache.usable)
    if arguments.subset:
        images = np.sort(np.random.default_rng(0).choice(images, arguments.subset, replace=False))
    method = configure(
        collection, training=TrainingConfig(), trunk=trunk, benchmark=arguments.data.partition(":")[0]
    ).method
    assert isinstance(method, SimGCDConfig)
    print(
        f"\n{len(images):,} images of {collection.origin}, {trunk.name}, {trunk.image_size} pixels, {arguments.epochs} epochs, release recipe"
    )
    print("\n| views | All | Old | New | training |\n|---|---|---|---|---|")
    for n_views in [*arguments.views, *([0] if arguments.online else [])]:
        source: TokenSource = cache
        if n_views:
            cache.n_views = n_views
        else:
            source = OnlineTokens(items, prepared.trunk, trunk.recipe)
        results = [score(collection, source, trunk, method, arguments.epochs, seed, images) for seed in arguments.seeds]
        mean = 100 * np.mean([r[0] for r in results], axis=0)
        spread = 100 * np.std([r[0] for r in results], axis=0)
        cells = " | ".join(f"{m:.1f} ± {s:.1f}" for m, s in zip(mean, spread, strict=True))
        print(f"| {n_views or 'fresh (online)'} | {cells} | {np.mean([r[1] for r in results]):.0f} s |", flush=True)


if __name__ == "__main__":
    main()
