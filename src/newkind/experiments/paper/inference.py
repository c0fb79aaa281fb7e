"""What it takes to assign the unlabelled images: by the nearest prototype, and by semi-supervised k-means on the same features."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from newkind.clustering.kmeans import k_means
from newkind.evaluation import accuracy
from newkind.experiments.cells import Cell, CellResult
from newkind.experiments.paper.features import Trained, trained_features
from newkind.experiments.paper.published import time_of
from newkind.experiments.paper.results import Finished
from newkind.experiments.spread import spread_of
from newkind.methods.gcd import GCDConfig

__all__ = ["inference_rows", "measure_inference"]
FILE = "inference.json"
REPEATS = 5
CHUNK = 4096
WAYS = {"prototypes": ("the nearest prototype", "simgcd"), "k_means": ("semi-supervised k-means", "gcd")}


def measure_inference(cell: Cell, result: CellResult) -> None:
    """Once for a cell; kept beside its result."""
    path = result.run.folder / FILE
    if path.exists():
        return
    trained = trained_features(cell, result)
    labels = cell.data.collection.catalog.labels[trained.images].astype(np.int64)
    found: dict[str, Any] = {"n_images": int((labels < 0).sum()), "device": str(trained.device)}
    for way, (seconds, predicted) in {
        "prototypes": _by_prototypes(trained, labels),
        "k_means": _by_k_means(trained, labels, cell),
    }.items():
        found[way] = {"seconds": seconds, **_scores(cell, trained, labels, predicted)}
    result.run.write_json(path, found)


@torch.no_grad()
def _by_prototypes(trained: Trained, labels: NDArray[np.int64]) -> tuple[float, NDArray[np.int64]]:
    """The median of several times, and the category of each unlabelled image."""
    network = trained.model.network.eval()
    features = trained.features[torch.from_numpy(labels < 0)].to(trained.device)

    def assign() -> Tensor:
        return torch.cat([network.method.logits(rows).argmax(dim=1) for rows in torch.split(features, CHUNK)]).cpu()

    assign()
    times, predicted = [], torch.zeros(0)
    for _ in range(REPEATS):
        start = time.perf_counter()
        predicted = assign()
        times.append(time.perf_counter() - start)
    return median(times), predicted.numpy()


def _by_k_means(trained: Trained, labels: NDArray[np.int64], cell: Cell) -> tuple[float, NDArray[np.int64]]:
    """With the restarts and iterations of our GCD."""
    x = F.normalize(trained.features.to(trained.device), dim=-1)
    k, defaults = trained.model.network.method.n_categories, GCDConfig(n_categories=2)
    start = time.perf_counter()
    found = k_means(
        x,
        k,
        labels=torch.from_numpy(labels),
        n_known=cell.data.n_known,
        n_init=defaults.n_init,
        max_iter=defaults.max_iter,
        seed=cell.seed,
    )
    predicted = found.labels.cpu().numpy()
    return time.perf_counter() - start, predicted[labels < 0]


def _scores(cell: Cell, trained: Trained, labels: NDArray[np.int64], predicted: NDArray[np.int64]) -> dict[str, Any]:
    free = trained.images[labels < 0]
    truth = cell.data.truth.labels[free]
    known = truth >= 0
    scores = accuracy(truth[known], predicted[known], cell.data.truth.is_old[free][known])
    return {name: None if np.isnan(getattr(scores, name)) else getattr(scores, name) for name in ("all", "old", "new")}


def inference_rows(found: Finished) -> list[dict[str, Any]]:
    """A row a way of assigning."""
    kept = [
        result.run.read_json(result.run.folder / FILE)
        for result in found.results
        if (result.run.folder / FILE).exists()
    ]
    if not kept:
        return []
    fast = float(np.mean([content["prototypes"]["seconds"] for content in kept]))
    rows = []
    for way, (words, method) in WAYS.items():
        seconds = float(np.mean([content[way]["seconds"] for content in kept]))
        rows.append(
            {
                "data": found.data.title,
                "label": words,
                "n_images": kept[0]["n_images"],
                "device": kept[0]["device"],
                "seconds": seconds,
                "ratio": f"{seconds / max(fast, 1e-9):,.0f} x",
                **{
                    name: spread_of((content[way][name] for content in kept), times=100)
                    for name in ("all", "old", "new")
                },
                "published_time": time_of(found.data.benchmark, method),
                "seeds": len(kept),
            }
        )
    return rows
