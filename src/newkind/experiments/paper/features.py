"""The features of a data before and after training: what the inference and the t-SNE studies look at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from newkind.backbone.loader import prepare_cache
from newkind.backbone.online import OnlineTokens
from newkind.backbone.ready import ReadyFeatures
from newkind.backbone.tokens import TokenSource
from newkind.data import Features
from newkind.errors import RunError
from newkind.experiments.cells import Cell, CellResult
from newkind.runs.model_io import LoadedModel, load_model
from newkind.training.inference import image_features

__all__ = ["Trained", "trained_features"]


@dataclass(frozen=True, eq=False)
class Trained:
    """A finished cell's model, and the features that it gives."""

    model: LoadedModel
    features: Tensor
    """(n, d), on the CPU"""
    images: NDArray[np.int64]
    """(n,): numbers of the usable images"""
    device: torch.device


def trained_features(cell: Cell, result: CellResult) -> Trained:
    """From the token cache, from fresh looks for a cell that was trained on those, or as they are for ready features."""
    trunk, items = cell.config.backbone, cell.data.collection.catalog.items
    model = load_model(result.run, device=trunk.device, weights=trunk.weights)
    prepared = model.prepared
    source: TokenSource | None
    if isinstance(items, Features):
        source = ReadyFeatures(items)
    elif prepared is None:
        raise RunError(f"{result.run.folder} was trained on ready features, not on images.")
    elif cell.config.online:
        source = OnlineTokens(items, prepared.trunk, trunk.recipe, device=prepared.device)
    else:
        source = prepare_cache(cell.data.collection, trunk, prepared)
    if source is None:
        raise RunError("The token cache could not be opened.")
    device = torch.device("cpu") if prepared is None else prepared.device
    images = np.flatnonzero(source.usable)
    return Trained(model, image_features(model.network, source, images, device=device), images, device)
