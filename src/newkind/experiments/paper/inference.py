"""Time to assign the unlabelled images: by the nearest prototype, and by semi-supervised k-means on the same features."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional as F

from newkind.clustering.kmeans import k_means
from newkind.evaluation import accuracy, by_name
from newkind.experiments.cells import BY_NAME, Cell, CellResult
from newkind.experiments.paper.dataset import BenchData
from newkind.experiments.paper.features import Trained, trained_features
from newkind.experiments.paper.published import time_of
from newkind.experiments.paper.results import ACCURACIES, Finished
from newkind.experiments.spread import spread_of
from newkind.methods.gcd import GCDConfig

__all__ = ()

FILE = "inference.json"
REPEATS = 5
CHUNK = 4096
Labels = NDArray[np.int64]


class _Time(TypedDict):
    """Time of one way to assign images; its scores are beside it."""

    seconds: float


class _Measured(TypedDict):
    """inference.json."""

    n_images: int
    device: str
    prototypes: _Time
    k_means: _Time


@dataclass(frozen=True)
class _Way:
    """A way to assign images: its name, the method whose published time it is compared with, and the function."""

    title: str
    method: str
    assign: Callable[[BenchData, Cell, Trained, Labels], tuple[float, Labels]]


def measure_inference(data: BenchData, cell: Cell, result: CellResult) -> None:
    """Measure once per cell and write inference.json beside its result."""
    path = result.run.folder / FILE
    if path.exists():
        return
    trained = trained_features(cell, result)
    labels = data.collection.catalog.labels[trained.images].astype(np.int64)
    found: dict[str, Any] = {"n_images": int((labels < 0).sum()), "device": str(trained.device)}
    for name, way in WAYS.items():
        seconds, predicted = way.assign(data, cell, trained, labels)
        found[name] = {"seconds": seconds, **_scores(data, trained.images[labels < 0], predicted)}
    result.run.write_json(path, found)


@torch.no_grad()
def _by_prototypes(_: BenchData, __: Cell, trained: Trained, labels: Labels) -> tuple[float, Labels]:
    """Median time of several repeats, and the category of each unlabelled image."""
    method = trained.model.network.eval().method
    features = trained.features[torch.from_numpy(labels < 0)].to(trained.device)

    def assign() -> Labels:
        parts = [method.logits(rows).argmax(dim=1) for rows in torch.split(features, CHUNK)]
        predicted: Labels = torch.cat(parts).cpu().numpy()
        return predicted

    predicted, times = assign(), []
    for _repeat in range(REPEATS):
        start = time.perf_counter()
        assign()
        times.append(time.perf_counter() - start)
    return median(times), predicted


def _by_k_means(data: BenchData, cell: Cell, trained: Trained, labels: Labels) -> tuple[float, Labels]:
    """Time and categories with the restarts and iterations of our GCD."""
    x = F.normalize(trained.features.to(trained.device), dim=-1)
    k, defaults = trained.model.network.method.n_categories, GCDConfig()
    start = time.perf_counter()
    found = k_means(
        x,
        k,
        labels=torch.from_numpy(labels),
        n_known=data.n_known,
        n_init=defaults.n_init,
        max_iter=defaults.max_iter,
        seed=cell.seed,
    )
    predicted = found.labels.cpu().numpy()
    return time.perf_counter() - start, predicted[labels < 0]


WAYS = {
    "prototypes": _Way("the nearest prototype", "simgcd", _by_prototypes),
    "k_means": _Way("semi-supervised k-means", "gcd", _by_k_means),
}


def _scores(data: BenchData, images: Labels, predicted: Labels) -> dict[str, Any]:
    """Accuracy of predicted categories (n,) of unlabelled images (n,)."""
    truth = data.truth.labels[images]
    known = truth >= 0
    answer = truth[known], predicted[known], data.truth.is_old[images][known]
    kinds = {"": accuracy(*answer), BY_NAME: by_name(*answer, n_known=data.n_known)}
    found = {start + part: getattr(scores, part) for start, scores in kinds.items() for part in ("all", "old", "new")}
    return {name: None if np.isnan(value) else value for name, value in found.items()}


def inference_rows(found: Finished) -> list[dict[str, Any]]:
    """One table row per way of assigning; none if nothing was measured yet."""
    folders = [result.run for result in found.results if (result.run.folder / FILE).exists()]
    kept = [run.read_json(run.folder / FILE, _Measured) for run in folders]
    if not kept:
        return []
    seconds = {name: fmean(content[name]["seconds"] for content in kept) for name in WAYS}
    return [
        {
            "data": found.data.title,
            "label": way.title,
            "n_images": kept[0]["n_images"],
            "device": kept[0]["device"],
            "seconds": seconds[name],
            "ratio": f"{seconds[name] / max(seconds['prototypes'], 1e-9):,.0f} x",
            **{part: spread_of((content[name].get(part) for content in kept), times=100) for part in ACCURACIES},
            "published_time": time_of(found.data.benchmark, way.method),
            "seeds": len(kept),
        }
        for name, way in WAYS.items()
    ]
