"""From the last predictions to the files of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from newkind import distributed
from newkind.config import DiscoverConfig
from newkind.data import Collection
from newkind.evaluation import Accuracy, Evaluation, evaluate
from newkind.pipeline.confidence import confidence_card
from newkind.pipeline.setup import Setup
from newkind.runs.assignments import (
    Assignment,
    Category,
    assignments_of,
    category_rows,
    name_categories,
    write_assignments,
)
from newkind.runs.estimate_file import load_estimate
from newkind.runs.metadata import metadata_csv, metadata_from
from newkind.runs.model_io import save_model
from newkind.runs.run import Run
from newkind.training.data import TrainingData
from newkind.training.inference import Predictions
from newkind.training.trainer import ReadOut, Trainer

__all__ = ["Outcome", "Scored", "scored_predictions", "write_results"]


@dataclass(frozen=True)
class Outcome:
    """Result of a discovery.

    Parameters
    ----------
    run : Run
        The run folder.
    categories : list of Category
        All categories.
    assignments : list of Assignment
        One per image that could be read.
    evaluation : Evaluation or None
        All scores, if the data has a truth.
    seconds : dict of str to float
        Time of each stage: features, training (without epochs: fitting), assigning.
    """

    run: Run
    categories: list[Category]
    assignments: list[Assignment]
    evaluation: Evaluation | None
    seconds: dict[str, float]

    @property
    def scores(self) -> Accuracy | None:
        """Accuracy under one matching, if the data has a truth."""
        return None if self.evaluation is None else self.evaluation.accuracy

    def count(self, status: str) -> int:
        """Number of images with a status: labelled, known, new or unsure."""
        return sum(line.status == status for line in self.assignments)

    @property
    def n_new_categories(self) -> int:
        """Number of new categories in use."""
        return sum(category.status == "new" and category.n_images > 0 for category in self.categories)


class Scored(NamedTuple):
    """Unlabelled images whose truth is known: what one matching is made over. Arrays of shape (n,)."""

    truth: NDArray[np.integer]
    best: NDArray[np.int64]
    is_old: NDArray[np.bool_]
    novelty: NDArray[np.float32]
    confidence: NDArray[np.float32]


def scored_predictions(collection: Collection, data: TrainingData, predictions: Predictions) -> Scored | None:
    """Truth, prediction and Old/New of the images that are scored; None if there are none."""
    if collection.truth is None:
        return None
    truth = collection.truth.labels[data.images]
    scored = data.is_unlabelled & (truth >= 0)
    is_old = collection.truth.is_old[data.images]
    if not scored.any():
        return None
    return Scored(
        truth[scored],
        predictions.best[scored],
        is_old[scored],
        predictions.novelty[scored],
        predictions.best_probability[scored],
    )


def write_results(
    run: Run, collection: Collection, config: DiscoverConfig, setup: Setup, trainer: Trainer, found: ReadOut
) -> Outcome:
    """Name the categories, assign the images, compute scores, and write all of it."""
    data, predictions, known = trainer.data, found.predictions, collection.catalog.class_names
    free = data.is_unlabelled
    n_categories = trainer.network.method.n_categories
    categories = name_categories(
        known,
        n_categories,
        predictions.best[free],
        predictions.best_probability[free],
        min_confidence=config.min_confidence,
    )
    names = [collection.catalog.items.names[int(i)] for i in data.images]
    assignments = assignments_of(names, data.labels, categories, predictions, min_confidence=config.min_confidence)
    scored = scored_predictions(collection, data, predictions)
    evaluation = None
    if scored is not None and collection.truth is not None:
        evaluation = evaluate(
            scored.truth,
            scored.best,
            scored.is_old,
            collection.truth.class_names,
            n_known=len(known),
            novelty=scored.novelty,
            confidence=scored.confidence,
            is_sure=scored.confidence >= config.min_confidence if config.min_confidence else None,
        )
    if distributed.main_process():
        run.update_config(n_categories=run.config()["n_categories"] | {"used": n_categories})
        run.write_json(run.categories_file, category_rows(categories, load_estimate(run)))
        confidence = confidence_card(trainer.network.method)
        save_model(
            run, trainer.network, config, data=data, dim=setup.dim, backbone=setup.backbone, confidence=confidence
        )
        if evaluation is not None:
            run.write_json(run.scores_file, evaluation.to_dict())
        run.write_features(found.features.numpy())
        metadata = metadata_from(collection.catalog.items.names, collection.metadata)
        if metadata.columns:
            run.write_text(run.metadata_file, metadata_csv(names, metadata))
        write_assignments(run, assignments, metadata)
    return Outcome(run, categories, assignments, evaluation, {})
