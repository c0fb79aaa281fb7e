"""How many prototypes a run gets, where nobody knows the number of categories or the one that was asked for is hard to believe."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from newkind.clustering.n_categories import Estimate, estimate_n_categories, median_estimate
from newkind.config import DiscoverConfig
from newkind.methods.method import Method
from newkind.pipeline.estimate_n_categories import load_estimate, save_estimate
from newkind.runs.run import Run

__all__ = ["choose_n_categories"]

logger = logging.getLogger(__name__)


def choose_n_categories(
    run: Run,
    config: DiscoverConfig,
    method: Method,
    views: Sequence[Tensor],
    labels: NDArray[np.integer],
    *,
    n_known: int,
) -> int:
    """The middle of what each view (n, d) says; what was found out for this run before is kept. labels (n,), -1 for unlabelled."""
    estimate = load_estimate(run)
    if estimate is None:
        seed = config.training.seed
        estimate = median_estimate([estimate_n_categories(view, labels, n_known=n_known, seed=seed) for view in views])
        save_estimate(run, estimate)
    logger.info(estimate.sentence())
    return _number_of_prototypes(estimate, config, method)


def _number_of_prototypes(estimate: Estimate, config: DiscoverConfig, method: Method) -> int:
    asked = config.method.n_categories
    if config.auto_k:
        # A method that starts at random leaves unused what it does not need; one that starts from clusters splits them.
        return estimate.generous() if method.merges and not method.starts else estimate.n_categories
    if estimate.way == "guess" or asked <= estimate.high:
        return asked
    logger.info(
        f"{asked} categories are more than these images seem to have: {estimate.n_categories} are looked for "
        f"(--exactly insists on {asked})."
    )
    return estimate.n_categories
