"""The rows of every study: which method, under which settings, with how many categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from newkind.experiments.paper.dataset import BenchData
from newkind.experiments.paper.protocol import Protocol
from newkind.experiments.paper.published import Scores, accuracy_of, unknown_k_of
from newkind.methods.registry import METHODS, find_method
from newkind.methods.simgcd import BENCHMARK_EPSILON, simgcd_recipe

__all__ = [
    "EPSILONS",
    "K_FACTORS",
    "PAPER_ORDER",
    "Row",
    "ablation_rows",
    "distribution_rows",
    "epsilon_rows",
    "k_rows",
    "logit_adjust_rows",
    "method_rows",
    "pilot_rows",
    "recipe_rows",
    "simgcd_rows",
    "unknown_k_rows",
]

PAPER_ORDER = (
    *(name for name in ("kmeans", "rankstats", "uno", "orca", "debiaspl") if name in METHODS),
    *(name for name in METHODS if name not in ("kmeans", "rankstats", "uno", "orca", "debiaspl", "gcd", "simgcd")),
    *(name for name in ("gcd", "simgcd") if name in METHODS),
)
"""Every method, in the order of the paper's tables."""
EPSILONS = (0.0, 1.0, 2.0, 4.0)
K_FACTORS = (0.75, 1.0, 1.25, 1.5, 2.0)
SUPERVISION = ("minimal", "self-label", "self-distil", "oracle")
ADJUSTING = ("orca", "debiaspl")
"""Methods that change logits by hand against the imbalance."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A line of a table."""

    label: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    recipe: str | None = None
    """SimGCD's; None: the protocol's."""
    n_categories: int | Literal["auto"] | None = None
    """None: the truth's."""
    is_open: bool = False
    """The number of categories is to be estimated, and has not been yet."""
    published: Scores | None = None
    values: Mapping[str, Any] = field(default_factory=dict)
    """More columns."""

    def words(self) -> str:
        """What tells it from the other rows."""
        return ", ".join(
            [
                self.label,
                *(
                    f"{value:g}" if isinstance(value, float) else str(value)
                    for value in self.values.values()
                    if str(value) != self.label
                ),
            ]
        )


def method_rows(data: BenchData, methods: Sequence[str]) -> list[Row]:
    """One a method, under its own defaults."""
    return [
        Row(label=find_method(name).title, method=name, published=accuracy_of(data.benchmark, name)) for name in methods
    ]


def simgcd_rows(data: BenchData) -> list[Row]:
    """SimGCD alone."""
    return method_rows(data, ["simgcd"])


def logit_adjust_rows(data: BenchData, methods: Sequence[str]) -> list[Row]:
    """One a method, with whether it adjusts logits by hand."""
    return [
        Row(
            label=row.label,
            method=row.method,
            published=row.published,
            values={"adjusts": "yes" if row.method in ADJUSTING else "no"},
        )
        for row in method_rows(data, methods)
    ]


def ablation_rows(data: BenchData, protocol: Protocol) -> list[Row]:
    """The steps from GCD to SimGCD; all but the first are settings of SimGCD."""
    cold = simgcd_recipe(protocol.recipe, n_categories=2).teacher_end
    decoupled = {"joint": False}
    self_label = {"supervision": "self-label", **decoupled}
    steps: list[tuple[str, str, dict[str, Any]]] = [
        ("+SL", "self-labels, classifier on the projector", {**self_label, "classifier_on": "projector"}),
        ("+BR", "classifier on the backbone's features", {**self_label, "classifier_on": "backbone"}),
        ("+SD", "self-distillation instead of self-labels", {"teacher_start": cold, **decoupled}),
        ("+TW", "warm-up of the teacher's temperature", decoupled),
        ("+JT", "joint training: SimGCD", {}),
    ]
    first = Row(
        label="GCD",
        method="gcd",
        published=accuracy_of(data.benchmark, "gcd"),
        values={"step": "semi-supervised k-means on a contrastive representation"},
    )
    return [
        first,
        *(
            Row(
                label=label,
                method="simgcd",
                settings=settings,
                values={"step": step},
                published=None if settings else accuracy_of(data.benchmark, "simgcd"),
            )
            for label, step, settings in steps
        ),
    ]


def pilot_rows(data: BenchData) -> list[Row]:
    """What the classifier learns from, on which features, and whether the representation learns with it."""
    found = []
    for joint in (False, True):
        for place in ("backbone", "projector"):
            for supervision in SUPERVISION:
                settings = {"supervision": supervision, "classifier_on": place, "joint": joint}
                is_simgcd = supervision == "self-distil" and place == "backbone" and joint
                found.append(
                    Row(
                        label=supervision,
                        method="simgcd",
                        settings=settings,
                        values={"classifier_on": place, "training": "joint" if joint else "decoupled"},
                        published=accuracy_of(data.benchmark, "simgcd") if is_simgcd else None,
                    )
                )
    return found


def epsilon_rows(data: BenchData, epsilons: Sequence[float]) -> list[Row]:
    """SimGCD under weights of the entropy term."""
    usual = BENCHMARK_EPSILON.get(data.benchmark, 1.0)
    return [
        Row(
            label=f"{epsilon:g}",
            method="simgcd",
            settings={"entropy_weight": epsilon},
            values={"epsilon": epsilon},
            published=accuracy_of(data.benchmark, "simgcd") if epsilon == usual else None,
        )
        for epsilon in epsilons
    ]


def k_rows(data: BenchData, methods: Sequence[str], epsilons: Sequence[float]) -> list[Row]:
    """Fewer and more categories than the truth has, never fewer than the known ones."""
    found = []
    for method in methods:
        weights: list[float | None] = list(epsilons) if epsilons and method == "simgcd" else [None]
        for epsilon in weights:
            for factor in K_FACTORS:
                wanted = round(factor * data.n_classes)
                k = max(wanted, data.n_known, 2)
                clipped = f" (not {wanted}: there are {data.n_known} known classes)" if k > wanted else ""
                title = find_method(method).title + ("" if epsilon is None else f", epsilon {epsilon:g}")
                found.append(
                    Row(
                        label=title,
                        method=method,
                        settings={} if epsilon is None else {"entropy_weight": epsilon},
                        n_categories=k,
                        values={"factor": f"{factor:g} x{clipped}"},
                        published=accuracy_of(data.benchmark, method) if factor == 1 and epsilon is None else None,
                    )
                )
    return found


def unknown_k_rows(data: BenchData, methods: Sequence[str], estimate: int | None) -> list[Row]:
    """The known number of categories, the estimated one, twice the known one, and discover's own way."""
    found = []
    rules: list[tuple[str, str, int | Literal["auto"] | None]] = [
        ("known", "known", None),
        ("estimated", "estimated", estimate),
        ("twice", "twice the known", 2 * data.n_classes),
        ("auto", "auto", "auto"),
    ]
    for method in methods:
        for rule, words, k in rules:
            found.append(
                Row(
                    label=find_method(method).title,
                    method=method,
                    n_categories=k,
                    is_open=rule == "estimated" and k is None,
                    values={"rule": words},
                    published=unknown_k_of(data.benchmark, method, rule),
                )
            )
    return found


def recipe_rows(data: BenchData) -> list[Row]:
    """SimGCD as published and `modern`, between k-means and GCD, with the number of categories known and unknown."""
    rules: list[tuple[str, int | Literal["auto"] | None]] = [("known", None), ("auto", "auto")]
    rules.append(("twice the known", 2 * data.n_classes))
    columns: list[tuple[str, str, str | None]] = [("k-means", "kmeans", None), ("GCD", "gcd", None)]
    columns += [(f"SimGCD {recipe}", "simgcd", recipe) for recipe in ("release", "modern")]
    return [
        Row(label=label, method=method, recipe=recipe, n_categories=k, values={"rule": rule})
        for label, method, recipe in columns
        for rule, k in rules
    ]


def distribution_rows(data: BenchData, methods: Sequence[str]) -> list[Row]:
    """The methods, and SimGCD's classifier on the representation of GCD where both are asked for."""
    found = method_rows(data, methods)
    if {"gcd", "simgcd"} <= set(methods):
        decoupled = Row(label="SimGCD on GCD's representation (+TW)", method="simgcd", settings={"joint": False})
        found.insert([row.method for row in found].index("simgcd"), decoupled)
    return found
