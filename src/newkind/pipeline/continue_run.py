"""`discover --continue`: the categories of a run with more images, without starting again.

Known images keep their stored features; only new ones pass the backbone. Decisions of the run before carry over as labels, and
its categories are the start of the new ones, so that ids and names stay. The backbone is not trained again.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from newkind import distributed
from newkind.backbone.sources import open_source
from newkind.config import from_json, to_json
from newkind.data.added import file_images, select_images
from newkind.data.wording import count
from newkind.errors import ConfigError
from newkind.methods.modern import ModernConfig
from newkind.pipeline.continued_answer import FEWEST, given_labels, n_used, open_categories, start_answer
from newkind.pipeline.continued_images import ContinuedImages
from newkind.pipeline.refit import Refit, model_in_use, solve, stored_features
from newkind.pipeline.results import Outcome
from newkind.runs.answer import APPROVED, LABELLED, Answer, answer_of
from newkind.runs.assignments import Category, assignments_csv, assignments_of, category_rows, write_assignments
from newkind.runs.assignments_record import write_recorded
from newkind.runs.carried import carry_decisions
from newkind.runs.carry_over import carry_over
from newkind.runs.claim import claim_run
from newkind.runs.current_answer import model_answer
from newkind.runs.decision import Event
from newkind.runs.decision_log import DecisionLog
from newkind.runs.fingerprint import digest_of
from newkind.runs.metadata import group_column, metadata_csv, metadata_from
from newkind.runs.model_io import LoadedModel, layout_of, load_model, method_settings, read_card, write_model
from newkind.runs.recorded_array import to_half
from newkind.runs.replay import effective
from newkind.runs.run import Run
from newkind.runs.write_answer import write_answer
from newkind.setting import check_min_confidence
from newkind.training.inference import image_features, predict_features
from newkind.training.network import Network

__all__ = ["ContinueConfig", "continue_run"]

logger = logging.getLogger(__name__)
OWN = ("format", "newkind", "assignments", "checksums")
"""Entries of config.json that every run has for itself."""
LEAST_NEW = 2 / 3
"""Smallest share of new images in a category that opens, unless the number of categories was given."""


@dataclass(frozen=True, kw_only=True)
class ContinueConfig:
    """What may differ from the run that is continued.

    Parameters
    ----------
    n_categories : int, optional
        Number of categories, present and new together. Default: the number of new ones is estimated.
    min_confidence : float, optional
        Unlabelled images with a lower confidence get the status `unsure`. Default: that of the run.
    backbone : str, optional
        Name of the backbone, to check that it is that of the run.
    device : str, default="auto"
        Device to compute on.
    weights : Path, optional
        File with the weights of the backbone, if it was moved.
    """

    n_categories: int | None = None
    min_confidence: float | None = None
    backbone: str | None = None
    device: str = "auto"
    weights: Path | None = None


@dataclass(frozen=True, eq=False)
class _Solved:
    """Categories of n images.

    `start` is what the run before says about them, `refit` the new model, `model` its answer, `events` the decisions that
    carry over, `answer` that of the model with them, and `opened` the ids of categories that opened.
    """

    images: ContinuedImages
    features: NDArray[np.float16]
    start: Answer
    refit: Refit
    model: Answer
    events: list[Event]
    answer: Answer
    opened: list[str]


def continue_run(
    run: Run,
    images: ContinuedImages,
    out: Path,
    config: ContinueConfig,
    *,
    overwrite: bool = False,
    resume: bool = False,
) -> Outcome:
    """Write a run that continues another one. The same call resumes an interrupted run.

    Parameters
    ----------
    run : Run
        A finished run.
    images : ContinuedImages
        As from `open_continued`.
    out : Path
        Run folder to create.
    config : ContinueConfig
        What may differ.
    overwrite : bool, default=False
        Replace the run in `out`.
    resume : bool, default=False
        Fail unless there is a run to resume.

    Returns
    -------
    Outcome
        Result by the model alone; decisions are in the run folder.

    Raises
    ------
    ConfigError
        With the code `other-backbone`, `same-folder`, `single-process`, `too-few-categories` or `too-many-categories`.
    RunError
        With the code `no-features`, or as from `claim_run`.
    """
    started = time.perf_counter()
    card = read_card(run)
    _check(run, out, config, card)
    logger.info(images.sentence())
    fingerprint = _fingerprint(run, images, config)
    with claim_run(out, overwrite=overwrite, must_exist=resume) as claim:
        following = claim.start(fingerprint)
        settings = _run_config(run, images, config, fingerprint)
        if following.answer == "none":
            following.write_config(settings)
        model = load_model(run, device=config.device, weights=config.weights)
        device = _device(model)
        following.write_environment(device=str(device), processes=1, weights_sha256=card["weights_sha256"])
        features, usable = _all_features(run, images, model, device)
        features_done = time.perf_counter()
        solved = _solve(run, images.take(usable), features, config, settings["config"]["min_confidence"])
        following = _write(following, run, solved, settings)
    seconds = {"features": features_done - started, "fitting": time.perf_counter() - features_done}
    lines, categories = solved.model.assignments(), solved.model.list_categories()
    return Outcome(following, categories, lines, None, seconds)


def _check(run: Run, out: Path, config: ContinueConfig, card: dict[str, Any]) -> None:
    """Raise if the run cannot be continued like this."""
    if distributed.world_size() > 1:
        raise ConfigError("A run is continued by one process.", fix="Leave out torchrun.", code="single-process")
    if out.resolve() == run.folder.resolve():
        raise ConfigError(
            f"`out` is {out}, the run that is continued.", fix="Use another `out`.", code="same-folder", setting="out"
        )
    name = card["backbone"]["name"]
    if config.backbone is not None and config.backbone != name:
        raise ConfigError(
            f"`backbone` is {config.backbone}, but the run has {name}.",
            fix="Leave it out, or start another run with discover.",
            code="other-backbone",
            setting="backbone",
        )
    if config.min_confidence is not None:
        check_min_confidence(config.min_confidence)


def _fingerprint(run: Run, images: ContinuedImages, config: ContinueConfig) -> str:
    """Fingerprint of everything that decides the result: the run with its decisions, the images, and their labels."""
    catalog, before = images.collection.catalog, images.before
    return digest_of(
        str(run.config()["fingerprint"]),
        assignments_csv(before.assignments_by_id()),
        [[state.id, state.name, state.approved] for state in before.categories],
        before.refit,
        images.names,
        b"".join(images.digests),
        catalog.labels,
        list(catalog.class_names),
        config.n_categories,
        *([] if catalog.groups is None else [catalog.groups]),
    )


def _run_config(run: Run, images: ContinuedImages, config: ContinueConfig, fingerprint: str) -> dict[str, Any]:
    """Content of config.json: that of the run before, with what differs."""
    content = {name: value for name, value in run.config().items() if name not in OWN}
    method = _method_config(read_card(run))
    settings = run.settings() | {"method_name": "modern", "method": to_json(method)}
    if config.min_confidence is not None:
        settings = settings | {"min_confidence": config.min_confidence}
    asked = "auto" if config.n_categories is None else str(config.n_categories)
    root = file_images(images.collection).root
    return content | {
        "data": images.collection.location or images.collection.origin,
        "reading": dict(images.collection.reading),
        "group_column": group_column(images.collection),
        "root": str(root.resolve()),
        "added": list(images.added),
        "continues": str(run.folder.resolve()),
        "fingerprint": fingerprint,
        "config": {"min_confidence": 0.0} | settings,
        "n_categories": {"asked": asked},
    }


def _method_config(card: dict[str, Any]) -> ModernConfig:
    """Settings of the method of a model card; default settings if it is another method than `modern`."""
    return from_json(ModernConfig, method_settings(card)) if card["method"] == "modern" else ModernConfig()


def _device(model: LoadedModel) -> torch.device:
    return torch.device("cpu") if model.backbone is None else model.backbone.device


def _all_features(
    run: Run, images: ContinuedImages, model: LoadedModel, device: torch.device
) -> tuple[NDArray[np.float16], NDArray[np.int64]]:
    """Features (n, d) of the images that can be used, and their numbers: stored ones of known images, and those of new ones."""
    stored = stored_features(run, images.before)
    found = np.zeros((len(images), stored.shape[1]), dtype=np.float16)
    known = images.row >= 0
    found[known] = stored[images.row[known]]
    new = images.new
    if len(new):
        # Tokens of new images would only be read once; features are stored, because an interrupted run needs them again.
        online = model.config.tuned_blocks > 0
        source = open_source(
            select_images(images.collection, new.tolist()),
            model.config,
            model.backbone,
            online=online,
            views=model.views,
            digests=[images.digests[i] for i in new.tolist()],
        )
        usable = np.flatnonzero(source.usable)
        if len(usable):
            computed = image_features(model.network, source, usable, device=device, views=model.views)
            found[new[usable]] = to_half(computed.numpy())
        known[new[usable]] = True
    return found[known], np.flatnonzero(known)


def _solve(
    run: Run, images: ContinuedImages, features: NDArray[np.float16], config: ContinueConfig, least: float
) -> _Solved:
    """Open categories for new images, and solve frame and mixture again with what is known."""
    owner = model_in_use(run, images.before)
    method = _method_config(read_card(owner))
    events = DecisionLog(run.folder).events()
    start = start_answer(images, model_answer(run))
    seed, groups = run.settings()["training"]["seed"], images.collection.catalog.groups
    n_open = None if config.n_categories is None else config.n_categories - n_used(start)
    while True:
        placed = open_categories(start, features, events, method, n_open=n_open, seed=seed)
        refit = solve(placed, features, owner, min_confidence=least, groups=groups)
        opened = [state.id for state in placed.categories[len(start.categories) :]]
        n_doubtful = 0 if config.n_categories is not None else _n_doubtful(refit.own, opened, start)
        if not n_doubtful:
            break
        n_open = len(opened) - n_doubtful
    model = _model_answer(start, given_labels(images, start), refit, features, least, groups)
    names: dict[str, list[str]] = {}
    for name, row in zip(images.names, images.row.tolist(), strict=True):
        if row >= 0:
            names.setdefault(images.before.files[row], []).append(name)
    carried, answer = carry_decisions(start, model, events, names)
    return _Solved(images, features, start, refit, model, carried, answer, opened)


def _n_doubtful(own: Answer, opened: list[str], start: Answer) -> int:
    """Number of opened categories with too few new images, which are parts of other categories rather than new ones."""
    category = dict(zip(start.files, start.category.tolist(), strict=True))
    is_new = np.array([category[name] < 0 for name in own.files])
    found = 0
    for name in opened:
        members = own.members(name) if name in own.position else np.zeros(0, dtype=np.int64)
        n_new = int(is_new[members].sum())
        found += n_new < FEWEST or n_new < LEAST_NEW * len(members)
    return found


def _model_answer(
    start: Answer,
    given: NDArray[np.int64],
    refit: Refit,
    features: NDArray[np.float16],
    least: float,
    groups: NDArray[np.int64] | None,
) -> Answer:
    """Answer of the new model about all images, with the labels that were given (n,), as if no person had decided about any.

    So an undo gives a label back, and the next continued run does not take it for a new one.
    """
    own = refit.own
    used = own.list_categories()
    place = np.array([*(own.position.get(state.id, -1) for state in start.categories), -1], dtype=np.int64)
    labels = np.where(start.status == LABELLED, place[start.category], -1)  # that no person decided against
    network = Network(None, refit.method, with_teacher=False).eval()
    found = predict_features(
        network,
        torch.from_numpy(features.astype(np.float32)),
        labels=labels,
        layout=layout_of(used, refit.method.n_categories),
        device=torch.device("cpu"),
        groups=groups,
    )
    categories = list(used)
    for k in np.unique(given[given >= 0]).tolist():
        if place[k] < 0:  # persons put all its images elsewhere
            place[k] = len(categories)
            name = start.categories[k].id
            categories.append(Category(name, "known", -1, 0, 0.0, id=name))
    labels = np.where(given >= 0, place[given], -1)
    p = np.where(found.second == labels, found.second_probability, found.given_probability)
    found = replace(found, given_probability=p)
    lines = assignments_of(start.files, labels, categories, found, min_confidence=least)
    by_file = {line.file: line for line in own.assignments()} if start.rejected else {}
    for row in start.rejected:
        line = by_file.get(start.files[row])
        if line is None or start.status[row] == APPROVED:  # junk; and the refit has approved images as labels
            continue
        if given[row] < 0 or start.status[row] == LABELLED:
            lines[row] = line
        else:  # rejected from its label: then it gets the category of the refit
            rest = 1 - lines[row].confidence
            lines[row] = replace(lines[row], second=line.category, second_confidence=line.confidence * rest)
    return answer_of(lines, categories)


def _write(following: Run, run: Run, solved: _Solved, settings: dict[str, Any]) -> Run:
    """Write all files apart from those that are there, replace them at once, and return the run that has them."""
    target = following.next_answer()
    numbers = {"prototypes": solved.refit.method.n_categories, "used": len(solved.refit.own.categories)}
    target.write_config(settings | {"answer": "final", "n_categories": settings["n_categories"] | numbers})
    write_model(target, solved.refit.tensors, solved.refit.card)
    target.write_features(solved.features)
    target.write_digests(solved.images.digests)
    target.write_json(target.continued_file, _since(run, solved))
    rows = {"event": solved.answer.last} if solved.events else {}
    target.write_json(target.categories_file, rows | category_rows(solved.answer.list_categories()))
    metadata = metadata_from(solved.images.names, solved.images.collection.metadata)
    if metadata.columns:
        target.write_text(target.metadata_file, metadata_csv(solved.images.names, metadata))
    write_assignments(target, solved.answer.assignments(), metadata)
    if solved.events:
        lines = solved.model.assignments()
        target.write_json(target.model_categories_file, category_rows(solved.model.list_categories()))
        write_recorded(target, target.model_assignments_file, assignments_csv(lines), n_rows=len(lines))
        n = len(effective(DecisionLog(run.folder).events()))
        combined = "" if n == len(solved.events) else f", combined into {len(solved.events)}"
        logger.info(f"{count(n, 'decision')} of {run.folder} carried over{combined}.")
    if following.replaces is None and solved.events and not DecisionLog(following.folder).last:
        DecisionLog(following.folder).fill(solved.events)
    with carry_over(following, target):
        finished = following.adopt()
    if solved.events and not DecisionLog(finished.folder).last:  # the log of the run that was replaced is put aside
        DecisionLog(finished.folder).fill(solved.events)
        write_answer(finished)
    return finished


def _since(run: Run, solved: _Solved) -> dict[str, Any]:
    """Content of continued.json."""
    images, answer, start = solved.images, solved.answer, solved.start
    before = np.array([*(answer.position.get(state.id, -1) for state in start.categories), -1])[start.category]
    moved = (images.row >= 0) & (before >= 0) & (answer.category >= 0) & (answer.category != before)
    there = {state.id for state in answer.categories}
    return {
        "run": str(run.folder.resolve()),
        "new_rows": images.new.tolist(),
        "missing": list(images.missing),
        "opened": [name for name in solved.opened if name in there],
        "gone": [state.name for state in start.categories if state.id not in there],
        "n_moved": int(moved.sum()),
        "n_copies": images.n_copies,
    }
