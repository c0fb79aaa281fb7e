"""`discover`: from a collection to a finished run, stage by stage.

A discovery gives one or two answers. The first is that of the effort `quick`, from one view per image. The final one is
that of the effort that was asked for. Each is complete: assignments, categories, features, model.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from newkind import distributed
from newkind.atomic import write_bytes, write_errors
from newkind.backbone.cache_plan import joint_digests
from newkind.backbone.recipe import own_normalisation
from newkind.config import DiscoverConfig, to_json
from newkind.data import Collection
from newkind.data.items import Features, FileImages
from newkind.errors import ConfigError, RunError
from newkind.evaluation import Accuracy, accuracy, by_name
from newkind.pipeline.announce import announce_data, announce_training
from newkind.pipeline.choose_n_categories import choose_n_categories
from newkind.pipeline.configure import first_config
from newkind.pipeline.results import Outcome, scored_predictions, write_results
from newkind.pipeline.setup import Setup, check_request, fit_batch, load_setup, new_network, open_images
from newkind.runs.carry_over import carry_over
from newkind.runs.claim import Claim, claim_run
from newkind.runs.fingerprint import deciding_settings, digest_of
from newkind.runs.metadata import group_column
from newkind.runs.run import Run
from newkind.training.checkpoint import load_checkpoint
from newkind.training.data import ImageFeatures, TrainingData
from newkind.training.network import Encoder
from newkind.training.trainer import EpochReport, ReadOut, Trainer

__all__ = ["OnEpoch", "OnFirstAnswer", "Outcome", "discover"]

logger = logging.getLogger(__name__)
OnEpoch = Callable[[EpochReport, Accuracy | None], None]
OnFirstAnswer = Callable[[Outcome], object]
Answer = Literal["first", "final"]


@dataclass(frozen=True)
class _Stage:
    """What an answer is computed from: its configuration, backbone and images, and digests of all images."""

    config: DiscoverConfig
    setup: Setup
    data: TrainingData
    digests: list[bytes] | None


def discover(
    collection: Collection,
    out: Path,
    config: DiscoverConfig,
    *,
    overwrite: bool = False,
    resume: bool = False,
    on_epoch: OnEpoch | None = None,
    on_first_answer: OnFirstAnswer | None = None,
) -> Outcome:
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
    on_epoch : callable, optional
        Called in the main process after each epoch, with its report and, if it was evaluated, its accuracy.
    on_first_answer : callable, optional
        Called in the main process with the first answer. Default: no first answer is computed.

    Returns
    -------
    Outcome
        The final answer.
    """
    started = time.perf_counter()
    check_request(collection, config)
    announce_data(collection)
    config = fit_batch(config, len(collection.catalog))
    first = None if on_first_answer is None else first_config(collection, config)
    with _claimed(out, config, overwrite=overwrite, resume=resume) as claim:
        stage = _open_stage(collection, first or config)
        config = stage.config if first is None else fit_batch(config, len(stage.data.images))
        fingerprint = _fingerprint(collection, config, stage)
        run = Run(out) if claim is None else claim.start(fingerprint)
        _write_start(run, collection, config, stage.setup, fingerprint)
        if first is not None and on_first_answer is not None:
            if not _has_answer(run):
                outcome = _answer(run, collection, stage, fingerprint, answer="first")
                outcome = replace(outcome, seconds={"first answer": time.perf_counter() - started})
                run = outcome.run
                if distributed.main_process():
                    on_first_answer(outcome)
            stage = _open_stage(collection, config, after=stage)
        features_done = time.perf_counter()
        outcome = _answer(run, collection, stage, fingerprint, answer="final", on_epoch=on_epoch)
    return replace(outcome, seconds={"features": features_done - started, **outcome.seconds})


def _open_stage(collection: Collection, config: DiscoverConfig, *, after: _Stage | None = None) -> _Stage:
    """Load the backbone and compute what is missing in the cache; an earlier stage gives what both need."""
    if after is not None and after.config.backbone.tuned_blocks == config.backbone.tuned_blocks:
        setup = after.setup
    else:
        setup = load_setup(collection, config)
    announce_training(collection, config, setup)
    digests = None if after is None else after.digests
    if digests is None and not isinstance(collection.catalog.items, Features):
        digests = joint_digests(collection)
    data = open_images(collection, config, setup, digests=digests)
    return _Stage(fit_batch(config, len(data.images)), setup, data, digests)


def _fingerprint(collection: Collection, config: DiscoverConfig, stage: _Stage) -> str:
    """Fingerprint of everything that decides the result, the same in every process."""
    backbone, groups = stage.setup.backbone, stage.data.groups
    normalisation = own_normalisation(backbone.recipe) if backbone else {}
    found = digest_of(
        deciding_settings(config),
        list(collection.catalog.class_names),
        stage.data.labels,
        stage.data.source.content_hash(),
        backbone.sha256 if backbone else None,
        distributed.world_size(),
        # Runs without groups, and with ImageNet's normalisation, have the fingerprint of earlier versions.
        *(() if groups is None else (groups,)),
        *((normalisation,) if normalisation else ()),
    )
    if len(set(distributed.gather_bytes(found.encode()))) > 1:
        raise ConfigError(
            "The processes have different data, settings or backbone weights.",
            fix="Start the same command with the same data on every machine.",
            code="other-data",
        )
    return found


def _has_answer(run: Run) -> bool:
    """Whether the run folder has an answer, in every process."""
    found = distributed.main_process() and run.answer != "none"
    return bool(distributed.broadcast(torch.tensor(int(found))))


def _answer(
    run: Run,
    collection: Collection,
    stage: _Stage,
    fingerprint: str,
    *,
    answer: Answer,
    on_epoch: OnEpoch | None = None,
) -> Outcome:
    """Compute one answer, write its files apart from those of the last one, and replace them all."""
    started = time.perf_counter()
    following = _begin_answer(run, stage.config, answer)
    trainer = _new_trainer(run, following, stage, fingerprint)
    if answer == "final":
        _cut_metrics(run, trainer)
    trainer.train(_Monitor(run, collection, trainer, on_epoch))
    training_done = time.perf_counter()
    found = _final_read_out(trainer, stage.config)
    outcome = write_results(following, collection, stage.config, stage.setup, trainer, found)
    if distributed.main_process():
        if stage.digests is not None:
            following.write_digests([stage.digests[i] for i in stage.data.images.tolist()])
        with carry_over(run, following):
            run = run.adopt()
    fitting = "training" if stage.config.training.epochs else "fitting"
    seconds = {fitting: training_done - started, "assigning": time.perf_counter() - training_done}
    return replace(outcome, run=run, seconds=seconds)


def _begin_answer(run: Run, config: DiscoverConfig, answer: Answer) -> Run:
    """Folder of the next answer with its config.json; the estimate of a final answer is used again."""
    if not distributed.main_process():
        return Run(run.folder)
    following = run.next_answer()
    if not _is_begun(following, answer):  # an estimate in it is that of other views
        with write_errors(following.folder):
            for path in (following.estimate_file, following.estimate_plot):
                path.unlink(missing_ok=True)
    content = {name: value for name, value in run.config().items() if name not in ("format", "newkind", "checksums")}
    content |= {"answer": answer, "n_categories": {"asked": content["n_categories"]["asked"]}}
    if answer == "final":  # settings outside of the fingerprint may be others than those of the answer before
        content["config"] = to_json(config)
    following.write_config(content)
    if answer == run.answer == "final" and run.estimate_file.exists():
        for name in (run.estimate_plot.name, run.estimate_file.name):
            write_bytes(following.folder / name, (run.folder / name).read_bytes())
    return following


def _is_begun(following: Run, answer: Answer) -> bool:
    """Whether the folder of the next answer was begun for this one."""
    try:
        return bool(following.config().get("answer") == answer)
    except RunError:
        return False


@contextmanager
def _claimed(out: Path, config: DiscoverConfig, *, overwrite: bool, resume: bool) -> Iterator[Claim | None]:
    """The run folder, checked and locked by the main process; None in the others."""
    if not distributed.main_process():
        distributed.barrier()
        yield None
        return
    with claim_run(out, config, overwrite=overwrite, must_exist=resume) as claim:
        distributed.barrier()
        yield claim


def _write_start(run: Run, collection: Collection, config: DiscoverConfig, setup: Setup, fingerprint: str) -> None:
    """Write config.json, unless there is an answer, and environment.json."""
    if not distributed.main_process():
        return
    if run.answer == "first":
        logger.info(f"The first answer is in {run.folder}. Computing the final one.")
    items = collection.catalog.items
    if run.answer == "none":
        run.write_config(
            {
                "data": collection.location or collection.origin,
                "reading": dict(collection.reading),
                "group_column": group_column(collection),
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


def _new_trainer(run: Run, following: Run, stage: _Stage, fingerprint: str) -> Trainer:
    """Choose the number of categories and build a trainer of a new network with that many prototypes."""
    config, setup, data = stage.config, stage.setup, stage.data
    encoder = Encoder(setup.tuned_copy()).to(setup.device)
    images = ImageFeatures(encoder, data, device=setup.device, seed=config.training.seed)
    n_categories = choose_n_categories(following, config, images)
    if distributed.main_process():
        following.update_config(n_categories=following.config()["n_categories"] | {"prototypes": n_categories})
    return Trainer(
        new_network(config, setup, n_categories),
        data,
        config.training,
        device=setup.device,
        checkpoint=run.checkpoint_file,
        # A cache with another number of views, for which the disk had space, is another training.
        fingerprint=digest_of(fingerprint, data.source.n_views),
    )


def _cut_metrics(run: Run, trainer: Trainer) -> None:
    """Remove metrics of epochs that will be run again."""
    if not distributed.main_process():
        return
    found = load_checkpoint(run.checkpoint_file)
    finished = 0 if found is None or found.fingerprint != trainer.fingerprint else found.finished_epochs
    if finished:
        logger.info(f"Resuming after epoch {finished} of {trainer.n_epochs}.")
    run.cut_metrics(finished)


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
