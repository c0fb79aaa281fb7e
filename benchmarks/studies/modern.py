"""What each part of `modern` contributes before training: on the real problem, and on held-out classes.

    python benchmarks/studies/modern.py DATA@112@4 cub:FOLDER@224@8 --seeds 3

Each DATA is followed by its image size and number of views, whose features are stored. Every row is one way to
place the categories among the features of the frozen backbone. "Held out" are the hold-out problems by which the settings
were chosen (labelled images only: half of the known classes are treated as new, four folds); "truth" is the real problem.
Prints Markdown.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from problem import LabelledProblem
from torch import Tensor
from torch.nn import functional as F

from newkind.backbone.loader import load_backbone
from newkind.backbone.sources import open_source
from newkind.clustering.kmeans import k_means, known_first
from newkind.config import BackboneConfig
from newkind.data import Features, from_features, open_data
from newkind.data.views import random_views
from newkind.effort import EFFORTS
from newkind.evaluation import accuracy
from newkind.experiments.holdout import hold_out
from newkind.methods.frame import Frame, FrameConfig, find_prototypes
from newkind.training.inference import image_features
from newkind.training.network import Encoder

AVERAGED = EFFORTS["thorough"].averaged


@dataclass(kw_only=True)
class Problem(LabelledProblem):
    """Features of all images with labels and truth; implements `newkind.methods.method.AllImages`.

    Parameters
    ----------
    view, mean : Tensor of shape (n, d)
        Features of the evaluation view, and their mean with those of random views.
    is_old : ndarray of bool, shape (n,)
        Whether the true class is known.
    """

    view: Tensor
    mean: Tensor
    is_old: NDArray[np.bool_]

    def features(self) -> Tensor:
        """Features (n, d), averaged over views."""
        return self.mean


Way = Callable[[Problem], Tensor]
"""Problem -> categories (n,)."""


def plain(problem: Problem, *, clamp: bool) -> Tensor:
    """k-means, or semi-supervised k-means."""
    z, labels, known = F.normalize(problem.view, dim=1), problem.labels, problem.n_known
    own = {"labels": labels, "n_known": known} if clamp else {}
    return k_means(z, problem.n_categories, n_init=10, seed=problem.seed, **own).labels  # type: ignore[arg-type]


def framed_k_means(problem: Problem) -> Tensor:
    """k-means in the frame."""
    labels, k = problem.labels, problem.n_categories
    z = Frame(problem.view.shape[1]).fit(problem.view, labels, shrinkage=FrameConfig.frame_shrinkage)
    found = k_means(z, k, n_init=10, seed=problem.seed)
    return known_first(found.labels, labels, k, problem.n_known).argsort()[found.labels]


def mixed(problem: Problem, *, random_views: bool = True, **settings: float) -> Tensor:
    """The start of `modern`, read out on the evaluation view."""
    frame, config = Frame(problem.view.shape[1]), replace(FrameConfig(), **settings)  # type: ignore[arg-type]
    features = problem.mean if random_views else problem.view
    found = find_prototypes(frame, features, problem, config, problem.n_categories)
    framed: Tensor = frame(problem.view)
    return (framed @ found.directions.T).argmax(dim=1)


WAYS: dict[str, Way] = {
    "k-means": partial(plain, clamp=False),
    "semi-supervised k-means (last stage of GCD)": partial(plain, clamp=True),
    "k-means in the frame": framed_k_means,
    "mixture in the frame, one view": partial(mixed, random_views=False),
    "**mixture in the frame, five views: the start of modern**": mixed,
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


def real_problem(text: str) -> Problem:
    """The problem of DATA@SIZE@VIEWS."""
    data, size, views = text.rsplit("@", 2)
    collection, config = open_data(data), BackboneConfig(image_size=int(size), views=int(views), tuned_blocks=0)
    catalog, truth = collection.catalog, collection.truth
    assert truth is not None
    backbone = None if isinstance(catalog.items, Features) else load_backbone(config)
    source = open_source(collection, config, backbone)
    images = np.flatnonzero(source.usable)
    device = torch.device("cpu") if backbone is None else backbone.device
    view, mean = (
        image_features(Encoder(None), source, images, device=device, views=chosen)
        for chosen in ((0,), (0, *random_views(min(AVERAGED, config.views))))
    )
    labels = torch.from_numpy(catalog.labels[images].astype(np.int64))
    return Problem(view=view, mean=mean, labels=labels, truth=truth.labels[images], is_old=truth.is_old[images])


def held_out_problems(real: Problem, n_folds: int) -> list[Problem]:
    """Hold-out problems made from the labelled images of the real one."""
    found = []
    # The row indices as features: a hold-out problem keeps those of its images.
    indices = np.arange(len(real.labels), dtype=np.float32)[:, None]
    numbered = from_features(indices, [int(y) for y in real.labels])
    for fold in range(n_folds):
        problem = hold_out(numbered, fold=fold, seed=0)
        items, truth = problem.catalog.items, problem.truth
        assert isinstance(items, Features)
        assert truth is not None
        rows = items.values[:, 0].astype(np.int64)
        labels = torch.from_numpy(problem.catalog.labels.astype(np.int64))
        found.append(
            Problem(view=real.view[rows], mean=real.mean[rows], labels=labels, truth=truth.labels, is_old=truth.is_old)
        )
    return found


def score(way: Way, problem: Problem) -> list[float]:
    """All, Old and New in percent."""
    free = (problem.labels < 0).numpy()
    found = way(problem).numpy()
    scores = accuracy(problem.truth[free], found[free], problem.is_old[free])
    return [100 * scores.all, 100 * scores.old, 100 * scores.new]


def shown(scores: list[list[float]]) -> str:
    """Means as All / Old / New."""
    return " / ".join(f"{value:.1f}" for value in np.mean(scores, axis=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--folds", type=int, default=4)
    options = parser.parse_args()
    for text in options.data:
        real = real_problem(text)
        held_out = held_out_problems(real, options.folds)
        print(
            f"\n{text}: All / Old / New, mean over {options.seeds} seeds (truth) and {options.folds} folds (held out)\n"
        )
        print("| | held out | truth |\n| :--- | ---: | ---: |", flush=True)
        for name, way in WAYS.items():
            folds = [score(way, problem) for problem in held_out]
            seeds = [score(way, replace(real, seed=seed)) for seed in range(options.seeds)]
            print(f"| {name} | {shown(folds)} | {shown(seeds)} |", flush=True)


if __name__ == "__main__":
    main()
