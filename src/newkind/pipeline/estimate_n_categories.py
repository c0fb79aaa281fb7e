"""Features of the backbone as loaded, from which the number of categories is estimated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from newkind.backbone.loader import load_backbone
from newkind.backbone.sources import log_skipped, open_source
from newkind.config import BackboneConfig
from newkind.data import Collection
from newkind.data.items import Features
from newkind.errors import DataError
from newkind.progress import progress_bar

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
    """Features of the backbone as loaded, from the token cache if it is there, otherwise from one pass.

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
    backbone = load_backbone(config)
    source = open_source(collection, config, backbone, online_if_missing=True)
    batches = [np.arange(i, min(i + 64, len(items))) for i in range(0, len(items), 64)]
    rows, images = [], []
    with progress_bar("Computing features", len(items), show=len(items) > 500) as advance, torch.no_grad():
        for batch, found in zip(batches, source.evaluation_batches(iter(batches)), strict=True):
            if len(found.rows):
                rows.append(backbone.tuned(found.tokens.to(backbone.device)).float().cpu())
                images.append(batch[found.rows])
            advance(len(batch))
    log_skipped(source.skipped)
    if not rows:
        raise DataError("None of the images can be read.", code="nothing-readable")
    return BackboneFeatures(torch.cat(rows), np.concatenate(images))
