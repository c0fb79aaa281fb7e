"""How many prototypes a run gets: as many as asked for, or estimated from the features of the backbone as loaded."""

from __future__ import annotations

import logging

import torch

from newkind import distributed
from newkind.clustering.estimate import Estimate
from newkind.clustering.n_categories import estimate_n_categories
from newkind.config import DiscoverConfig, NCategories
from newkind.errors import RunError
from newkind.methods.registry import find_method
from newkind.runs.estimate_file import load_estimate, save_estimate
from newkind.runs.run import Run
from newkind.training.data import ImageFeatures

__all__ = ["choose_n_categories", "n_prototypes"]

logger = logging.getLogger(__name__)


def choose_n_categories(run: Run, config: DiscoverConfig, images: ImageFeatures) -> int:
    """Number of prototypes of a run.

    An estimate is made from the features that the method uses, averaged over views. It is saved in the run folder, and a resumed run uses the saved one. A number that the user gives is used as it is, but the estimate is made
    nevertheless, and a number outside of its interval is warned about. A number from the truth needs no estimate.

    Parameters
    ----------
    run : Run
        Run folder.
    config : DiscoverConfig
        Configuration.
    images : ImageFeatures
        All images, seen through the backbone as loaded.

    Returns
    -------
    int
        The same number in every process.
    """
    asked = config.n_categories
    if asked.from_truth and asked.number is not None:
        return asked.number
    is_saved = distributed.broadcast(torch.tensor(int(distributed.main_process() and run.estimate_file.exists())))
    features = None if is_saved else images.features()
    chosen = torch.zeros(1, dtype=torch.int64)
    if distributed.main_process():
        estimate = load_estimate(run)
        if estimate is None and features is not None:
            estimate = estimate_n_categories(features, images.labels.numpy(), n_known=images.n_known, seed=images.seed)
            save_estimate(run, estimate)
        if estimate is None:
            raise RunError(f"{run.estimate_file} was removed while the run was resumed.", code="missing-file")
        if asked.rule == "fixed" and asked.number is not None:
            if estimate.disagrees(asked.number):
                logger.warning(
                    f"Using {asked.number} categories as asked, although the estimate is {estimate.n_categories}, 90 % "
                    f"interval {estimate.low} to {estimate.high}."
                )
            chosen.fill_(asked.number)
            return int(distributed.broadcast(chosen))
        logger.info(estimate.sentence())
        chosen.fill_(n_prototypes(estimate, asked, spare=find_method(config.method_name).method.spare_prototypes))
    return int(distributed.broadcast(chosen))


def n_prototypes(estimate: Estimate, asked: NCategories, *, spare: bool) -> int:
    """Number of prototypes for an estimated number of categories.

    Parameters
    ----------
    estimate : Estimate
        The estimate.
    asked : NCategories
        What was asked for: estimated, or at most a number.
    spare : bool
        Whether the method leaves unused what it does not need, and gets spare prototypes.

    Returns
    -------
    int
    """
    wanted = estimate.generous() if spare else estimate.n_categories
    return wanted if asked.number is None else min(wanted, asked.number)
