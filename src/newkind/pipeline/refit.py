"""`refit`: solve the categories of a run again with what decisions say. Stored features are used; no image is read."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from newkind import atomic
from newkind.config import to_json
from newkind.errors import RunError
from newkind.methods.modern import Modern, ModernConfig
from newkind.methods.refit_rehearsal import PlacedImages
from newkind.pipeline.confidence import confidence_card
from newkind.pipeline.refit_problem import Problem
from newkind.runs.answer import APPROVED, JUNK, LABELLED, Answer, answer_of
from newkind.runs.assignments import Category, assignments_csv, assignments_of, category_rows
from newkind.runs.current_answer import refit_run
from newkind.runs.decision import Decision, Event
from newkind.runs.decisions import Decisions
from newkind.runs.fingerprint import digest_of
from newkind.runs.metadata import read_groups
from newkind.runs.model_io import load_heads, read_card, read_tensors, write_model
from newkind.runs.replay import apply
from newkind.runs.run import Run
from newkind.runs.write_answer import write_answer
from newkind.training.group_evidence import GroupEvidence
from newkind.training.inference import Layout, Predictions
from newkind.training.network import Network

__all__ = ["Moved", "Refit", "accept_refit", "model_in_use", "plan_refit", "solve", "stored_features"]

CHUNK = 4096


@dataclass(frozen=True)
class Moved:
    """An image that a refit assigns to another category.

    Parameters
    ----------
    file : str
        Name of the image.
    before, after : str
        Ids of its categories; `before` is empty if it had none.
    confidence : float
        Probability of the new category.
    """

    file: str
    before: str
    after: str
    confidence: float


@dataclass(frozen=True, eq=False)
class Refit:
    """A refit that is not accepted yet.

    Parameters
    ----------
    before : Answer
        Current answer.
    own : Answer
        Answer of the new model, by category ids, without junk images.
    method : Modern
        The new model.
    tensors : dict of str to Tensor
        Content of its model file.
    card : dict
        Content of its model.json.
    """

    before: Answer
    own: Answer
    method: Modern
    tensors: dict[str, Tensor]
    card: dict[str, Any]

    @cached_property
    def after(self) -> Answer:
        """Answer after the refit is accepted."""
        event = Event(self.before.last, "", "", self.before.last, Decision("refit", refit="preview"))
        return apply(self.before, event, lambda _: self.own)

    @cached_property
    def moved(self) -> list[Moved]:
        """Images that change their category, in the order of the run."""
        before, after = self.before, self.after
        ids = [*(state.id for state in before.categories), ""]
        return [
            Moved(
                before.files[i], ids[before.category[i]], ids[after.category[i]], round(float(after.confidence[i]), 4)
            )
            for i in np.flatnonzero(before.category != after.category).tolist()
        ]

    def moved_between(self) -> Counter[tuple[str, str]]:
        """Number of images that move, by their categories before and after."""
        return Counter((item.before, item.after) for item in self.moved)

    @property
    def is_confirmed(self) -> NDArray[np.bool_]:
        """Whether each image (n,) has a label or a category that a person confirmed, or is junk."""
        confirmed: NDArray[np.bool_] = np.isin(self.before.status, (LABELLED, APPROVED, JUNK))
        return confirmed

    @property
    def became_known(self) -> list[str]:
        """Ids of new categories that become known classes."""
        pairs = zip(self.before.categories, self.after.categories, strict=True)
        return [after.id for before, after in pairs if before.status == "new" and after.status == "known"]


def plan_refit(run: Run) -> Refit:
    """Solve frame and mixture again with the decisions about a run.

    Images that a person confirmed become labels. New categories that a person renamed or approved become known classes.
    Merges and splits decide the prototypes: a merged category keeps those of its parts, a part of a split gets one. An
    image is not assigned to a category that it was rejected from. Junk is left out. Ids and names stay.

    Parameters
    ----------
    run : Run
        A finished run.

    Returns
    -------
    Refit
        Nothing is written before `accept_refit`.

    Raises
    ------
    RunError
        With the code `no-features`, `damaged-features`, `no-labels`, `unreadable` or `damaged-model`.
    """
    answer = Decisions(run).answer
    least = run.settings().get("min_confidence", 0.0)
    owner, groups = model_in_use(run, answer), read_groups(run, answer.files)
    return solve(answer, stored_features(run, answer), owner, min_confidence=least, groups=groups)


def solve(
    answer: Answer,
    features: NDArray[np.float16],
    owner: Run,
    *,
    min_confidence: float,
    groups: NDArray[np.int64] | None = None,
) -> Refit:
    """Solve frame and mixture again, from the categories of an answer; see `plan_refit`.

    Parameters
    ----------
    answer : Answer
        What is known about n images.
    features : ndarray of float16, shape (n, d)
        Their features.
    owner : Run
        Folder of the present model, as from `model_in_use`.
    min_confidence : float
        Unlabelled images with a lower confidence get the status `unsure`.
    groups : ndarray of int64, shape (n,), optional
        Groups whose images share a category; -1 for none.

    Returns
    -------
    Refit
    """
    present, card = load_heads(owner), read_card(owner)
    problem = Problem(answer, features, present)
    config = present.config if isinstance(present, Modern) else ModernConfig()
    method = Modern(problem.features.shape[1], len(problem.category_of), config)
    if isinstance(present, Modern):  # what was calibrated, in case there are too few labels to calibrate again
        method.read_out_temperature.copy_(present.read_out_temperature)
        method.read_out_smoothing.copy_(present.read_out_smoothing)
    method.refit(problem.features, problem.labels, problem.prototype, forbidden=problem.forbidden_prototypes())
    placed = PlacedImages(problem.features, problem.labels, problem.prototype, problem.category_of)
    method.recalibrate(placed)
    method.eval()
    if groups is not None:
        groups = groups[[answer.row[name] for name in problem.files]]
    own = _own_answer(problem, method, groups, min_confidence=min_confidence)
    card |= {
        "method": "modern",
        "method_config": to_json(config),
        "n_categories": method.n_categories,
        "n_known": sum(state.status == "known" for state in own.categories),
    }
    if method.rehearsal is not None or not isinstance(present, Modern):
        card["confidence"] = _confidence(method, card)
    kept = {name: value for name, value in read_tensors(owner).items() if not name.startswith("method.")}
    mine = {f"method.{name}": value.detach().clone() for name, value in method.state_dict().items()}
    return Refit(answer, own, method, kept | mine, card)


def _confidence(method: Modern, card: dict[str, Any]) -> dict[str, Any]:
    """Entry `confidence` of model.json; the threshold of novelty stays if there are no new categories to find one with."""
    found, before = confidence_card(method), card.get("confidence", {})
    return found | {"novelty": before["novelty"]} if not found.get("novelty") and before.get("novelty") else found


def accept_refit(run: Run, refit: Refit, *, author: str | None = None) -> Event:
    """Use a refit from now on. An undo selects the model before it again.

    Parameters
    ----------
    run : Run
        The run.
    refit : Refit
        As from `plan_refit`.
    author : str, optional
        Who accepted it. Default: the user who runs this process.

    Returns
    -------
    Event

    Raises
    ------
    RunError
        With the code `stale` if there were decisions since the refit was planned.
    """
    # A name by the content: accepted again after a kill, a refit uses the folder that is there.
    name = digest_of(refit.card, *(refit.tensors[key].numpy().tobytes() for key in sorted(refit.tensors)))[:12]
    target = refit_run(run, name)
    is_new = not target.folder.exists()
    atomic.make_folder(target.folder)
    try:
        write_model(target, refit.tensors, refit.card)
        target.write_json(target.categories_file, category_rows(refit.own.list_categories()))
        target.write_text(target.assignments_file, assignments_csv(refit.own.assignments_by_id()))
        event = Decisions(run).decide(Decision("refit", refit=name), author=author, based_on=refit.before.last)
    except BaseException:
        if is_new:
            shutil.rmtree(target.folder, ignore_errors=True)
        raise
    write_answer(run)
    return event


def model_in_use(run: Run, answer: Answer) -> Run:
    """Folder with the model of an answer: the run itself, or one of its refits."""
    return refit_run(run, answer.refit) if answer.refit else run


def stored_features(run: Run, answer: Answer) -> NDArray[np.float16]:
    """Features (n, d) of the images of a run; raises RunError (`no-features`, or `damaged-features`) if it has none."""
    found = run.features()
    if found is None and run.features_file.exists():
        raise RunError(
            f"{run.features_file} is damaged.",
            fix="Restore the file from a copy, or repeat the discover command with `overwrite`.",
            code="damaged-features",
            file=run.features_file,
        )
    if found is None or len(found) != len(answer):
        raise RunError(
            f"{run.folder} has no features of its {len(answer):,} images.",
            fix="Repeat the discover command with `overwrite`.",
            code="no-features",
            folder=run.folder,
        )
    return found


def _own_answer(problem: Problem, method: Modern, groups: NDArray[np.int64] | None, *, min_confidence: float) -> Answer:
    """Answer of the new model."""
    categories = [
        Category(state.id, status, prototypes[0], 0, 0.0, id=state.id, prototypes=prototypes, given=state.given)
        for state, status, prototypes in zip(problem.states, problem.statuses, problem.prototypes, strict=True)
    ]
    found = _predictions(problem, method, groups)
    lines = assignments_of(problem.files, problem.labels.numpy(), categories, found, min_confidence=min_confidence)
    return answer_of(lines, categories)


@torch.no_grad()
def _predictions(problem: Problem, method: Modern, groups: NDArray[np.int64] | None) -> Predictions:
    """Predictions of all images, without the categories that they were rejected from, by the evidence of groups (m,)."""
    network = Network(None, method, with_teacher=False).eval()
    layout = Layout(problem.category_of, torch.tensor([status == "new" for status in problem.statuses]))
    parts = torch.split(problem.features, CHUNK)
    p = torch.cat([layout.probabilities(network.category_probabilities(x)) for x in parts])  # (m, n_categories)
    p[problem.forbidden[:, 0], problem.forbidden[:, 1]] = 0
    p /= p.sum(dim=1, keepdim=True).clamp_min(1e-30)
    if groups is not None:
        groups[problem.forbidden[:, 0].numpy()] = -1  # what a person rejected, a group does not bring back
        evidence, everything = GroupEvidence(groups, problem.labels), slice(0, len(p))
        evidence.add(p, everything)
        p = evidence.share(p, everything)
    outlier = [found for x in parts if (found := method.is_outlier(x)) is not None]
    top = p.topk(min(2, p.shape[1]), dim=1)
    own = p.gather(1, problem.labels.clamp_min(0)[:, None])[:, 0] * (problem.labels >= 0)
    return Predictions(
        best=top.indices[:, 0].numpy(),
        best_probability=top.values[:, 0].numpy(),
        second=top.indices[:, -1].numpy(),
        second_probability=top.values[:, -1].numpy(),
        novelty=p[:, layout.is_new].sum(dim=1).numpy(),
        given_probability=own.numpy(),
        outlier=torch.cat(outlier).numpy() if outlier else None,
    )
