"""The estimated number of categories of a data, found once on the frozen features and kept."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path

from newkind.clustering import Estimate, estimate_n_categories
from newkind.config import BackboneConfig
from newkind.experiments.cells import slug, trunk_key
from newkind.experiments.paper.dataset import BenchData
from newkind.pipeline.estimate_n_categories import backbone_features, estimate_from_json
from newkind.runs.run import Run

__all__ = ["kept_estimate", "make_estimate"]

logger = logging.getLogger(__name__)


def kept_estimate(data: BenchData, trunk: BackboneConfig, out: Path) -> Estimate | None:
    """What was found before; None if nothing was."""
    path = _path(data, trunk, out)
    if not path.exists():
        return None
    return estimate_from_json(Run(path.parent).read_json(path), path)


def make_estimate(data: BenchData, trunk: BackboneConfig, out: Path) -> Estimate:
    """Finds it out and keeps it."""
    features, images = backbone_features(data.collection, trunk)
    found = estimate_n_categories(features, data.collection.catalog.labels[images], n_known=data.n_known, seed=0)
    logger.info(f"{data.title}: {found.sentence()} (The truth has {data.n_classes}.)")
    path = _path(data, trunk, out)
    path.parent.mkdir(parents=True, exist_ok=True)
    Run(path.parent).write_json(path, found.to_json())
    return found


def _path(data: BenchData, trunk: BackboneConfig, out: Path) -> Path:
    """One a data and a backbone: how many views are cached has no part in it."""
    deciding = None if data.is_ready else {k: v for k, v in trunk_key(trunk).items() if k != "n_views"}
    digest = hashlib.sha256(json.dumps([data.digest, deciding], sort_keys=True).encode()).hexdigest()[:10]
    return out / "estimates" / f"{slug(data.benchmark or data.title)}-{digest}.json"
