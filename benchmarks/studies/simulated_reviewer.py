"""The simulated reviewer: a run under review, and what a person who follows the queue does; used by reviewer.py."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from newkind.evaluation import calibration_error, match, match_by_name
from newkind.pipeline.refit import Refit, accept_refit, plan_refit, stored_features
from newkind.pipeline.split import propose_groups
from newkind.review.snapshot import DIFFERENT, Snapshot
from newkind.review.space import FeatureSpace
from newkind.review.work_queue import Task, doubtful_lines, make_queue, make_sheets
from newkind.runs.answer import APPROVED, JUNK, LABELLED, Answer, CategoryState
from newkind.runs.decision import Decision
from newkind.runs.decisions import Decisions
from newkind.runs.model_io import load_heads
from newkind.runs.run import Run

PAGE = 12
FACES = 6
EXAMPLES = 4
PURE = 0.7  # Share of the main class in a random page from which the end of a category is trusted after one page without errors.
SPLIT = 1 / 3  # Share of the second class in a random page from which a category is split.
SELECTION = 3  # Wrong images of one class that are moved together; fewer are rejected.
TARGET = 0.95
NONE = "(none)"
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Truth:
    """True class names (n,) of all images, whether they were unlabelled (n,), and names of known classes."""

    names: NDArray[np.str_]
    is_free: NDArray[np.bool_]
    known: list[str]


@dataclass
class Review:
    """A run under review, and the curve of its accuracy.

    Parameters
    ----------
    run : Run
        The run.
    truth : Truth
        What the reviewer knows.
    most : int
        Number of actions after which the reviewer stops.
    """

    run: Run
    truth: Truth
    most: int
    n_actions: int = 0
    n_steps: int = 0
    n_looks: int = 0
    n_marks: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    curve: list[dict[str, float]] = field(default_factory=list)
    refits: list[dict[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.decisions = Decisions(self.run)
        features = self.run.features()
        assert features is not None
        self.space = FeatureSpace(np.asarray(features))
        self._snapshot: Snapshot | None = None
        self._note()

    @property
    def answer(self) -> Answer:
        return self.decisions.answer

    @property
    def snapshot(self) -> Snapshot:
        if self._snapshot is None or self._snapshot.number != self.answer.last:
            self._snapshot = Snapshot(self.answer, self.space)
        return self._snapshot

    @property
    def is_over(self) -> bool:
        return self.n_actions >= self.most

    def look(self, lines: Ints) -> list[str]:
        """True classes of images, each of which counts as one look."""
        self.n_looks += len(lines)
        return [str(name) for name in self.truth.names[lines]]

    def decide(self, decision: Decision, *, marks: int = 0) -> None:
        """Record a decision, which counts as one action; as up to three steps, if it also names and rejects.

        Parameters
        ----------
        decision : Decision
            The decision.
        marks : int, default=0
            Number of images that had to be picked out of those on the page.
        """
        self.decisions.decide(decision, author="simulated")
        self.n_actions += 1
        self.n_marks += marks
        self.n_steps += 1 + (decision.kind == "approve" and bool(decision.name)) + bool(decision.without)
        self.kinds[decision.kind] += 1
        self._note()

    def refit(self, *, counts: bool) -> None:
        """Plan and accept a refit, and note what it does to images that nobody touched."""
        free = self.truth.is_free & ~is_decided(self.answer)
        before, confidence = self.is_correct(), self.answer.confidence
        plan = plan_refit(self.run)
        kept = self.confidence_without_calibration(plan)
        accept_refit(self.run, plan, author="simulated")
        self.n_actions += counts
        self.n_steps += counts
        self.kinds["refit"] += 1
        after = self.is_correct()
        gain = {"untouched": int(free.sum()), "before": int(before[free].sum()), "after": int(after[free].sum())}
        errors = {
            "error_before": calibration_error(confidence[free], before[free]),
            "error_after": calibration_error(self.answer.confidence[free], after[free]),
            "error_kept": calibration_error(kept[free], after[free]),
        }
        self.refits.append({"actions": self.n_actions, **gain, **errors})
        self._note()

    @torch.no_grad()
    def confidence_without_calibration(self, plan: Refit) -> NDArray[np.float64]:
        """Confidences (n,) after a refit with temperature and smoothing of the run, as if it did not calibrate again."""
        run_model, features = load_heads(self.run), stored_features(self.run, self.answer)
        logits = plan.method.logits(torch.from_numpy(features.astype(np.float32)))
        p = ((1 - run_model.smoothing) * (logits / run_model.temperature).softmax(dim=1)).double().numpy()
        p += run_model.smoothing / p.shape[1]
        by_category = [p[:, list(state.prototypes)].sum(axis=1) for state in plan.own.categories]
        highest: NDArray[np.float64] = np.max(by_category, axis=0)
        return highest

    def is_correct(self) -> NDArray[np.bool_]:
        """Whether each image (n,) is correct by name; labelled images are not counted and are False."""
        answer, free = self.answer, self.truth.is_free
        names = np.array([*(state.id if state.given else "~" + state.id for state in answer.categories), NONE])
        classes, found = self.truth.names[free], names[answer.category[free]]
        matching = match(classes, found, np.isin(classes, self.truth.known))
        paired = match_by_name(matching, known_names=[*self.truth.known, NONE])
        correct = np.zeros(len(answer), dtype=bool)
        correct[free] = paired.is_correct(classes, found)
        return correct

    def _note(self) -> None:
        correct, free = self.is_correct(), self.truth.is_free
        settled = is_decided(self.answer) & free
        self.curve.append(
            {
                "actions": self.n_actions,
                "steps": self.n_steps,
                "looks": self.n_looks,
                "marks": self.n_marks,
                "accuracy": float(correct[free].mean()),
                "settled": int(settled.sum()),
                "precision": float(correct[settled].mean()) if settled.any() else 1.0,
            }
        )


def is_decided(answer: Answer) -> NDArray[np.bool_]:
    decided: NDArray[np.bool_] = np.isin(answer.status, (LABELLED, APPROVED, JUNK))
    return decided


class Reviewer:
    """Follows the queue: merges, splits, names, moves, rejects and approves.

    Parameters
    ----------
    review : Review
        The run under review.
    seed : int
        Seed of random pages.
    refit_every : int
        Number of actions between refits; 0 for no refits.
    split_impure : bool, default=False
        Split a category if its main class has less than `PURE` of a random page, rather than if a second class has `SPLIT`.
    """

    def __init__(self, review: Review, *, seed: int, refit_every: int, split_impure: bool = False) -> None:
        self.review, self.refit_every, self.split_impure = review, refit_every, split_impure
        self.rng = np.random.default_rng(seed)
        self.last_refit = 0

    def work(self) -> None:
        """Decide until the queue is empty or the number of actions is reached."""
        review = self.review
        while not review.is_over:
            if self.refit_every and review.n_actions - self.last_refit >= self.refit_every:
                self._refit()
            tasks = [task for task in make_queue(review.snapshot) if task.about != "mislabelled"]
            if not tasks:
                break
            self._do(tasks[0])

    def _refit(self) -> None:
        if (self.review.truth.is_free & ~is_decided(self.review.answer)).any():
            self.review.refit(counts=True)
        self.last_refit = self.review.n_actions

    def _do(self, task: Task) -> None:
        snapshot = self.review.snapshot
        if task.kind == "merge":
            self._compare(snapshot, task.k, task.other)
        elif task.kind == "approve":
            self._open(snapshot, task.k)
        elif task.kind == "sheet":
            self._check_sheet(snapshot)
        else:
            self._place(doubtful_lines(snapshot, task.about)[:1])

    def _compare(self, snapshot: Snapshot, a: int, b: int) -> None:
        """Look at typical images of two categories; merge them or note that they are different."""
        first, second = (main_class(self.review.look(np.array(snapshot.faces(k, FACES)))) for k in (a, b))
        ids = snapshot.categories[a].id, snapshot.categories[b].id
        if first == second:
            self.review.decide(Decision("merge", categories=ids))
        else:
            self.review.decide(Decision("note", category=ids[0], text=DIFFERENT + ids[1]))

    def _open(self, snapshot: Snapshot, k: int) -> None:
        """Look at a random page of a category; split it, or name, clean and approve it."""
        state, lines = snapshot.categories[k], snapshot.members[k]
        lines = lines[~snapshot.is_decided[lines]]
        page = self.rng.permutation(lines)[:PAGE]
        classes = self.review.look(page)
        own = class_of(state) or main_class(classes)
        is_pure = classes.count(own) >= PURE * len(classes)
        is_mixed = self._is_mixed(classes, is_pure=is_pure)
        if is_mixed and not class_of(state) and len(lines) > PAGE:
            groups = propose_groups(self.review.run, self.review.answer, state.id)
            self.review.decide(Decision("split", category=state.id, groups=groups))
            return
        found = None if class_of(state) else self._named(own)
        if found is not None:
            self.review.decide(Decision("merge", categories=(found, state.id), into=found))
        else:
            self._clean(state, own, self._order(snapshot, k), is_pure=is_pure)

    def _is_mixed(self, classes: list[str], *, is_pure: bool) -> bool:
        """Whether to split a category with these classes on a random page."""
        counts = [count for _, count in Counter(classes).most_common(2)]
        second = counts[1] if len(counts) > 1 else 0
        return not is_pure if self.split_impure else second >= SPLIT * len(classes)

    def _named(self, name: str) -> str | None:
        """Id of the category of a class; None if no category has its name."""
        return next((state.id for state in self.review.answer.categories if class_of(state) == name), None)

    def _order(self, snapshot: Snapshot, k: int) -> Ints:
        """Undecided rows of a category, the least typical first."""
        lines = snapshot.by_typicality(k, reverse=True)
        return lines[~snapshot.is_decided[lines]]

    def _clean(self, state: CategoryState, own: str, lines: Ints, *, is_pure: bool) -> None:
        """Look at pages, the least typical first, until one has no wrong image; move wrong ones; name and approve the rest."""
        wrong: dict[str, list[str]] = {}
        files = self.review.answer.files
        for start in range(0, len(lines), PAGE):
            page = lines[start : start + PAGE]
            classes = self.review.look(page)
            for line, name in zip(page.tolist(), classes, strict=True):
                if name != own:
                    wrong.setdefault(name, []).append(files[line])
            if is_pure and all(name == own for name in classes):
                break
        rest: list[str] = []
        for name, group in wrong.items():
            target = self._named(name)
            if target is not None and len(group) >= SELECTION:
                self.review.decide(Decision("move", files=tuple(group), into=target), marks=len(group))
            else:
                rest += group
        if len(lines) > sum(map(len, wrong.values())):
            name = "" if class_of(state) else own
            decision = Decision("approve", category=state.id, name=name, without=tuple(rest))
            self.review.decide(decision, marks=len(rest))
        elif rest:
            self.review.decide(Decision("reject", category=state.id, files=tuple(rest)), marks=len(rest))

    def _check_sheet(self, snapshot: Snapshot) -> None:
        """Look at every image of a sheet and at the examples of its categories; approve those that belong, reject the others."""
        lines, answer = make_sheets(snapshot)[0], snapshot.answer
        classes = self.review.look(lines)
        for k in np.unique(answer.category[lines]).tolist():
            self.review.n_looks += len(snapshot.examples(k, EXAMPLES))
        own = [class_of(answer.categories[k]) for k in answer.category[lines].tolist()]
        files = [answer.files[line] for line in lines.tolist()]
        is_right = [mine == name for mine, name in zip(own, classes, strict=True)]
        right = tuple(file for file, yes in zip(files, is_right, strict=True) if yes)
        wrong = tuple(file for file, yes in zip(files, is_right, strict=True) if not yes)
        self.review.decide(Decision("approve", files=right, without=wrong), marks=len(wrong))

    def _place(self, line: Ints) -> None:
        """Look at one image and assign it to its class."""
        assign(self.review, int(line[0]), self._named(self.review.look(line)[0]))


def class_of(state: CategoryState) -> str:
    """Class that a category is named after; empty for a new category without a name of its own."""
    return state.name if state.given or state.name != state.id else ""


def main_class(classes: list[str]) -> str:
    return Counter(classes).most_common(1)[0][0]


def assign(review: Review, line: int, category: str | None) -> None:
    """Tell the class of one image; without a category of this class, it becomes a new one."""
    file = review.answer.files[line]
    if category is None:
        review.decide(Decision("move", files=(file,), name=str(review.truth.names[line])))
    elif review.answer.categories[review.answer.category[line]].id == category and review.answer.category[line] >= 0:
        review.decide(Decision("approve", files=(file,)))
    else:
        review.decide(Decision("move", files=(file,), into=category))


def label_one_by_one(review: Review, *, refit_every: int) -> None:
    """Tell the class of the least confident image, again and again.

    New categories are named for free, by the best matching with new classes at the start, and refits count as no action:
    both favour this baseline.
    """
    answer, truth = review.answer, review.truth
    names = np.array([state.id if state.given else "~" + state.id for state in answer.categories])
    classes = truth.names[truth.is_free]
    matching = match(classes, names[answer.category[truth.is_free]], np.isin(classes, truth.known))
    paired = match_by_name(matching, known_names=truth.known)
    pairs = zip(paired.classes.tolist(), paired.cluster_of_class.tolist(), strict=True)
    category = {name: str(paired.clusters[k]).removeprefix("~") for name, k in pairs if k >= 0}
    while not review.is_over and review.curve[-1]["accuracy"] < TARGET + 0.01:
        free = np.flatnonzero(~is_decided(review.answer))
        if not len(free):
            break
        order = free[np.argsort(review.answer.confidence[free], kind="stable")]
        for line in order[:refit_every].tolist():
            name = review.look(np.array([line]))[0]
            assign(review, line, category.get(name))
            category.setdefault(name, review.answer.categories[review.answer.category[line]].id)
        review.refit(counts=False)
