"""Rows of every study: which method, with which settings and how many categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from newkind.config import NCategories
from newkind.experiments.paper.dataset import BenchData
from newkind.experiments.paper.published import Scores, accuracy_of, unknown_k_of
from newkind.methods.registry import find_method
from newkind.methods.simgcd import BENCHMARK_EPSILON, simgcd_recipe
from newkind.optimizer_config import BASE_BATCH, OptimizerConfig
from newkind.pipeline.configure import own_optimizer

__all__ = ["EPSILONS", "K_FACTORS", "PAPER_ORDER", "Row"]

PAPER_ORDER = ("kmeans", "rankstats", "uno", "orca", "debiaspl", "gcd", "simgcd")
"""Methods of the paper, in the order of its tables."""
EPSILONS = (0.0, 1.0, 2.0, 4.0)
K_FACTORS = (0.75, 1.0, 1.25, 1.5, 2.0)
SUPERVISION = ("minimal", "self-label", "self-distil", "oracle")
ADJUSTING = ("orca", "debiaspl")
"""Methods that adjust logits against the imbalance."""
AUTO = NCategories("estimated")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of a table.

    Parameters
    ----------
    label : str
        Text of the first column.
    method : str
        Name of a method.
    settings : mapping, default={}
        Settings that differ from the defaults of the method.
    n_categories : NCategories or None, default=None
        Number of categories. Default: the true number.
    equal : bool, default=False
        Use the learning rate, batch size and weight decay of SimGCD instead of the method's own.
    is_open : bool, default=False
        Whether the number of categories still has to be estimated.
    published : tuple of float or None, default=None
        Published All, Old and New, in percent.
    values : mapping, default={}
        Values of further columns.
    """

    label: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    n_categories: NCategories | None = None
    equal: bool = False
    is_open: bool = False
    published: Scores | None = None
    values: Mapping[str, Any] = field(default_factory=dict)

    def title(self) -> str:
        """Text that distinguishes this row from the others."""
        more = (f"{value:g}" if isinstance(value, float) else str(value) for value in self.values.values())
        return ", ".join([self.label, *(text for text in more if text != self.label)])


def method_rows(data: BenchData, methods: Sequence[str]) -> list[Row]:
    """One row per method, with its default settings."""
    return [
        Row(label=find_method(name).title, method=name, published=accuracy_of(data.benchmark, name)) for name in methods
    ]


def system_rows(data: BenchData, methods: Sequence[str]) -> list[Row]:
    """Each method with its own learning rate, batch size and weight decay, and with those of SimGCD if they differ."""
    found = []
    for row in method_rows(data, methods):
        own = own_optimizer(row.method, len(data.collection.catalog))
        equal = replace(OptimizerConfig(), decay_vectors=own.decay_vectors)
        if not find_method(row.method).method.trains:
            found.append(replace(row, values={"optimizer": "no training"}))
            continue
        found.append(replace(row, values={"optimizer": f"own: {_shown(own)}"}))
        if own != equal:
            found.append(replace(row, equal=True, values={"optimizer": f"equal: {_shown(equal)}"}))
    return found


def _shown(optimizer: OptimizerConfig) -> str:
    """Learning rate for the batch, batch size and weight decay."""
    rate = optimizer.learning_rate * optimizer.batch_size / BASE_BATCH
    return f"{rate:.2g}, {optimizer.batch_size}, {optimizer.weight_decay:g}"


def logit_adjust_rows(data: BenchData, methods: Sequence[str]) -> list[Row]:
    """One row per method, with whether it adjusts logits."""
    rows = method_rows(data, methods)
    return [replace(row, values={"adjusts": "yes" if row.method in ADJUSTING else "no"}) for row in rows]


def ablation_rows(data: BenchData, recipe: str) -> list[Row]:
    """Steps from GCD to SimGCD. All but the first are settings of SimGCD."""
    cold = simgcd_recipe(recipe).teacher_end
    decoupled = {"joint": False}
    self_label = {"supervision": "self-label", **decoupled}
    steps: dict[str, tuple[str, dict[str, Any]]] = {
        "+SL": ("self-labels, classifier on the projector", {**self_label, "classifier_on": "projector"}),
        "+BR": ("classifier on the features of the backbone", {**self_label, "classifier_on": "backbone"}),
        "+SD": ("self-distillation instead of self-labels", {"teacher_start": cold, **decoupled}),
        "+TW": ("warm-up of the teacher temperature", decoupled),
        "+JT": ("joint training: SimGCD", {}),
    }
    gcd, simgcd = method_rows(data, ["gcd", "simgcd"])
    rows = [replace(gcd, values={"step": "semi-supervised k-means on a contrastive representation"})]
    for label, (step, settings) in steps.items():
        published = None if settings else simgcd.published
        rows.append(replace(simgcd, label=label, settings=settings, values={"step": step}, published=published))
    return rows


def pilot_rows(data: BenchData) -> list[Row]:
    """What the classifier learns from, on which features, and whether the representation is trained with it."""
    simgcd = {"supervision": "self-distil", "classifier_on": "backbone", "joint": True}
    published = accuracy_of(data.benchmark, "simgcd")
    return [
        Row(
            label=supervision,
            method="simgcd",
            settings=(settings := {"supervision": supervision, "classifier_on": place, "joint": joint}),
            values={"classifier_on": place, "training": "joint" if joint else "decoupled"},
            published=published if settings == simgcd else None,
        )
        for joint in (False, True)
        for place in ("backbone", "projector")
        for supervision in SUPERVISION
    ]


def epsilon_rows(data: BenchData, epsilons: Sequence[float]) -> list[Row]:
    """SimGCD with several weights of the entropy term."""
    usual, published = BENCHMARK_EPSILON.get(data.benchmark, 1.0), accuracy_of(data.benchmark, "simgcd")
    return [
        Row(
            label=f"{epsilon:g}",
            method="simgcd",
            settings={"entropy_weight": epsilon},
            values={"epsilon": epsilon},
            published=published if epsilon == usual else None,
        )
        for epsilon in epsilons
    ]


def k_rows(data: BenchData, methods: Sequence[str], epsilons: Sequence[float]) -> list[Row]:
    """Fewer and more categories than the true number, but not fewer than known classes."""
    found = []
    for row in method_rows(data, methods):
        weights: list[float | None] = [*epsilons] if epsilons and row.method == "simgcd" else [None]
        for epsilon in weights:
            label = row.label if epsilon is None else f"{row.label}, epsilon {epsilon:g}"
            settings = {} if epsilon is None else {"entropy_weight": epsilon}
            for factor in K_FACTORS:
                wanted = round(factor * data.n_classes)
                k = max(wanted, data.n_known, 2)
                clipped = f" (instead of {wanted}: {data.n_known} known classes)" if k > wanted else ""
                found.append(
                    replace(
                        row,
                        label=label,
                        settings=settings,
                        n_categories=NCategories("fixed", k, from_truth=True),
                        values={"factor": f"{factor:g} x{clipped}"},
                        published=row.published if factor == 1 and epsilon is None else None,
                    )
                )
    return found


def unknown_k_rows(data: BenchData, methods: Sequence[str], estimate: int | None) -> list[Row]:
    """The true number of categories, the estimated one, twice the true one, and `auto`."""
    return [
        replace(
            row,
            n_categories=n_categories,
            is_open=rule == "estimated" and n_categories is None,
            values={"rule": "twice the true number" if rule == "twice" else rule},
            published=unknown_k_of(data.benchmark, row.method, rule),
        )
        for row in method_rows(data, methods)
        for rule, n_categories in {
            "known": None,
            "estimated": None if estimate is None else NCategories("fixed", estimate),
            "twice": _twice(data, row.method),
            "auto": AUTO,
        }.items()
    ]


def recipe_rows(data: BenchData, recipe: str) -> list[Row]:
    """k-means, GCD, SimGCD as published and `modern`, with known and unknown numbers of categories."""
    labels = {"simgcd": f"SimGCD {recipe}"}
    return [
        Row(
            label=labels.get(method, find_method(method).title),
            method=method,
            n_categories=n_categories,
            values={"rule": rule},
        )
        for method in ("kmeans", "gcd", "simgcd", "modern")
        for rule, n_categories in {"known": None, "auto": AUTO, "twice the true number": _twice(data, method)}.items()
    ]


def _twice(data: BenchData, method: str) -> NCategories:
    """Twice the true number: exactly for a published method, as an upper bound for `modern`."""
    return NCategories("at-most" if method == "modern" else "fixed", 2 * data.n_classes, from_truth=method != "modern")


def distribution_rows(data: BenchData, methods: Sequence[str]) -> list[Row]:
    """The methods, and the classifier of SimGCD on the representation of GCD if both are compared."""
    found = method_rows(data, methods)
    if {"gcd", "simgcd"} <= set(methods):
        decoupled = Row(label="SimGCD on the representation of GCD (+TW)", method="simgcd", settings={"joint": False})
        found.insert([row.method for row in found].index("simgcd"), decoupled)
    return found
