"""The features of a few classes before and after training, as points in the plane (t-SNE), and how well classes keep apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from newkind.experiments.cells import Cell, CellResult
from newkind.experiments.paper.features import Trained, trained_features
from newkind.experiments.paper.results import Finished
from newkind.pipeline.estimate_n_categories import backbone_features

__all__ = ["embedding_rows", "kept_points", "measure_embedding"]
FILE = "tsne.json"
N_CLASSES, N_IMAGES = 10, 100
"""How many classes, drawn at random from the truth, and at most how many unlabelled images of each."""
PERPLEXITY, FEW = 30.0, 200


def measure_embedding(cell: Cell, result: CellResult) -> None:
    """Once for a cell; kept beside its result."""
    path = result.run.folder / FILE
    if path.exists():
        return
    trained = trained_features(cell, result)
    chosen = _choose(cell, trained.images)
    truth = cell.data.truth.labels[trained.images[chosen]]
    found: dict[str, Any] = {
        "classes": [cell.data.truth.class_names[int(k)] for k in truth],
        "is_old": [bool(k < cell.data.truth.n_old) for k in truth],
    }
    for name, features in (
        ("before", _before(cell, trained)[chosen]),
        ("after", _after(cell, trained)[chosen]),
    ):
        x = F.normalize(features.float(), dim=-1).numpy()
        found[name] = {"points": _plane(x), "silhouette": _silhouette(x, truth)}
    result.run.write_json(path, found)


def _choose(cell: Cell, images: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of `images`; the same for every run of a data."""
    truth, rng = cell.data.truth.labels[images], np.random.default_rng(0)
    is_free = ~cell.data.collection.catalog.is_labelled[images]
    classes, counts = np.unique(truth[is_free & (truth >= 0)], return_counts=True)
    classes = classes[counts >= 2]
    classes = np.sort(rng.permutation(classes)[:N_CLASSES])
    members = [np.flatnonzero(is_free & (truth == k)) for k in classes]
    return np.concatenate([np.sort(rng.permutation(rows)[:N_IMAGES]) for rows in members])


def _before(cell: Cell, trained: Trained) -> Tensor:
    """(n, d) of the backbone as it came."""
    if cell.data.is_ready:
        return trained.features
    features, images = backbone_features(cell.data.collection, cell.config.backbone)
    place = {int(image): row for row, image in enumerate(images)}
    return features[torch.tensor([place[int(image)] for image in trained.images])]


@torch.no_grad()
def _after(cell: Cell, trained: Trained) -> Tensor:
    """(n, d) of the tuned backbone. Of ready features nothing is tuned but the heads: there it is the projector's output."""
    if not cell.data.is_ready:
        return trained.features
    projector = getattr(trained.model.network.eval().method, "projector", None)
    return trained.features if projector is None else projector(trained.features)


def _plane(x: NDArray[np.float32]) -> list[list[float]]:
    from sklearn.manifold import TSNE

    perplexity = min(PERPLEXITY, max((len(x) - 1) / 3, 1.0))
    method = "exact" if len(x) < FEW else "barnes_hut"  # whose threads take longer to meet than few points take
    points = TSNE(perplexity=perplexity, init="pca", method=method, random_state=0).fit_transform(x)
    return [[round(float(a), 3), round(float(b), 3)] for a, b in points]


def _silhouette(x: NDArray[np.float32], classes: NDArray[np.integer]) -> float | None:
    from sklearn.metrics import silhouette_score

    return float(silhouette_score(x, classes, metric="cosine")) if 2 <= len(set(classes.tolist())) < len(x) else None


def kept_points(found: Finished) -> dict[str, Any] | None:
    """What was measured for the first seed; None if it was not yet."""
    for result in found.results:
        path = result.run.folder / FILE
        if path.exists():
            return result.run.read_json(path)
    return None


def embedding_rows(found: Finished) -> list[dict[str, Any]]:
    """How well the classes keep apart, before and after."""
    kept = kept_points(found)
    if kept is None:
        return []
    words = {"before": "before", "after": f"after ({found.row.label})"}
    return [
        {
            "data": found.data.title,
            "label": words[name],
            "n_images": len(kept["classes"]),
            "n_classes": len(set(kept["classes"])),
            "silhouette": None if kept[name]["silhouette"] is None else round(kept[name]["silhouette"], 3),
        }
        for name in ("before", "after")
    ]
