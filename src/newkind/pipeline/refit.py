"""`refit`: solve the categories of a run again with what decisions say. Stored features are used; no image is read."""

from __future__ import annotations

import shutil
import uuid
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from newkind.config import from_json, to_json
from newkind.errors import RunError
from newkind.methods.modern import Modern, ModernConfig
from newkind.runs.answer import APPROVED, JUNK, LABELLED, Answer, CategoryState, answer_of
from newkind.runs.assignments import Category, assignments_csv, assignments_of, category_rows
from newkind.runs.current_answer import refit_run
from newkind.runs.decision import Decision, Event
from newkind.runs.decisions import Decisions
from newkind.runs.model_io import method_settings, read_card
from newkind.runs.replay import apply
from newkind.runs.run import Run
from newkind.runs.write_answer import write_answer
from newkind.training.checkpoint import save_tensors
from newkind.training.inference import Predictions
from newkind.training.network import Network

__all__ = ["Moved", "Refit", "accept_refit", "current_model", "plan_refit", "solve", "stored_features"]

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
    Every category gets one prototype, so that merges and splits decide how many there are. An image is not assigned to a
    category that it was rejected from. Junk is left out. Ids and names stay.

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
        With the code `no-features`, `no-labels`, `unreadable` or `damaged-model`.
    """
    answer = Decisions(run).answer
    features = stored_features(run, answer)
    card, tensors = current_model(run, answer)
    return solve(answer, features, card, tensors, min_confidence=run.config()["config"].get("min_confidence", 0.0))


def solve(
    answer: Answer,
    features: NDArray[np.float16],
    card: dict[str, Any],
    tensors: dict[str, Tensor],
    *,
    min_confidence: float,
) -> Refit:
    """Solve frame and mixture again, from the categories of an answer; see `plan_refit`.

    Parameters
    ----------
    answer : Answer
        What is known about n images.
    features : ndarray of float16, shape (n, d)
        Their features.
    card : dict
        Content of the model.json of the last model.
    tensors : dict of str to Tensor
        Content of its model file.
    min_confidence : float
        Unlabelled images with a lower confidence get the status `unsure`.

    Returns
    -------
    Refit
    """
    problem = _Problem(answer, features)
    is_modern = card["method"] == "modern"
    config = from_json(ModernConfig, method_settings(card)) if is_modern else ModernConfig()
    method = Modern(problem.features.shape[1], len(problem.states), config)
    if is_modern:  # keeps the temperature that was calibrated; models of earlier versions have none
        method.read_out_temperature.copy_(tensors.get("method.read_out_temperature", method.read_out_temperature))
    method.refit(problem.features, problem.labels, problem.category, forbidden=problem.forbidden)
    method.eval()
    own = _own_answer(problem, method, min_confidence=min_confidence)
    confidence = card.get("confidence") if is_modern else {"calibrated": False, "reason": "refitted"}
    card = card | {
        "method": "modern",
        "method_config": to_json(config),
        "n_categories": len(problem.states),
        "n_known": sum(state.status == "known" for state in own.categories),
        "confidence": confidence,
    }
    kept = {name: value for name, value in tensors.items() if not name.startswith("method.")}
    mine = {f"method.{name}": value.detach().clone() for name, value in method.state_dict().items()}
    return Refit(answer, own, method, kept | mine, card)


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
    name = uuid.uuid4().hex[:12]
    target = refit_run(run, name)
    target.folder.mkdir(parents=True)
    try:
        save_tensors(target.model_file, refit.tensors, {"newkind": "model"})
        target.write_json(target.model_card, refit.card)
        target.write_json(target.categories_file, category_rows(refit.own.list_categories()))
        target.write_text(target.assignments_file, assignments_csv(refit.own.assignments_by_id()))
        event = Decisions(run).decide(Decision("refit", refit=name), author=author, based_on=refit.before.last)
    except BaseException:
        shutil.rmtree(target.folder, ignore_errors=True)
        raise
    write_answer(run)
    return event


def stored_features(run: Run, answer: Answer) -> NDArray[np.float16]:
    """Features (n, d) of the images of a run; raises RunError (`no-features`) if it has none."""
    found = run.features()
    if found is None or len(found) != len(answer):
        raise RunError(
            f"{run.folder} has no features of its {len(answer):,} images.",
            fix="Repeat the discover command with `overwrite`.",
            code="no-features",
            folder=run.folder,
        )
    return found


def current_model(run: Run, answer: Answer) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Model card and tensors of the model in use."""
    owner = refit_run(run, answer.refit) if answer.refit else run
    card = read_card(owner)
    try:
        return card, load_file(owner.model_file)
    except (OSError, SafetensorError) as error:
        raise RunError(
            f"{owner.model_file} cannot be read ({error}).", code="damaged-model", file=owner.model_file
        ) from None


class _Problem:
    """What is solved: m images that are not junk, and K categories that have images, known ones first."""

    def __init__(self, answer: Answer, features: NDArray[np.float16]) -> None:
        self.rows = np.flatnonzero(answer.status != JUNK)
        used = np.bincount(
            answer.category[self.rows][answer.category[self.rows] >= 0], minlength=len(answer.categories)
        )
        order = sorted(np.flatnonzero(used).tolist(), key=lambda k: not _is_known(answer.categories[k]))
        place = np.full(len(answer.categories) + 1, -1)
        place[order] = np.arange(len(order))
        self.states = [answer.categories[k] for k in order]
        self.files = [answer.files[i] for i in self.rows]
        self.features = torch.from_numpy(features[self.rows].astype(np.float32))  # (m, d)
        self.category = torch.from_numpy(place[answer.category[self.rows]])  # (m,)
        is_given = np.isin(answer.status[self.rows], (LABELLED, APPROVED))
        self.labels = torch.where(torch.from_numpy(is_given), self.category, -1)
        self.forbidden = self._forbidden(answer, place)
        if not is_given.any():
            raise RunError(
                "There is no labelled image to learn from.", fix="Approve a category or images first.", code="no-labels"
            )

    def _forbidden(self, answer: Answer, place: NDArray[np.int64]) -> Tensor:
        """Rejections (n_pairs, 2) of images without a label; none of an image that was rejected from all categories."""
        at = {int(row): i for i, row in enumerate(self.rows)}
        pairs = []
        for row, names in answer.rejected.items():
            columns = {int(place[answer.position[name]]) for name in names if name in answer.position} - {-1}
            if row in at and self.labels[at[row]] < 0 and len(columns) < len(self.states):
                pairs += [[at[row], column] for column in sorted(columns)]
        return torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2)


def _is_known(state: CategoryState) -> bool:
    return state.status == "known" or state.approved or state.renamed


def _own_answer(problem: _Problem, method: Modern, *, min_confidence: float) -> Answer:
    """Answer of the new model."""
    categories = [
        Category(state.id, "known" if _is_known(state) else "new", k, 0, 0.0, id=state.id, prototypes=(k,))
        for k, state in enumerate(problem.states)
    ]
    found = _predictions(problem, method, n_known=sum(category.status == "known" for category in categories))
    lines = assignments_of(problem.files, problem.labels.numpy(), categories, found, min_confidence=min_confidence)
    return answer_of(lines, categories)


@torch.no_grad()
def _predictions(problem: _Problem, method: Modern, *, n_known: int) -> Predictions:
    """Predictions of all images, without the categories that they were rejected from."""
    network = Network(None, method, with_teacher=False).eval()
    parts = torch.split(problem.features, CHUNK)
    p = torch.cat([network.category_probabilities(x) for x in parts])  # (m, K)
    p[problem.forbidden[:, 0], problem.forbidden[:, 1]] = 0
    p /= p.sum(dim=1, keepdim=True).clamp_min(1e-30)
    outlier = [found for x in parts if (found := method.is_outlier(x)) is not None]
    top = p.topk(min(2, p.shape[1]), dim=1)
    own = p.gather(1, problem.labels.clamp_min(0)[:, None])[:, 0] * (problem.labels >= 0)
    return Predictions(
        best=top.indices[:, 0].numpy(),
        best_probability=top.values[:, 0].numpy(),
        second=top.indices[:, -1].numpy(),
        second_probability=top.values[:, -1].numpy(),
        novelty=p[:, n_known:].sum(dim=1).numpy(),
        given_probability=own.numpy(),
        outlier=torch.cat(outlier).numpy() if outlier else None,
    )
