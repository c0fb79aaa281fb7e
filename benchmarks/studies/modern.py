"""What each piece of the recipe `modern` brings before any training: on the real problem, and on labelled classes held out as new.

    python benchmarks/studies/modern.py DATA@112@4 cub:FOLDER@224@8 --seeds 3

Each DATA is followed by its image size and views, whose token cache is taken or built. Every row is one way to place the
categories among the frozen backbone's features. "Held out" is what the choice was made by (only labelled images: half of
the known classes are pretend-new, four folds); "truth" is the real problem. Markdown on stdout.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from newkind.backbone.loader import load_backbone
from newkind.backbone.sources import open_source
from newkind.clustering.kmeans import k_means, known_first
from newkind.config import BackboneConfig
from newkind.data import from_features, open_data
from newkind.evaluation import accuracy
from newkind.experiments.holdout import pretend
from newkind.methods.frame import Frame, FrameConfig, find_prototypes
from newkind.methods.registry import build_method, method_config
from newkind.training.inference import image_features
from newkind.training.network import Network

Problem = tuple[Tensor, Tensor, Tensor, np.ndarray, np.ndarray]
"""Features of the evaluation view, their mean with random views, labels, truth, is old."""
Way = Callable[[Tensor, Tensor, Tensor, int, int, int], Tensor]
"""(view, mean of views, labels, K, known, seed) -> (n,) categories"""


def plain(view: Tensor, _: Tensor, labels: Tensor, k: int, known: int, seed: int, *, clamp: bool) -> Tensor:
    """k-means, or semi-supervised k-means."""
    z = F.normalize(view, dim=1)
    return k_means(z, k, labels=labels if clamp else None, n_known=known if clamp else 0, n_init=10, seed=seed).labels


def framed_k_means(view: Tensor, _: Tensor, labels: Tensor, k: int, known: int, seed: int) -> Tensor:
    z = Frame(view.shape[1]).fit(view, labels, shrinkage=FrameConfig.frame_shrinkage)
    found = k_means(z, k, n_init=10, seed=seed)
    return known_first(found.labels, labels, k, known).argsort()[found.labels]


def mixed(
    view: Tensor, mean: Tensor, labels: Tensor, k: int, known: int, seed: int, *, looks: bool = True, **settings: float
) -> Tensor:
    """modern's start; read out on the evaluation view."""
    frame, config = Frame(view.shape[1]), replace(FrameConfig(frame=True), **settings)  # type: ignore[arg-type]
    found = find_prototypes(frame, mean if looks else view, labels, config, n_categories=k, n_known=known, seed=seed)
    framed: Tensor = frame(view)
    return (framed @ found.directions.T).argmax(dim=1)


WAYS: dict[str, Way] = {
    "k-means": partial(plain, clamp=False),
    "semi-supervised k-means (GCD's last stage)": partial(plain, clamp=True),
    "k-means in the frame": framed_k_means,
    "mixture in the frame, one view": partial(mixed, looks=False),
    "**mixture in the frame, five views: modern's start**": mixed,
    "no frame": partial(mixed, frame_shrinkage=1.0),
    "shrinkage 0.1": partial(mixed, frame_shrinkage=0.1),
    "shrinkage 0.6": partial(mixed, frame_shrinkage=0.6),
    "no balance": partial(mixed, mixture_balance=0.0),
    "balance 1": partial(mixed, mixture_balance=1.0),
    "balance 16": partial(mixed, mixture_balance=16.0),
    "temperature 0.03": partial(mixed, mixture_temperature=0.03),
    "temperature 0.07": partial(mixed, mixture_temperature=0.07),
    "one restart": partial(mixed, mixture_restarts=1),
}


def problems(text: str, n_folds: int) -> tuple[Problem, list[Problem]]:
    """The real problem, and the held-out ones."""
    data, size, views = text.rsplit("@", 2)
    collection, trunk = open_data(data), BackboneConfig(image_size=int(size), views=int(views))
    assert collection.truth is not None
    backbone = load_backbone(trunk)
    source = open_source(collection, trunk, backbone)
    images = np.flatnonzero(source.usable)
    network = Network(
        backbone.tuned, build_method("kmeans", backbone.tuned.dim, method_config("kmeans", n_categories=2))
    )
    look = partial(image_features, network, source, images, device=backbone.device)
    view, mean = look(), look(n_looks=FrameConfig.frame_views)
    labels = torch.from_numpy(collection.catalog.labels[images].astype(np.int64))
    real = (view, mean, labels, collection.truth.labels[images], collection.truth.is_old[images])
    held_out = []
    # The rows' numbers as features: what the rehearsal keeps of them says which images it is made of.
    numbered = from_features(np.arange(len(images), dtype=np.float32)[:, None], [int(y) for y in labels])
    for fold in range(n_folds):
        rehearsal = pretend(numbered, fold=fold, seed=0)
        rows = rehearsal.catalog.items.values[:, 0].astype(np.int64)  # type: ignore[union-attr]
        assert rehearsal.truth is not None
        own = torch.from_numpy(rehearsal.catalog.labels.astype(np.int64))
        held_out.append((view[rows], mean[rows], own, rehearsal.truth.labels, rehearsal.truth.is_old))
    return real, held_out


def score(way: Way, problem: Problem, seed: int) -> list[float]:
    view, mean, labels, truth, is_old = problem
    k, known, free = int(truth.max()) + 1, int(labels.max()) + 1, (labels < 0).numpy()
    found = way(view, mean, labels, k, known, seed).numpy()
    scores = accuracy(truth[free], found[free], is_old[free])
    return [100 * scores.all, 100 * scores.old, 100 * scores.new]


def cell(scores: list[list[float]]) -> str:
    return " / ".join(f"{value:.1f}" for value in np.mean(scores, axis=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--folds", type=int, default=4)
    options = parser.parse_args()
    for text in options.data:
        real, held_out = problems(text, options.folds)
        print(
            f"\n{text}: All / Old / New, mean over {options.seeds} seeds (truth) and {options.folds} folds (held out)\n"
        )
        print("| | held out | truth |\n| :--- | ---: | ---: |", flush=True)
        for name, way in WAYS.items():
            folds = [score(way, problem, seed=0) for problem in held_out]
            seeds = [score(way, real, seed=seed) for seed in range(options.seeds)]
            print(f"| {name} | {cell(folds)} | {cell(seeds)} |", flush=True)


if __name__ == "__main__":
    main()
