"""Every study by its name: its rows, what its table shows, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from typing import Protocol as Shape

from newkind.experiments.cells import Cell, CellResult
from newkind.experiments.paper.dataset import BenchData
from newkind.experiments.paper.embedding import embedding_rows, measure_embedding
from newkind.experiments.paper.figures import (
    draw_ablation,
    draw_distribution,
    draw_embedding,
    draw_epochs,
    draw_epsilon,
    draw_errors,
    draw_inference,
    draw_k,
    draw_methods,
    draw_pilot,
    draw_tradeoff,
    draw_unknown_k,
)
from newkind.experiments.paper.inference import inference_rows, measure_inference
from newkind.experiments.paper.protocol import Protocol
from newkind.experiments.paper.results import ERRORS, Finished, distance_rows, epoch_rows, score_rows
from newkind.experiments.paper.rows import (
    EPSILONS,
    PAPER_ORDER,
    Row,
    ablation_rows,
    distribution_rows,
    epsilon_rows,
    k_rows,
    logit_adjust_rows,
    method_rows,
    pilot_rows,
    recipe_rows,
    simgcd_rows,
    unknown_k_rows,
)
from newkind.experiments.paper.table import Column

__all__ = ["STUDIES", "Ask", "Study"]

KNOWN = "known, as many as the truth has"


@dataclass(frozen=True, kw_only=True)
class Ask:
    """What the rows of a study depend on."""

    data: BenchData
    protocol: Protocol
    methods: tuple[str, ...]
    estimate: int | None = None
    """The estimated number of categories, for a study that needs it; None as long as it is not known."""


class _Measure(Shape):
    def __call__(self, cell: Cell, result: CellResult) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Study:
    """A table and its figures."""

    name: str
    title: str
    rows: Callable[[Ask], list[Row]]
    columns: tuple[Column, ...]
    k_rule: str = KNOWN
    methods: tuple[str, ...] = ()
    """That it compares unless others are asked for; empty: it is not about methods."""
    takes_epsilons: bool = False
    needs_estimate: bool = False
    one_seed: bool = False
    tabulate: Callable[[Finished], list[dict[str, Any]]] = score_rows
    measure: _Measure | None = None
    """What is measured on each finished cell beside its scores."""
    draw: Callable[[str, Sequence[Finished], Path], list[Path]] | None = None
    notes: tuple[str, ...] = ()


METHOD = Column("label", "Method")
SCORES = (Column("all", "All", "spread"), Column("old", "Old", "spread"), Column("new", "New", "spread"))
PUBLISHED = Column("published", "Published", "spread")
TAIL = (Column("seeds", "Seeds", "number"), Column("seconds", "Time", "time"))
ACTIVE = Column("active", "Active", "count")
ERROR_COLUMNS = tuple(Column(key, title, "spread") for key, title in ERRORS.items())
TIME_NOTE = "Time: training and sorting of one run, mean over seeds; the tokens that all runs share are not in it."
ACTIVE_NOTE = "Active: categories that hold at least one unlabelled image."
PREDICTING = ("uno", "gcd", "simgcd")

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        Study(
            name="data",
            title="Statistics of the data",
            rows=lambda _: [],
            columns=(
                Column("label", "Data"),
                Column("labelled_images", "Labelled", "number"),
                Column("labelled_classes", "Classes", "number"),
                Column("unlabelled_images", "Unlabelled", "number"),
                Column("unlabelled_classes", "Classes", "number"),
                Column("imbalance", "Largest / smallest class", "number"),
                Column("statistics", "Published"),
            ),
        ),
        Study(
            name="methods",
            title="Every method under one protocol",
            rows=lambda ask: method_rows(ask.data, ask.methods),
            columns=(METHOD, *SCORES, PUBLISHED, *TAIL),
            methods=PAPER_ORDER,
            draw=draw_methods,
            notes=(TIME_NOTE,),
        ),
        Study(
            name="ablation",
            title="Step by step from GCD to SimGCD",
            rows=lambda ask: ablation_rows(ask.data, ask.protocol),
            columns=(Column("label", "Step"), Column("step", "What changes"), *SCORES, PUBLISHED, *TAIL),
            draw=draw_ablation,
            notes=(TIME_NOTE,),
        ),
        Study(
            name="pilot",
            title="Supervision, features and training of the classifier",
            rows=lambda ask: pilot_rows(ask.data),
            columns=(
                Column("label", "Supervision"),
                Column("classifier_on", "Classifier on"),
                Column("training", "Training"),
                *SCORES,
                PUBLISHED,
                *TAIL,
            ),
            draw=draw_pilot,
            notes=("Oracle rows learn from the truth of every image: a bound from above, not a method.", TIME_NOTE),
        ),
        Study(
            name="epsilon",
            title="SimGCD under weights of the entropy term",
            rows=lambda ask: epsilon_rows(ask.data, ask.protocol.epsilons or EPSILONS),
            columns=(Column("label", "Epsilon"), *SCORES, *ERROR_COLUMNS, ACTIVE, PUBLISHED, *TAIL),
            takes_epsilons=True,
            tabulate=distance_rows,
            draw=draw_epsilon,
            notes=("Error kinds are shares of all unlabelled images.", ACTIVE_NOTE, TIME_NOTE),
        ),
        Study(
            name="k",
            title="Fewer and more categories than there are",
            rows=lambda ask: k_rows(ask.data, ask.methods, ask.protocol.epsilons),
            columns=(
                METHOD,
                Column("factor", "Times the truth"),
                Column("k", "K", "count"),
                *SCORES,
                ACTIVE,
                PUBLISHED,
                *TAIL,
            ),
            k_rule="a multiple of what the truth has, never below the known classes",
            methods=("simgcd",),
            takes_epsilons=True,
            draw=draw_k,
            notes=(ACTIVE_NOTE, TIME_NOTE),
        ),
        Study(
            name="unknown-k",
            title="Known, estimated, doubled and automatic numbers of categories",
            rows=lambda ask: unknown_k_rows(ask.data, ask.methods, ask.estimate),
            columns=(
                METHOD,
                Column("rule", "Number of categories"),
                Column("k", "K", "count"),
                *SCORES,
                ACTIVE,
                PUBLISHED,
                *TAIL,
            ),
            k_rule="known (the truth's), estimated (once, from the frozen features), twice the known one, or auto "
            "(discover's own: room for more, then merging)",
            methods=("gcd", "simgcd"),
            needs_estimate=True,
            draw=draw_unknown_k,
            notes=(ACTIVE_NOTE, TIME_NOTE),
        ),
        Study(
            name="recipes",
            title="SimGCD as published and modern, with known and unknown numbers of categories",
            rows=lambda ask: recipe_rows(ask.data),
            columns=(METHOD, Column("rule", "Number of categories"), Column("k", "K", "count"), *SCORES, ACTIVE, *TAIL),
            k_rule="known (the truth's), auto (found out), or twice the known one, without a word that it is wrong",
            draw=draw_unknown_k,
            notes=(ACTIVE_NOTE, TIME_NOTE),
        ),
        Study(
            name="errors",
            title="Four kinds of errors",
            rows=lambda ask: method_rows(ask.data, ask.methods),
            columns=(METHOD, Column("all", "All", "spread"), *ERROR_COLUMNS, *TAIL),
            methods=PREDICTING,
            draw=draw_errors,
            notes=(
                "Shares of all unlabelled images. The second word is what was predicted: False Old is a new class taken "
                "for a known one; True New is a new class taken for another new one.",
                TIME_NOTE,
            ),
        ),
        Study(
            name="distribution",
            title="Sizes of the predicted categories beside those of the true ones",
            rows=lambda ask: distribution_rows(ask.data, ask.methods),
            columns=(METHOD, *SCORES, ACTIVE, Column("distance", "Distance", "spread"), *TAIL),
            methods=PREDICTING,
            tabulate=distance_rows,
            draw=draw_distribution,
            notes=(
                "Distance: half the sum of the differences between predicted and true shares, both sorted by size; 0 if all "
                "sizes are right.",
                ACTIVE_NOTE,
                TIME_NOTE,
            ),
        ),
        Study(
            name="epochs",
            title="Old and New over the epochs",
            rows=lambda ask: method_rows(ask.data, ask.methods),
            columns=(METHOD, Column("epoch", "Epoch", "number"), *SCORES, Column("seeds", "Seeds", "number")),
            methods=("simgcd",),
            tabulate=epoch_rows,
            draw=draw_epochs,
            notes=("A score on the way is only looked at: every other table takes the last epoch.",),
        ),
        Study(
            name="logit-adjust",
            title="Beside methods that adjust logits against imbalance",
            rows=lambda ask: logit_adjust_rows(ask.data, ask.methods),
            columns=(METHOD, Column("adjusts", "Logit adjust"), *SCORES, PUBLISHED, *TAIL),
            methods=("orca", "debiaspl", "uno", "gcd", "simgcd"),
            draw=draw_tradeoff,
            notes=(TIME_NOTE,),
        ),
        Study(
            name="inference",
            title="Assigning the unlabelled images, on the same features of SimGCD",
            rows=lambda ask: simgcd_rows(ask.data),
            columns=(
                Column("label", "Assigned by"),
                Column("n_images", "Images", "number"),
                Column("seconds", "Time", "short"),
                Column("ratio", "Ratio", "number"),
                *SCORES,
                Column("published_time", "Published"),
                Column("device", "Device"),
                Column("seeds", "Seeds", "number"),
            ),
            tabulate=inference_rows,
            measure=measure_inference,
            draw=draw_inference,
            notes=(
                "Time: assigning alone, mean over seeds; features, which both need, are there already. Semi-supervised k-means "
                "with 10 restarts of at most 200 iterations. Published: with features, on one RTX 3090, SimGCD and GCD.",
            ),
        ),
        Study(
            name="tsne",
            title="Features before and after training",
            rows=lambda ask: simgcd_rows(ask.data),
            columns=(
                Column("label", "Features"),
                Column("n_images", "Images", "number"),
                Column("n_classes", "Classes", "number"),
                Column("silhouette", "Silhouette", "number"),
            ),
            one_seed=True,
            tabulate=embedding_rows,
            measure=measure_embedding,
            draw=draw_embedding,
            notes=(
                "Ten classes drawn at random, at most 100 unlabelled images of each. Silhouette: of the true classes, by cosine "
                "distance, from -1 to 1. Of ready features nothing but the heads is trained: there 'after' is the projector's output.",
            ),
        ),
    )
}
