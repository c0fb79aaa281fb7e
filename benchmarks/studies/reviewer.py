"""How many decisions a review needs: a simulated reviewer, against labelling images one by one and against no refit.

    python benchmarks/studies/reviewer.py FEATURES.npz ... --seeds 0 1 2 --out benchmarks/results/reviewer.json

Each FEATURES.npz has `views` (n_views, n, d), `labels` (-1 for unlabelled), `truth` and `class_names` (known classes first). A
run is made from the mean over views, without training. The reviewer follows the queue of `newkind review`, knows the true
class of an image that is looked at, and decides through the log of the run. benchmarks/results/reviewer.md says what counts.
Prints Markdown and writes curves as JSON; reviewer_plot.py draws them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import newkind
from newkind.data import from_features
from newkind.evaluation import calibration_error, match, match_by_name
from newkind.pipeline.refit import accept_refit, plan_refit
from newkind.pipeline.split import propose_groups
from newkind.review.snapshot import DIFFERENT, Snapshot
from newkind.review.space import FeatureSpace
from newkind.review.work_queue import Task, doubtful_lines, make_queue
from newkind.runs.answer import APPROVED, JUNK, LABELLED, Answer, CategoryState
from newkind.runs.decision import Decision
from newkind.runs.decisions import Decisions
from newkind.runs.run import Run

PAGE = 12
FACES = 6
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
    kinds: Counter[str] = field(default_factory=Counter)
    curve: list[dict[str, float]] = field(default_factory=list)
    refits: list[dict[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.decisions = Decisions(self.run)
        features = self.run.features()
        assert features is not None
        self.space = FeatureSpace(features)
        self._note()

    @property
    def answer(self) -> Answer:
        return self.decisions.answer

    @property
    def snapshot(self) -> Snapshot:
        return Snapshot(self.answer, self.space)

    @property
    def is_over(self) -> bool:
        return self.n_actions >= self.most

    def look(self, lines: Ints) -> list[str]:
        """True classes of images, each of which counts as one look."""
        self.n_looks += len(lines)
        return [str(name) for name in self.truth.names[lines]]

    def decide(self, decision: Decision) -> None:
        """Record a decision, which counts as one action; as up to three steps, if it also names and rejects."""
        self.decisions.decide(decision, author="simulated")
        self.n_actions += 1
        self.n_steps += 1 + (decision.kind == "approve" and bool(decision.name)) + bool(decision.without)
        self.kinds[decision.kind] += 1
        self._note()

    def refit(self, *, counts: bool) -> None:
        """Plan and accept a refit, and note what it does to images that nobody touched."""
        free = self.truth.is_free & ~is_decided(self.answer)
        before, confidence = self.is_correct(), self.answer.confidence
        accept_refit(self.run, plan_refit(self.run), author="simulated")
        self.n_actions += counts
        self.n_steps += counts
        self.kinds["refit"] += 1
        after = self.is_correct()
        gain = {"untouched": int(free.sum()), "before": int(before[free].sum()), "after": int(after[free].sum())}
        errors = {
            "error_before": calibration_error(confidence[free], before[free]),
            "error_after": calibration_error(self.answer.confidence[free], after[free]),
        }
        self.refits.append({"actions": self.n_actions, **gain, **errors})
        self._note()

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
                self.review.decide(Decision("move", files=tuple(group), into=target))
            else:
                rest += group
        if len(lines) > sum(map(len, wrong.values())):
            name = "" if class_of(state) else own
            self.review.decide(Decision("approve", category=state.id, name=name, without=tuple(rest)))
        elif rest:
            self.review.decide(Decision("reject", category=state.id, files=tuple(rest)))

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


def make_run(path: Path, folder: Path, n_categories: str, seed: int) -> tuple[Run, Truth]:
    """Run on frozen features, and its truth."""
    content = np.load(path)
    names = [str(name) for name in content["class_names"]]
    labels = content["labels"]
    data = from_features(
        content["views"].astype(np.float32).mean(axis=0), [names[i] if i >= 0 else None for i in labels]
    )
    k: Any = len(names) if n_categories == "true" else "auto"
    found = newkind.discover(data, folder, n_categories=k, seed=seed, report=False)
    assert [int(name.rsplit("/")[-1].split(".")[0]) for name in found.answer.files] == list(range(len(labels)))
    known = names[: int(labels.max()) + 1]
    return found.run, Truth(np.array(names)[content["truth"]], found.answer.status != LABELLED, known)


def summary(review: Review, *, least: float = TARGET) -> dict[str, Any]:
    """Figures of one review."""
    reached = next((point for point in review.curve if point["accuracy"] >= least), None)
    return {"curve": review.curve, "refits": review.refits, "kinds": dict(review.kinds), "reached": reached}


def measure(path: Path, args: argparse.Namespace, seed: int) -> dict[str, Any]:
    """All three ways on one run."""
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        first, truth = make_run(path, Path(folder) / "run", args.n_categories, seed)
        for way in args.ways:
            shutil.copytree(first.folder, Path(folder) / way)
            review = Review(Run.open(Path(folder) / way), truth, args.most)
            if way == "labels":
                label_one_by_one(review, refit_every=args.labels_per_refit)
            else:
                every = args.actions_per_refit if way == "review" else 0
                Reviewer(review, seed=seed, refit_every=every, split_impure=args.split_impure).work()
            results[way] = summary(review)
            print_row(path.stem, seed, way, results[way])
    return results


def print_row(name: str, seed: int, way: str, result: dict[str, Any]) -> None:
    """Print one line about one review."""
    first, last, reached = result["curve"][0], result["curve"][-1], result["reached"]
    moved = [sum(refit[key] for refit in result["refits"]) for key in ("untouched", "before", "after")]
    print(
        f"| {name} | {seed} | {way} | {100 * first['accuracy']:.1f} | {100 * last['accuracy']:.1f} | {last['actions']} | "
        f"{last['looks']} | {reached['actions'] if reached else '-'} | {reached['looks'] if reached else '-'} | "
        f"{last['settled'] / max(last['actions'], 1):.1f} | {100 * last['precision']:.1f} | {moved} | {result['kinds']} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path, nargs="+")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--n-categories", choices=("true", "auto"), default="true")
    parser.add_argument(
        "--ways", nargs="+", choices=("review", "labels", "no-refit"), default=["review", "labels", "no-refit"]
    )
    parser.add_argument("--actions-per-refit", type=int, default=10)
    parser.add_argument("--labels-per-refit", type=int, default=20)
    parser.add_argument("--split-impure", action="store_true", help="Split more readily, which needs more actions.")
    parser.add_argument("--most", type=int, default=1000, help="Largest number of actions per review.")
    parser.add_argument("--out", type=Path, required=True, help="JSON file, to which results are added.")
    args = parser.parse_args()
    for path in args.features:
        for seed in args.seeds:
            found = measure(path, args, seed)
            content = json.loads(args.out.read_text()) if args.out.exists() else {}
            content.setdefault(
                f"{path.stem} {args.n_categories}{' split-impure' if args.split_impure else ''}", {}
            ).setdefault(str(seed), {}).update(found)
            args.out.write_text(json.dumps(content))


if __name__ == "__main__":
    main()
