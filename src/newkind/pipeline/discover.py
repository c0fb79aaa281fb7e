"""`discover`: from a pile of images to sorted categories, through one source of tokens and one loop."""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from newkind import distributed
from newkind.backbone.loader import Prepared, choose_device, prepare_cache, prepare_trunk
from newkind.backbone.online import OnlineTokens
from newkind.backbone.ready import ReadyFeatures
from newkind.backbone.token_cache import TokenCache
from newkind.config import DiscoverConfig, to_json
from newkind.data import Collection, Features, FileImages, find_obstacles
from newkind.errors import ConfigError, DataError, RunError
from newkind.evaluation import Accuracy, accuracy, evaluate
from newkind.methods.registry import build_method
from newkind.pipeline.announce import announce, tell_data, tell_skipped
from newkind.pipeline.choose_n_categories import choose_n_categories
from newkind.runs.assignments import assignments_csv, assignments_of, category_rows, name_categories
from newkind.runs.model_io import save_model
from newkind.runs.run import Run
from newkind.training.checkpoint import load_checkpoint
from newkind.training.inference import Predictions, image_features, predict_features
from newkind.training.merging import plan_merging
from newkind.training.network import Network
from newkind.training.trainer import EpochReport, train

__all__ = ["Outcome", "discover"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    run: Run
    n_labelled: int
    n_known: int
    """Unlabelled images that were sorted into known categories."""
    n_new: int
    """Unlabelled images that were sorted into new categories."""
    n_new_categories: int
    scores: Accuracy | None
    """If the data carries truth."""
    seconds: dict[str, float]


@dataclass
class _Setting:
    """The prepared parts of a run."""

    source: TokenCache | OnlineTokens | ReadyFeatures
    prepared: Prepared | None
    network: Network
    images: NDArray[np.int64]
    """Numbers of the usable images."""
    labels: NDArray[np.int32]
    device: torch.device
    dim: int


def discover(
    collection: Collection,
    out: Path,
    config: DiscoverConfig,
    *,
    overwrite: bool = False,
    resume: bool = False,
    dry_run: bool = False,
    on_epoch: Callable[[EpochReport, Accuracy | None], None] | None = None,
) -> Outcome | None:
    """Trains, sorts and writes the run folder. The same call goes on where an earlier one was ended; None for a dry run."""
    clock = {"start": time.perf_counter()}
    _check(collection, config)
    tell_data(collection)
    config = _fit_batch(config, len(collection.catalog))
    prepared, device, dim = _load_backbone(collection, config)
    network = _new_network(prepared, dim, config)
    announce(collection, config, prepared, network, device, dim)
    if dry_run:
        if prepared is not None and not config.online:
            prepare_cache(collection, config.backbone, prepared, dry_run=True)
        return None
    source = _open_source(collection, config, prepared, device)
    images = np.flatnonzero(source.usable)
    setting = _Setting(source, prepared, network, images, collection.catalog.labels[images], device, dim)
    _check_usable(collection, setting)
    config = _fit_batch(config, len(images))
    clock["tokens"] = time.perf_counter()
    fingerprint = _fingerprint(collection, config, setting)
    run = Run(out)
    if distributed.main_process():
        run = Run.start(out, fingerprint=fingerprint, overwrite=overwrite, must_exist=resume)
    with run.locked() if distributed.main_process() else nullcontext():
        if distributed.main_process():
            _open_run(run, collection, config, setting, fingerprint)
        distributed.barrier()
        if config.auto_k or config.k_is_room:
            config = _choose_k(run, collection, config, setting)
            setting.network = _new_network(prepared, dim, config)
        _train(run, collection, config, setting, fingerprint, on_epoch)
        clock["training"] = time.perf_counter()
        return _finish(run, collection, config, setting, clock)


def _check(collection: Collection, config: DiscoverConfig) -> None:
    catalog = collection.catalog
    if obstacles := find_obstacles(catalog.labels, catalog.class_names):
        raise obstacles[0]
    if not config.auto_k and config.method.n_categories < catalog.n_known_classes:
        raise ConfigError(
            f"{config.method.n_categories} categories are fewer than the {catalog.n_known_classes} known classes.",
            fix="--n-categories counts known and new categories together.",
        )


def _fit_batch(config: DiscoverConfig, n_images: int) -> DiscoverConfig:
    """A batch is never larger than what there is."""
    most = max(n_images // distributed.world_size(), 2)
    if config.training.batch_size <= most:
        return config
    logger.info(f"There are fewer images than a batch of {config.training.batch_size}; taking batches of {most}.")
    return replace(config, training=replace(config.training, batch_size=most))


def _load_backbone(collection: Collection, config: DiscoverConfig) -> tuple[Prepared | None, torch.device, int]:
    """The cut backbone (None for ready features), the device, and the features' dimension."""
    items = collection.catalog.items
    if isinstance(items, Features):
        return None, choose_device(config.backbone.device), items.values.shape[1]
    prepared = prepare_trunk(config.backbone)
    return prepared, prepared.device, prepared.tuned.dim


def _new_network(prepared: Prepared | None, dim: int, config: DiscoverConfig) -> Network:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.training.seed)
        # A copy: the number of categories may still be looked for with the blocks as they came.
        tuned = copy.deepcopy(prepared.tuned) if prepared else None
        return Network(tuned, build_method(config.method_name, dim, config.method))


def _open_source(
    collection: Collection, config: DiscoverConfig, prepared: Prepared | None, device: torch.device
) -> TokenCache | OnlineTokens | ReadyFeatures:
    """Tokens for every usable image. The first process of a machine builds the cache; the others find it there."""
    items = collection.catalog.items
    source: TokenCache | OnlineTokens | ReadyFeatures | None = None
    if isinstance(items, Features) or prepared is None:
        return ReadyFeatures(items)  # type: ignore[arg-type]
    if config.online:
        source = OnlineTokens(items, prepared.trunk, config.backbone.recipe, device=device)
    else:
        if distributed.first_on_machine():
            source = prepare_cache(collection, config.backbone, prepared)
        distributed.barrier()
        source = source or prepare_cache(collection, config.backbone, prepared)
    if source is None:
        raise RunError("The token cache could not be opened.")
    tell_skipped(source.skipped)
    return source


def _say_nothing(_: str) -> None:
    pass


def _check_usable(collection: Collection, setting: _Setting) -> None:
    """What is left after broken images were set aside must still be enough."""
    names = collection.catalog.class_names
    counts = np.bincount(setting.labels[setting.labels >= 0], minlength=len(names))
    if lost := [name for name, n in zip(names, counts, strict=True) if n == 0]:
        raise DataError(
            f"None of the labelled images of '{lost[0]}' can be read"
            + (f" (nor of {len(lost) - 1} more classes)." if len(lost) > 1 else "."),
            fix="Repair or replace them, or remove the class.",
        )
    if obstacles := find_obstacles(setting.labels, names):
        raise obstacles[0]


def _fingerprint(collection: Collection, config: DiscoverConfig, setting: _Setting) -> str:
    """Of everything that decides the result: not how often it is looked at or saved, nor on which device."""
    catalog = collection.catalog
    deciding = to_json(config)
    del deciding["known_k"], deciding["trunk"]["device"], deciding["trunk"]["weights"]
    del deciding["training"]["checkpoint_seconds"], deciding["training"]["evaluate_every"]
    if config.auto_k:
        del deciding["method"]["n_categories"]  # what was found out is kept in the run
    digest = hashlib.sha256(json.dumps(deciding, sort_keys=True).encode())
    digest.update(json.dumps(list(catalog.class_names)).encode())
    digest.update(np.ascontiguousarray(setting.labels).tobytes())
    digest.update(setting.source.content_hash())
    digest.update(setting.prepared.sha256.encode() if setting.prepared else b"")
    digest.update(str(distributed.world_size()).encode())
    return digest.hexdigest()


def _open_run(run: Run, collection: Collection, config: DiscoverConfig, setting: _Setting, fingerprint: str) -> None:
    found = load_checkpoint(run.checkpoint_file)
    finished = 0 if found is None or found.fingerprint != fingerprint else found.finished_epochs
    if finished:
        logger.info(f"Going on after epoch {finished} of {config.training.epochs}.")
    items = collection.catalog.items
    root = str(items.root.resolve()) if isinstance(items, FileImages) else None
    run.write_config({"data": collection.origin, "root": root, "fingerprint": fingerprint, "config": to_json(config)})
    weights = (
        {"weights_sha256": setting.prepared.sha256, "weights_source": setting.prepared.source}
        if setting.prepared
        else {}
    )
    run.write_environment(device=str(setting.device), processes=distributed.world_size(), **weights)
    run.cut_metrics(finished)


def _choose_k(run: Run, collection: Collection, config: DiscoverConfig, setting: _Setting) -> DiscoverConfig:
    """How many categories: found out once for a run, from the features of the backbone as it came."""
    is_known = distributed.broadcast(torch.tensor(int(distributed.main_process() and run.estimate_file.exists())))
    views = [] if is_known else _views_of_images(setting, config.training.seed)
    k = torch.zeros(1, dtype=torch.int64)
    if distributed.main_process():
        known = collection.catalog.n_known_classes
        k.fill_(choose_n_categories(run, config, setting.network.method, views, setting.labels, n_known=known))
    chosen = int(distributed.broadcast(k))
    return replace(config, method=replace(config.method, n_categories=chosen))


def _views_of_images(setting: _Setting, seed: int) -> list[torch.Tensor]:
    """Features (n, d) of the evaluation view, and of as many random views as the method looks at."""
    network, device = setting.network.to(setting.device), setting.device
    found = [image_features(network, setting.source, setting.images, device=device)]
    if isinstance(setting.source, ReadyFeatures):
        return found
    for look in range(network.method.n_looks):
        both = image_features(network, setting.source, setting.images, device=device, n_looks=1, seed=seed + look)
        found.append(2 * both - found[0])  # it is the mean with the evaluation view
    return found


def _train(
    run: Run,
    collection: Collection,
    config: DiscoverConfig,
    setting: _Setting,
    fingerprint: str,
    on_epoch: Callable[[EpochReport, Accuracy | None], None] | None,
) -> None:
    def after_epoch(report: EpochReport) -> None:
        training = config.training
        due = report.epoch % training.evaluate_every == 0 or report.epoch == training.epochs
        predictions, scores = None, None
        # Without truth only to count the categories in use; a method that clusters from scratch is spared that.
        method = setting.network.method
        if due and (collection.truth is not None or method.starts or not method.settles):
            predictions = _sort(setting, collection, training.seed, in_passing=True)[0]
            scores = _score(collection, setting, predictions)
        if distributed.main_process():
            row: dict[str, Any] = {"epoch": report.epoch, **{f"loss/{k}": v for k, v in report.losses.items()}}
            row |= {"learning_rate": report.learning_rate, "seconds": round(report.seconds, 3)}
            if predictions is not None:
                row["active_prototypes"] = len(np.unique(predictions.best[setting.labels < 0]))
            if scores is not None:
                row |= {f"accuracy/{k}": _plain(getattr(scores, k)) for k in ("all", "old", "new")}
            run.append_metrics(row)
            if on_epoch is not None:
                on_epoch(report, scores)

    if not setting.network.method.trains:
        setting.network.to(setting.device)
        return
    truth = collection.truth
    if setting.network.method.needs_truth and truth is None:
        raise ConfigError("An oracle needs the truth of every image.", fix="Take another supervision.")
    train(
        setting.network,
        setting.source,
        setting.labels,
        config.training,
        images=setting.images,
        device=setting.device,
        checkpoint=run.checkpoint_file,
        fingerprint=fingerprint,
        after_epoch=after_epoch,
        truth=truth.labels[setting.images] if truth is not None and setting.network.method.needs_truth else None,
    )


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else round(value, 6)


def _sort(
    setting: _Setting, collection: Collection, seed: int, *, in_passing: bool = False
) -> tuple[Predictions, torch.Tensor]:
    """What the network says of each image, and their features (n, d); a method that clusters does so first.

    in_passing: training goes on afterwards, so what the method settles on is not kept.
    """
    network, device, n_known = setting.network, setting.device, collection.catalog.n_known_classes
    features = image_features(network, setting.source, setting.images, device=device)
    if network.method.settles:
        if in_passing:
            network = Network(network.tuned, copy.deepcopy(network.method), with_teacher=False)
        seen = features
        if looks := network.method.n_looks:
            seen = image_features(network, setting.source, setting.images, device=device, n_looks=looks, seed=seed)
        if distributed.main_process():
            labels = torch.as_tensor(setting.labels.astype(np.int64))
            network.method.settle(seen, labels, n_known=n_known, seed=seed)
        distributed.broadcast_parameters(network.method)
    return predict_features(network, features, labels=setting.labels, n_known=n_known, device=device), features


def _score(collection: Collection, setting: _Setting, predictions: Predictions) -> Accuracy | None:
    """None without truth."""
    scorable = _scorable(collection, setting, predictions)
    return None if scorable is None else accuracy(*scorable)


def _scorable(collection: Collection, setting: _Setting, predictions: Predictions) -> tuple[Any, Any, Any] | None:
    """(truth, prediction, is old) of all unlabelled images whose truth is known: what one matching is made over."""
    if collection.truth is None:
        return None
    truth = collection.truth.labels[setting.images]
    scored = (setting.labels < 0) & (truth >= 0)
    is_old = collection.truth.is_old[setting.images]
    return (truth[scored], predictions.best[scored], is_old[scored]) if scored.any() else None


def _finish(
    run: Run, collection: Collection, config: DiscoverConfig, setting: _Setting, clock: dict[str, float]
) -> Outcome:
    """Sorts every image and writes the results."""
    predictions, features = _sort(setting, collection, config.training.seed)
    known = collection.catalog.class_names
    free = setting.labels < 0
    if config.auto_k and setting.network.method.merges:
        merging = plan_merging(predictions, free, n_prototypes=config.method.n_categories, n_known=len(known))
        logger.info(merging.sentence())
        setting.network.method.merge_categories(merging.groups, merging.sizes)
        config = replace(config, method=replace(config.method, n_categories=len(merging.groups)))
        predictions = predict_features(
            setting.network, features, labels=setting.labels, n_known=len(known), device=setting.device
        )
    categories = name_categories(
        known, config.method.n_categories, predictions.best[free], predictions.best_probability[free]
    )
    lines = assignments_of(
        [collection.catalog.items.names[int(i)] for i in setting.images], setting.labels, categories, predictions
    )
    scorable = _scorable(collection, setting, predictions)
    scores = None if scorable is None else accuracy(*scorable)
    clock["sorting"] = time.perf_counter()
    seconds = {
        "tokens": clock["tokens"] - clock["start"],
        "training": clock["training"] - clock["tokens"],
        "sorting": clock["sorting"] - clock["training"],
    }
    if distributed.main_process():
        run.write_json(run.categories_file, category_rows(categories))
        save_model(run, setting.network, config, dim=setting.dim, n_known=len(known), prepared=setting.prepared)
        if scorable is not None and collection.truth is not None:
            found = evaluate(*scorable, class_names=collection.truth.class_names)
            run.write_json(run.scores_file, found.to_dict())
        run.write_features(features.numpy())
        run.write_text(run.assignments_file, assignments_csv(lines))
    is_new = predictions.best[free] >= len(known)
    return Outcome(
        run=run,
        n_labelled=int((~free).sum()),
        n_known=int((~is_new).sum()),
        n_new=int(is_new.sum()),
        n_new_categories=len(np.unique(predictions.best[free][is_new])),
        scores=scores,
        seconds=seconds,
    )
