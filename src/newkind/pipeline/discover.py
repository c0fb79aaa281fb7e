"""`discover`: from a collection to a finished run, stage by stage."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from newkind import distributed
from newkind.backbone.sources import announce_cache
from newkind.config import DiscoverConfig, to_json
from newkind.data import Collection
from newkind.data.items import FileImages
from newkind.evaluation import Accuracy, accuracy, by_name
from newkind.pipeline.announce import announce_data, announce_training
from newkind.pipeline.choose_n_categories import choose_n_categories
from newkind.pipeline.results import Outcome, scored_predictions, write_results
from newkind.pipeline.setup import Setup, check_request, fit_batch, load_setup, new_network, open_images
from newkind.runs.fingerprint import deciding_settings, digest_of
from newkind.runs.run import Run
from newkind.training.checkpoint import load_checkpoint
from newkind.training.data import ImageFeatures, TrainingData
from newkind.training.network import Encoder
from newkind.training.trainer import EpochReport, ReadOut, Trainer

__all__ = ["OnEpoch", "Outcome", "discover"]

logger = logging.getLogger(__name__)
OnEpoch = Callable[[EpochReport, Accuracy | None], None]


def discover(
    collection: Collection,
    out: Path,
    config: DiscoverConfig,
    *,
    overwrite: bool = False,
    resume: bool = False,
    dry_run: bool = False,
    on_epoch: OnEpoch | None = None,
) -> Outcome | None:
    """Discover the categories of a collection and write a run folder.

    The same call resumes an interrupted run.

    Parameters
    ----------
    collection : Collection
        Images or features, some of them labelled.
    out : Path
        Run folder.
    config : DiscoverConfig
        Configuration, as made by `configure`.
    overwrite : bool, default=False
        Replace the run in `out`.
    resume : bool, default=False
        Fail unless there is a run to resume.
    dry_run : bool, default=False
        Only log what would be done, with time and disk space.
    on_epoch : callable, optional
        Called in the main process after each epoch, with its report and, if it was evaluated, its accuracy.

    Returns
    -------
    Outcome or None
        None for a dry run.
    """
    started = time.perf_counter()
    check_request(collection, config)
    announce_data(collection)
    config = fit_batch(config, len(collection.catalog))
    setup = load_setup(collection, config)
    announce_training(collection, config, setup)
    if dry_run:
        if setup.backbone is not None and not config.online:
            announce_cache(collection, config.backbone, setup.backbone)
        return None
    data = open_images(collection, config, setup)
    config = fit_batch(config, len(data.images))
    tokens_done = time.perf_counter()
    fingerprint = _fingerprint(collection, config, setup, data)
    with _opened(out, fingerprint, overwrite=overwrite, resume=resume) as run:
        _write_start(run, collection, config, setup, fingerprint)
        trainer = _new_trainer(run, config, setup, data, fingerprint)
        trainer.train(_Monitor(run, collection, trainer, on_epoch))
        training_done = time.perf_counter()
        outcome = write_results(run, collection, config, setup, trainer, _final_read_out(trainer, config))
    stages = {"tokens": tokens_done - started, "training": training_done - tokens_done}
    return replace(outcome, seconds=stages | {"assigning": time.perf_counter() - training_done})


def _fingerprint(collection: Collection, config: DiscoverConfig, setup: Setup, data: TrainingData) -> str:
    """Fingerprint of everything that decides the result."""
    return digest_of(
        deciding_settings(config),
        list(collection.catalog.class_names),
        data.labels,
        data.source.content_hash(),
        setup.backbone.sha256 if setup.backbone else None,
        distributed.world_size(),
    )


@contextmanager
def _opened(out: Path, fingerprint: str, *, overwrite: bool, resume: bool) -> Iterator[Run]:
    """The run folder, created and locked by the main process."""
    if not distributed.main_process():
        distributed.barrier()
        yield Run(out)
        return
    run = Run.start(out, fingerprint=fingerprint, overwrite=overwrite, must_exist=resume)
    with run.locked():
        distributed.barrier()
        yield run


def _write_start(run: Run, collection: Collection, config: DiscoverConfig, setup: Setup, fingerprint: str) -> None:
    """Write config.json and environment.json, and remove metrics that will be written again."""
    if not distributed.main_process():
        return
    found = load_checkpoint(run.checkpoint_file)
    finished = 0 if found is None or found.fingerprint != fingerprint else found.finished_epochs
    if finished:
        logger.info(f"Resuming after epoch {finished} of {config.training.epochs}.")
    items = collection.catalog.items
    run.write_config(
        {
            "data": collection.location or collection.origin,
            "root": str(items.root.resolve()) if isinstance(items, FileImages) else None,
            "fingerprint": fingerprint,
            "config": to_json(config),
            "n_categories": {"asked": str(config.n_categories.number or "auto")},
        }
    )
    weights = (
        {}
        if setup.backbone is None
        else {
            "weights_sha256": setup.backbone.sha256,
            "weights_source": setup.backbone.source,
        }
    )
    run.write_environment(device=str(setup.device), processes=distributed.world_size(), **weights)
    run.cut_metrics(finished)


def _new_trainer(run: Run, config: DiscoverConfig, setup: Setup, data: TrainingData, fingerprint: str) -> Trainer:
    """Choose the number of categories and build a trainer of a new network with that many prototypes."""
    encoder = Encoder(setup.tuned_copy()).to(setup.device)
    images = ImageFeatures(encoder, data, device=setup.device, seed=config.training.seed)
    n_categories = choose_n_categories(run, config, images)
    if distributed.main_process():
        run.update_config(n_categories=run.config()["n_categories"] | {"prototypes": n_categories})
    return Trainer(
        new_network(config, setup, n_categories),
        data,
        config.training,
        device=setup.device,
        checkpoint=run.checkpoint_file,
        fingerprint=fingerprint,
    )


def _final_read_out(trainer: Trainer, config: DiscoverConfig) -> ReadOut:
    """Read out a trained network; unless the number of categories was given, empty, tiny and duplicate ones are merged."""
    found = trainer.read_out(final=True)
    if config.n_categories.rule != "fixed" and trainer.network.method.spare_prototypes:
        merging, found = trainer.merge(found)
        logger.info(merging.sentence())
    return found


class _Monitor:
    """After each epoch: evaluates if due, and appends a row to metrics.jsonl."""

    def __init__(self, run: Run, collection: Collection, trainer: Trainer, on_epoch: OnEpoch | None) -> None:
        self.run, self.collection, self.trainer, self.on_epoch = run, collection, trainer, on_epoch

    def __call__(self, report: EpochReport) -> None:
        config, data, truth = self.trainer.config, self.trainer.data, self.collection.truth
        row: dict[str, Any] = {"epoch": report.epoch, **{f"loss/{k}": v for k, v in report.losses.items()}}
        row |= {"learning_rate": report.learning_rate, "seconds": round(report.seconds, 3)}
        is_due = report.epoch % config.evaluate_every == 0 or report.epoch == config.epochs
        scores = None
        # Without truth only the categories in use are counted, which is not worth a costly read-out.
        if is_due and (truth is not None or not self.trainer.network.method.costly_readout):
            predictions = self.trainer.read_out(final=False).predictions
            row["active_prototypes"] = len(np.unique(predictions.best[data.is_unlabelled]))
            scored = scored_predictions(self.collection, data, predictions)
            if scored is not None:
                scores = accuracy(scored.truth, scored.best, scored.is_old)
                named = by_name(scored.truth, scored.best, scored.is_old, n_known=data.n_known)
                for kind, found in {"accuracy": scores, "by_name": named}.items():
                    row |= {f"{kind}/{k}": _plain(getattr(found, k)) for k in ("all", "old", "new")}
        if distributed.main_process():
            self.run.append_metrics(row)
            if self.on_epoch is not None:
                self.on_epoch(report, scores)


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else round(value, 6)
