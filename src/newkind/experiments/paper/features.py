"""Features of a finished cell's model, for the studies of inference time and of embeddings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from newkind.backbone.sources import open_source
from newkind.experiments.cells import Cell, CellResult
from newkind.runs.model_io import LoadedModel, load_model
from newkind.training.inference import image_features

__all__ = ()


@dataclass(frozen=True, eq=False)
class Trained:
    """Model of a finished cell, the features (n, d) that it computes, on the CPU, and indices (n,) of the usable images."""

    model: LoadedModel
    features: Tensor
    images: NDArray[np.int64]
    device: torch.device


def trained_features(cell: Cell, result: CellResult) -> Trained:
    """Load the model of a finished cell and compute the features of all usable images."""
    config = cell.config.backbone
    model = load_model(result.run, device=config.device, weights=config.weights)
    backbone = model.backbone
    source = open_source(cell.collection, config, backbone, online=cell.config.online, views=model.views)
    device = torch.device("cpu") if backbone is None else backbone.device
    images = np.flatnonzero(source.usable)
    features = image_features(model.network, source, images, device=device, views=model.views)
    return Trained(model, features, images, device)
