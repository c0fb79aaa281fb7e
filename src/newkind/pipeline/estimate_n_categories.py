"""Features of the backbone as loaded, from which the number of categories is estimated."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from newkind.backbone.loader import load_backbone
from newkind.backbone.precision import choose_precision
from newkind.backbone.sources import open_cache
from newkind.config import BackboneConfig
from newkind.data import Collection
from newkind.data.items import Features
from newkind.errors import DataError
from newkind.training.inference import image_features
from newkind.training.network import Encoder

__all__ = ["BackboneFeatures", "backbone_features"]


@dataclass(frozen=True)
class BackboneFeatures:
    """Features of the images of a collection that can be read.

    Parameters
    ----------
    features : Tensor of shape (n, d)
        Class features of evaluation views.
    images : ndarray of int64, shape (n,)
        Numbers of these images in the collection.
    """

    features: Tensor
    images: NDArray[np.int64]


def backbone_features(collection: Collection, config: BackboneConfig) -> BackboneFeatures:
    """Features of the backbone as loaded. They are stored, and `discover` uses them.

    Parameters
    ----------
    collection : Collection
        Images or ready features.
    config : BackboneConfig
        Backbone.

    Returns
    -------
    BackboneFeatures
    """
    items = collection.catalog.items
    if isinstance(items, Features):
        ready = torch.from_numpy(np.ascontiguousarray(items.values, dtype=np.float32))
        return BackboneFeatures(ready, np.arange(len(items)))
    config = choose_precision(replace(config, tuned_blocks=0, views=0))
    source = open_cache(collection, config, load_backbone(config))
    images = np.flatnonzero(source.usable)
    if not len(images):
        raise DataError("None of the images can be read.", code="nothing-readable")
    return BackboneFeatures(image_features(Encoder(None), source, images, device=torch.device("cpu")), images)
