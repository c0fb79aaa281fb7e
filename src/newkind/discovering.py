"""`discover`: from a pile of images to sorted categories, through one source of tokens and one loop."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from newkind import distributed
from newkind.backbone.cache import TokenCache
from newkind.backbone.online import OnlineTokens
from newkind.backbone.preparing import Prepared, choose_device, prepare_cache, prepare_trunk
from newkind.backbone.ready import ReadyFeatures
from newkind.backbone.tokens import Tokens
from newkind.config import DiscoverConfig, to_json
from newkind.data.catalog import Collection, Features, FileImages, SetAside, find_obstacles
from newkind.data.sampling import steps_per_epoch
from newkind.discovery import assignments_csv, assignments_of, category_rows, name_categories
from newkind.errors import ConfigError
from newkind.evaluation import Accuracy, accuracy, evaluate
from newkind.methods.method import Batch
from newkind.methods.simgcd import SimGCD
from newkind.model import save_model
from newkind.progress import duration
from newkind.run import Run
from newkind.training.checkpoint import load_checkpoint
from newkind.training.engine import EpochReport, train
from newkind.training.inference import Predictions, predict_images
from newkind.training.network import Network

__all__ = ["Outcome", "discover"]

Say = Callable[[str], None]


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
    say: Say = print,
    overwrite: bool = False,
    resume: bool = False,
    dry_run: bool = False,
    on_epoch: Callable[[EpochReport, Accuracy | None], None] | None = None,
) -> Outcome | None:
    """Trains, sorts and writes the run folder. The same call goes on where an earlier one was ended; None for a dry run."""
    _check(collection, config)
    clock = {"start": time.perf_counter()}
    setting = _prepare(collection, config, say, dry_run)
    if setting is None:
        return None
    clock["tokens"] = time.perf_counter()
    fingerprint = _fingerprint(collection, config, setting)
    seconds = _estimate(setting, config)
    say(
        f"To do: {config.training.epochs} epochs of {_steps(setting, config)} steps, about {duration(seconds)} ({config.known_k})."
    )
    if dry_run:
        return None
    run = Run.start(out, fingerprint=fingerprint, overwrite=overwrite, must_exist=resume)
    _open_run(run, collection, config, setting, fingerprint, say)
    _train(run, collection, config, setting, fingerprint, on_epoch)
    clock["training"] = time.perf_counter()
    return _finish(run, collection, config, setting, clock)


def _check(collection: Collection, config: DiscoverConfig) -> None:
    catalog = collection.catalog
    if obstacles := find_obstacles(catalog.labels, catalog.class_names):
        raise obstacles[0]
    if config.method.n_categories < catalog.n_known_classes:
        raise ConfigError(
            f"{config.method.n_categories} categories are fewer than the {catalog.n_known_classes} known classes.",
            fix="--n-categories counts known and new categories together.",
        )


def _prepare(collection: Collection, config: DiscoverConfig, say: Say, dry_run: bool) -> _Setting | None:
    """Tokens for every usable image, and the untrained network. None if a dry run would have to build a cache."""
    items = collection.catalog.items
    prepared: Prepared | None = None
    source: TokenCache | OnlineTokens | ReadyFeatures
    if isinstance(items, Features):
        source, device, dim = ReadyFeatures(items), choose_device(config.trunk.device), items.values.shape[1]
    else:
        prepared = prepare_trunk(config.trunk, say=say)
        device, dim = prepared.device, prepared.tuned.dim
        if config.online:
            source = OnlineTokens(items, prepared.trunk, config.trunk.recipe, device=device)
        else:
            cache = _shared_cache(collection, config, prepared, say, dry_run)
            if cache is None:
                return None
            source = cache
    _tell_set_aside(source.set_aside, say)
    images = np.flatnonzero(source.usable)
    labels = collection.catalog.labels[images]
    if obstacles := find_obstacles(labels, collection.catalog.class_names):
        raise obstacles[0]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.training.seed)
        network = Network(prepared.tuned if prepared else None, SimGCD(dim, config.method))
    return _Setting(source, prepared, network, images, labels, device, dim)


def _shared_cache(
    collection: Collection, config: DiscoverConfig, prepared: Prepared, say: Say, dry_run: bool
) -> TokenCache | None:
    """The first process of each machine builds; the others wait and find everything there."""
    cache = None
    if distributed.main_process():
        cache = prepare_cache(collection, config.trunk, prepared, say=say, dry_run=dry_run)
    distributed.barrier()
    if not distributed.main_process():
        cache = prepare_cache(collection, config.trunk, prepared, say=_say_nothing, dry_run=dry_run)
    return cache


def _say_nothing(_: str) -> None:
    pass


def _tell_set_aside(items: tuple[SetAside, ...], say: Say) -> None:
    for item in items[:5]:
        say(f"Set aside: {item.name} ({item.reason}).")
    if len(items) > 5:
        say(f"... and {len(items) - 5} more; newkind inspect lists them.")


def _steps(setting: _Setting, config: DiscoverConfig) -> int:
    return steps_per_epoch(len(setting.images), config.training.batch_size * distributed.world_size())


def _estimate(setting: _Setting, config: DiscoverConfig) -> float:
    """Seconds of training, from one step on made-up tokens."""
    n = config.training.batch_size
    n_tokens = setting.prepared.trunk.n_tokens if setting.prepared else 0
    tokens = Tokens(torch.zeros(2 * n, n_tokens, setting.dim), torch.zeros(2 * n, setting.dim)).to(setting.device)
    if setting.prepared is not None and setting.prepared.trunk.keep_moments:
        tokens = Tokens(tokens.xhat, tokens.cls, torch.ones(2 * n, n_tokens, 2, device=setting.device))
    batch = Batch(labels=torch.zeros(n, dtype=torch.long, device=setting.device), n_views=2, epoch=0, n_epochs=1)
    network = setting.network.to(setting.device)
    for _ in range(2):
        start = time.perf_counter()
        network.method.loss_terms(network.features(tokens), batch).total().backward()  # type: ignore[no-untyped-call]
        seconds = time.perf_counter() - start
    network.zero_grad(set_to_none=True)
    return 1.3 * seconds * _steps(setting, config) * config.training.epochs


def _fingerprint(collection: Collection, config: DiscoverConfig, setting: _Setting) -> str:
    """Of everything that decides the result: not how often it is looked at or saved, nor on which device."""
    catalog = collection.catalog
    deciding = to_json(config)
    del deciding["known_k"], deciding["trunk"]["device"], deciding["trunk"]["weights"]
    del deciding["training"]["checkpoint_seconds"], deciding["training"]["evaluate_every"]
    digest = hashlib.sha256(json.dumps(deciding, sort_keys=True).encode())
    digest.update(json.dumps(list(catalog.class_names)).encode())
    digest.update(np.ascontiguousarray(setting.labels).tobytes())
    if isinstance(setting.source, TokenCache):
        digest.update(setting.source.content_hash())
    elif setting.prepared is not None:
        digest.update(setting.prepared.sha256.encode())
    digest.update(str(distributed.world_size()).encode())
    return digest.hexdigest()


def _open_run(
    run: Run, collection: Collection, config: DiscoverConfig, setting: _Setting, fingerprint: str, say: Say
) -> None:
    if not distributed.main_process():
        return
    found = load_checkpoint(run.checkpoint_file)
    finished = 0 if found is None or found.fingerprint != fingerprint else found.finished_epochs
    if finished:
        say(f"Going on after epoch {finished} of {config.training.epochs}.")
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
        scores = None
        if collection.truth is not None and (
            report.epoch % training.evaluate_every == 0 or report.epoch == training.epochs
        ):
            scores = _score(collection, setting, _predict(setting, collection))
        if distributed.main_process():
            row: dict[str, Any] = {"epoch": report.epoch, **{f"loss/{k}": v for k, v in report.losses.items()}}
            row |= {"learning_rate": report.learning_rate, "seconds": round(report.seconds, 3)}
            if scores is not None:
                row |= {f"accuracy/{k}": _plain(getattr(scores, k)) for k in ("all", "old", "new")}
            run.append_metrics(row)
            if on_epoch is not None:
                on_epoch(report, scores)

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
    )


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else round(value, 6)


def _predict(setting: _Setting, collection: Collection) -> Predictions:
    return predict_images(
        setting.network,
        setting.source,
        setting.images,
        labels=setting.labels,
        n_known=collection.catalog.n_known_classes,
        device=setting.device,
    )


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
    predictions = _predict(setting, collection)
    known = collection.catalog.class_names
    free = setting.labels < 0
    categories = name_categories(
        known, config.method.n_categories, predictions.best[free], predictions.best_probability[free]
    )
    lines = assignments_of(
        [collection.catalog.items.names[int(i)] for i in setting.images], setting.labels, categories, predictions
    )
    scores = _score(collection, setting, predictions)
    clock["sorting"] = time.perf_counter()
    seconds = {
        "tokens": clock["tokens"] - clock["start"],
        "training": clock["training"] - clock["tokens"],
        "sorting": clock["sorting"] - clock["training"],
    }
    if distributed.main_process():
        run.write_json(run.categories_file, category_rows(categories))
        save_model(run, setting.network, config, dim=setting.dim, n_known=len(known), prepared=setting.prepared)
        scorable = _scorable(collection, setting, predictions)
        if scorable is not None and collection.truth is not None:
            found = evaluate(*scorable, class_names=collection.truth.class_names)
            run.write_json(run.scores_file, found.to_dict())
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
