"""Estimated number of categories of a data, computed once from the frozen features and kept."""

from __future__ import annotations

import logging
from pathlib import Path

from newkind.atomic import make_folder, write_errors, write_json
from newkind.clustering.estimate import Estimate
from newkind.clustering.n_categories import estimate_n_categories
from newkind.config import BackboneConfig
from newkind.experiments.cells import backbone_key, slug
from newkind.experiments.paper.dataset import BenchData
from newkind.pipeline.estimate_n_categories import backbone_features
from newkind.runs.estimate_file import estimate_from_json
from newkind.runs.fingerprint import digest_of
from newkind.runs.run import Run

__all__ = ["estimate_for"]

logger = logging.getLogger(__name__)


def estimate_for(data: BenchData, config: BackboneConfig, out: Path, *, compute: bool = True) -> Estimate | None:
    """Estimate of an earlier call, or a new one, which is kept in `out`/estimates.

    Parameters
    ----------
    data : BenchData
        The data.
    config : BackboneConfig
        Configuration of the backbone.
    out : Path
        Folder of the study.
    compute : bool, default=True
        Whether to compute an estimate if there is none.

    Returns
    -------
    Estimate or None
        None if there is none and it is not computed.
    """
    # The number of cached views has no influence on the estimate.
    deciding = None if data.is_ready else {k: v for k, v in backbone_key(config).items() if k != "views"}
    name = f"{slug(data.benchmark or data.title)}-{digest_of(data.digest, deciding)[:10]}.json"
    path = out / "estimates" / name
    if path.exists():
        return estimate_from_json(Run(path.parent).read_json(path), path)
    if not compute:
        return None
    found = backbone_features(data.collection, config)
    labels = data.collection.catalog.labels[found.images]
    estimate = estimate_n_categories(found.features, labels, n_known=data.n_known, seed=0)
    logger.info(f"{data.title}: {estimate.sentence()} The true number is {data.n_classes}.")
    with write_errors(path.parent):
        make_folder(path.parent)
    write_json(path, estimate.to_json())
    return estimate
