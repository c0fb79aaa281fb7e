"""Features of some classes before and after training in the plane (t-SNE), and how well the classes are separated."""

from __future__ import annotations

from typing import Any, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from newkind.experiments.cells import Cell, CellResult
from newkind.experiments.paper.dataset import BenchData
from newkind.experiments.paper.features import Trained, trained_features
from newkind.experiments.paper.results import Finished
from newkind.pipeline.estimate_n_categories import backbone_features

__all__ = ()

FILE = "tsne.json"
N_CLASSES, N_IMAGES = 10, 100
"""Number of classes, drawn at random from the truth, and largest number of unlabelled images per class."""
PERPLEXITY, FEW = 30.0, 200


class _Plane(TypedDict):
    """Points of one set of features in the plane."""

    points: list[list[float]]
    silhouette: float | None


class _Points(TypedDict):
    """tsne.json."""

    classes: list[str]
    is_old: list[bool]
    before: _Plane
    after: _Plane


def measure_embedding(data: BenchData, cell: Cell, result: CellResult) -> None:
    """Measure once per cell and write tsne.json beside its result."""
    path = result.run.folder / FILE
    if path.exists():
        return
    trained = trained_features(cell, result)
    chosen = _choose(data, trained.images)
    truth = data.truth.labels[trained.images[chosen]]
    found: dict[str, Any] = {
        "classes": [data.truth.class_names[int(k)] for k in truth],
        "is_old": [bool(k < data.truth.n_old) for k in truth],
    }
    for name, features in {"before": _before(data, cell, trained), "after": _after(data, trained)}.items():
        x = F.normalize(features[chosen].float(), dim=-1).numpy()
        found[name] = {"points": _plane(x), "silhouette": _silhouette(x, truth)}
    result.run.write_json(path, found)


def _choose(data: BenchData, images: NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices into `images` (n,), the same for every run on a data."""
    truth, rng = data.truth.labels[images], np.random.default_rng(0)
    is_free = ~data.collection.catalog.is_labelled[images]
    classes, counts = np.unique(truth[is_free & (truth >= 0)], return_counts=True)
    classes = classes[counts >= 2]
    classes = np.sort(rng.permutation(classes)[:N_CLASSES])
    members = [np.flatnonzero(is_free & (truth == k)) for k in classes]
    return np.concatenate([np.sort(rng.permutation(rows)[:N_IMAGES]) for rows in members])


def _before(data: BenchData, cell: Cell, trained: Trained) -> Tensor:
    """Features (n, d) of the backbone as loaded."""
    if data.is_ready:
        return trained.features
    found = backbone_features(data.collection, cell.config.backbone)
    place = {int(image): row for row, image in enumerate(found.images)}
    return found.features[torch.tensor([place[int(image)] for image in trained.images])]


@torch.no_grad()
def _after(data: BenchData, trained: Trained) -> Tensor:
    """Features (n, d) of the tuned backbone; of precomputed features the output of the projector."""
    if not data.is_ready:
        return trained.features
    projector = getattr(trained.model.network.eval().method, "projector", None)
    return trained.features if projector is None else projector(trained.features)


def _plane(x: NDArray[np.float32]) -> list[list[float]]:
    """t-SNE of features (n, d): n pairs of coordinates."""
    from sklearn.manifold import TSNE

    perplexity = min(PERPLEXITY, max((len(x) - 1) / 3, 1.0))
    method = "exact" if len(x) < FEW else "barnes_hut"  # for few points, starting the threads of barnes_hut dominates
    points = TSNE(perplexity=perplexity, init="pca", method=method, random_state=0).fit_transform(x)
    return [[round(float(a), 3), round(float(b), 3)] for a, b in points]


def _silhouette(x: NDArray[np.float32], classes: NDArray[np.integer]) -> float | None:
    """Silhouette of classes (n,) among features (n, d); None where it is not defined."""
    from sklearn.metrics import silhouette_score

    return float(silhouette_score(x, classes, metric="cosine")) if 2 <= len(set(classes.tolist())) < len(x) else None


def kept_points(found: Finished) -> dict[str, Any] | None:
    """Content of tsne.json of the first seed that has one; None if nothing was measured yet."""
    for result in found.results:
        path = result.run.folder / FILE
        if path.exists():
            return result.run.read_json(path, _Points)
    return None


def embedding_rows(found: Finished) -> list[dict[str, Any]]:
    """Table rows with the separation of the classes before and after training; none if nothing was measured yet."""
    kept = kept_points(found)
    if kept is None:
        return []
    return [
        {
            "data": found.data.title,
            "label": label,
            "n_images": len(kept["classes"]),
            "n_classes": len(set(kept["classes"])),
            "silhouette": None if kept[name]["silhouette"] is None else round(kept[name]["silhouette"], 3),
        }
        for name, label in {"before": "before", "after": f"after ({found.row.label})"}.items()
    ]
