"""`predict`: assign images that a run has not seen to its categories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from newkind.backbone.loader import Backbone
from newkind.backbone.sources import OnlineTokens, ReadyFeatures, TokenSource
from newkind.data import Skipped
from newkind.data.items import Features, Images
from newkind.errors import DataError
from newkind.progress import quiet
from newkind.runs.assignments import Assignment, assignments_of
from newkind.runs.model_io import LoadedModel
from newkind.setting import check_min_confidence
from newkind.training.group_evidence import GroupEvidence
from newkind.training.inference import predict_readable, view_mean

__all__ = ["Prediction", "model_features", "predict", "probabilities"]


@dataclass(frozen=True)
class Prediction:
    """Result of `predict`.

    Parameters
    ----------
    assignments : list of Assignment
        Exactly one per input, in order. An image that cannot be read has the status `unreadable` and no category.
    skipped : tuple of Skipped
        Images that cannot be read, with the reasons.
    """

    assignments: list[Assignment]
    skipped: tuple[Skipped, ...]


def predict(
    model: LoadedModel,
    items: Images | Features,
    *,
    groups: NDArray[np.int64] | None = None,
    min_confidence: float = 0.0,
    advance: Callable[[int], None] = quiet,
) -> Prediction:
    """Assign items to the categories of a model, each decoded once, with the views that the categories were found with.

    Parameters
    ----------
    model : LoadedModel
        Model of a finished run.
    items : Images or Features
        As from `newkind.pipeline.predict_inputs.read_inputs`.
    groups : ndarray of int64, shape (n,), optional
        Groups whose items share a category, by the evidence of all that can be read; -1 for none.
    min_confidence : float, default=0.0
        Items with a lower confidence get the status `unsure`; their categories stay.
    advance : callable, optional
        Called with the number of items of each finished batch.

    Returns
    -------
    Prediction
    """
    check_min_confidence(min_confidence)
    source, device = _open_source(model, items)
    readable, predictions = predict_readable(
        model.network,
        source,
        len(items),
        layout=model.layout,
        device=device,
        views=model.views,
        groups=groups,
        advance=advance,
    )
    names = [items.names[int(i)] for i in readable]
    found = assignments_of(names, np.full(len(names), -1), model.categories, predictions, min_confidence=min_confidence)
    assignments = [Assignment(name, "", "unreadable", 0.0, "", 0.0) for name in items.names]
    for i, assignment in zip(readable, found, strict=True):
        assignments[int(i)] = assignment
    return Prediction(assignments, source.skipped)


def _open_source(model: LoadedModel, items: Images | Features) -> tuple[TokenSource, torch.device]:
    """Source of tokens for a model, and the device to compute on; raises if the model is for other items."""
    backbone: Backbone | None = model.backbone
    if isinstance(items, Features):
        dim = items.values.shape[1]
        if backbone is not None or dim != model.dim:
            wanted = "images" if backbone is not None else f"{model.dim} features"
            raise DataError(
                f"X has {dim} features, but the model is expecting {wanted} as input.", code="wrong-input", dim=dim
            )
        return ReadyFeatures(items), torch.device("cpu")
    if backbone is None:
        raise DataError(
            "The run was made from ready features and cannot predict images.",
            fix="Give it features of the same kind.",
            code="wrong-input",
        )
    seed = model.config.view_seed
    source = OnlineTokens(items, backbone.trunk, backbone.recipe, device=backbone.device, seed=seed)
    return source, backbone.device


@torch.no_grad()
def model_features(model: LoadedModel, items: Images | Features) -> tuple[NDArray[np.float32], tuple[Skipped, ...]]:
    """Averaged features (n, d) of items, not normalised, NaN for those that cannot be read; and these, with the reasons."""
    source, device = _open_source(model, items)
    batches = [np.arange(i, min(i + 64, len(items))) for i in range(0, len(items), 64)]
    network, views = model.network.eval(), model.views
    features = np.full((len(items), model.dim), np.nan, dtype=np.float32)
    for batch, found in zip(batches, source.evaluation_batches(iter(batches), views), strict=True):
        if len(found.rows):
            own = view_mean(network.features(found.tokens.to(device)), len(views))
            features[batch[found.rows]] = own.cpu().numpy()
    return features, source.skipped


@torch.no_grad()
def probabilities(
    model: LoadedModel, features: NDArray[np.float32], *, groups: NDArray[np.int64] | None = None
) -> NDArray[np.float32]:
    """Probabilities (n, K) of the categories of a model for features (n, d); NaN where the features are.

    Items of a group, -1 for none, get the probabilities that follow from the evidence of all of them.
    """
    found = np.full((len(features), len(model.categories)), np.nan, dtype=np.float32)
    readable = np.flatnonzero(np.isfinite(features).all(axis=1))
    if not len(readable):
        return found
    device = next(model.network.method.parameters(), torch.zeros(0)).device
    p = model.layout.probabilities(
        model.network.category_probabilities(torch.from_numpy(features[readable]).to(device))
    )
    if groups is not None:
        evidence, everything = GroupEvidence(groups[readable], torch.full((len(readable),), -1)), slice(0, len(p))
        evidence.add(p, everything)
        p = evidence.share(p, everything)
    found[readable] = p.cpu().numpy()
    return found
